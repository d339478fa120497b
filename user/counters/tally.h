/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What filters have counted by outcome, verdict, interface and CPU, until one moment or between two moments. */
#ifndef XDP_CUCKOO_TALLY_H
#define XDP_CUCKOO_TALLY_H

#include "kernel/kernel.h"

#define TALLY_ALL (~0U) /* all rows, or all CPUs */
#define TALLY_NAME_BYTES 64

/* The counters of one map. Filters may share a map, which counts once. */
struct tally_part {
	__u32 id;
	struct abi_counter *counter; /* ABI_COUNTERS of row r and CPU c start at (r * cpus + c) * ABI_COUNTERS */
};

struct tally {
	struct tally_part *part;
	size_t parts;
	unsigned int cpus;
	size_t filters;       /* that were read */
	bool is_monitor_only; /* at least one of the filters is */
	double seconds;       /* of CLOCK_MONOTONIC; in a difference: the time between the moments */
	/* The interfaces of each row that run filters now, joined by '+', without control characters. */
	char interfaces[ABI_COUNTER_ROWS][TALLY_NAME_BYTES];
};

/* Whether the filter has the name or is not set up yet. */
bool tally_is_named(const struct kernel_filter *filter, const char *name);

/* Adds the counters of a filter to a tally, which starts zeroed. 0 or -errno. tally_close() accepts any state. */
int tally_add(struct tally *tally, const struct kernel_filter *filter, struct reason *reason);
void tally_close(struct tally *tally);

/* *difference: what was counted between two tallies. If a counter was reset, its whole value. 0; -ENOMEM. */
int tally_since(const struct tally *before, const struct tally *now, struct tally *difference);

/* Sums each counter over a row and a CPU. Both may be TALLY_ALL. */
void tally_sum(const struct tally *tally, unsigned int row, unsigned int cpu, struct abi_counter sum[ABI_COUNTERS]);

/* Sums the rows of which no interface runs a filter now, in this network namespace. */
void tally_sum_elsewhere(const struct tally *tally, struct abi_counter sum[ABI_COUNTERS]);

/* Adds up such sums of counters by verdict, over all outcomes. */
void tally_verdicts(const struct abi_counter counters[ABI_COUNTERS], struct abi_counter sum[VERDICTS]);

/* Whether any of these counters of packets is not 0. */
bool tally_has_packets(const struct abi_counter counters[ABI_COUNTERS]);

#endif
