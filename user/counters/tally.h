/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A tally is what filters have counted at one moment, by outcome and verdict, interface and CPU; or the
 * difference between two such moments. Knows no rules, and prints nothing.
 */
#ifndef XDP_CUCKOO_TALLY_H
#define XDP_CUCKOO_TALLY_H

#include "kernel/kernel.h"

#define TALLY_ALL (~0U) /* all rows, or all CPUs */
#define TALLY_NAME_BYTES 64

/* The counters of one map. Filters that share a map are counted once. */
struct tally_part {
	__u32 id;
	struct abi_counter *counter; /* those of row r and CPU c start at (r * cpus + c) * ABI_COUNTERS */
};

struct tally {
	struct tally_part *part;
	size_t parts;
	unsigned int cpus;
	size_t filters;       /* number of filters read */
	bool is_monitor_only; /* at least one of them is */
	double seconds;       /* on CLOCK_MONOTONIC; in a difference: the time between */
	/*
	 * By row: the interfaces that run filters now, joined by '+'; control characters are replaced. "":
	 * none.
	 */
	char interfaces[ABI_COUNTER_ROWS][TALLY_NAME_BYTES];
};

/* Whether a filter belongs to a name: it has the name, or it is not set up yet. */
bool tally_is_named(const struct kernel_filter *filter, const char *name);

/*
 * Adds what a filter has counted. `tally` starts zeroed. 0; -errno with the reason. tally_close() accepts any
 * state.
 */
int tally_add(struct tally *tally, const struct kernel_filter *filter, struct reason *reason);
void tally_close(struct tally *tally);

/*
 * *difference is what was counted between two tallies. A lower counter was reset in between (a new load,
 * `stats --reset`): then its whole value counts. 0; -ENOMEM.
 */
int tally_since(const struct tally *before, const struct tally *now, struct tally *difference);

/* Sums each counter over a row and a CPU; either may be TALLY_ALL. */
void tally_sum(const struct tally *tally, unsigned int row, unsigned int cpu, struct abi_counter sum[ABI_COUNTERS]);
/* Sums the rows that belong to no interface of this network namespace that runs a filter now. */
void tally_sum_elsewhere(const struct tally *tally, struct abi_counter sum[ABI_COUNTERS]);
/* Adds such a sum up by verdict, over all outcomes. */
void tally_verdicts(const struct abi_counter counters[ABI_COUNTERS], struct abi_counter sum[VERDICTS]);

/* Whether such a sum has any packets. */
bool tally_has_packets(const struct abi_counter counters[ABI_COUNTERS]);

#endif
