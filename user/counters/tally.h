/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What filters have counted, at one moment, by outcome and verdict, by interface and by CPU; and what two such
 * readings differ by. Knows neither rules nor how it is shown.
 */
#ifndef XDP_CUCKOO_TALLY_H
#define XDP_CUCKOO_TALLY_H

#include "kernel/kernel.h"

#define TALLY_ALL (~0U) /* rows, or CPUs */
#define TALLY_NAME_BYTES 64

/* Of one counters map: filters that share it count once. */
struct tally_part {
	__u32 id;
	struct abi_counter *counter; /* of row r and CPU c: from (r * cpus + c) * ABI_COUNTERS on */
};

struct tally {
	struct tally_part *part;
	size_t parts;
	unsigned int cpus;
	size_t filters;       /* that were read */
	bool is_monitor_only; /* one of them */
	double seconds;       /* of CLOCK_MONOTONIC; of a difference: what lies between */
	/* The interfaces that filters run on now, by row, joined by '+' where they share one, clean; "" where there is none. */
	char interfaces[ABI_COUNTER_ROWS][TALLY_NAME_BYTES];
};

/* Whether a filter counts for a name: it has it, or nobody has set it up. */
bool tally_is_named(const struct kernel_filter *filter, const char *name);

/* Adds what a filter has counted. `tally` starts zeroed; -errno with the reason. tally_close() accepts any. */
int tally_add(struct tally *tally, const struct kernel_filter *filter, struct reason *reason);
void tally_close(struct tally *tally);

/*
 * What has come between two readings. What fell was counted from 0 again meanwhile (a filter loaded anew, a reset),
 * and all there is has come since. Both stay; 0; -ENOMEM.
 */
int tally_since(const struct tally *before, const struct tally *now, struct tally *difference);

/* The sum of each counter of a row, or TALLY_ALL, and a CPU, or TALLY_ALL. */
void tally_sum(const struct tally *tally, unsigned int row, unsigned int cpu, struct abi_counter sum[ABI_COUNTERS]);
/* The same of all rows whose interfaces are none that filters run on now, in this network namespace. */
void tally_sum_elsewhere(const struct tally *tally, struct abi_counter sum[ABI_COUNTERS]);
/* Of such a sum, by verdict: over all outcomes. */
void tally_verdicts(const struct abi_counter counters[ABI_COUNTERS], struct abi_counter sum[VERDICTS]);

/* Whether any were counted in such a sum. */
bool tally_has_packets(const struct abi_counter counters[ABI_COUNTERS]);

#endif
