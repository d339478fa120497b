/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Measures the cost of a filter per packet. The kernel runs the filter on a list of flows, first on one CPU, then
 * on all at once. The filter's verdicts are checked before and after each measurement.
 */
#ifndef XDP_CUCKOO_BENCH_MEASURE_H
#define XDP_CUCKOO_BENCH_MEASURE_H

#include "bench/traffic.h"

/* ns per packet, over many slices. */
struct bench_figure {
	double median, lower_quartile, upper_quartile;
};

struct bench_result {
	enum flow_family family;
	enum bench_traffic traffic;
	struct bench_figure one_cpu[BENCH_PROGRAMS], all_cpus[BENCH_PROGRAMS];
};

struct bench_results {
	size_t count; /* kinds of traffic that the rules allow */
	struct bench_result result[FLOW_FAMILIES * BENCH_TRAFFICS];
};

/* The number of CPUs that this process may run on. 0: not known. */
unsigned int bench_cpus(void);

/* The memory that a measurement needs, in the kernel and in this process. */
__u64 bench_bytes(void);

/*
 * Measures for about `seconds`. No packet of the network may reach `filter`. 0; -EPROTO: the filter did not decide
 * as the rules say; other -errno.
 */
int bench_measure(const struct kernel_filter *filter, const struct bench_lists *lists, double seconds,
		  struct bench_results *results, struct reason *reason);

/* "ipv4", "hit", ... */
extern const char *const bench_family_names[FLOW_FAMILIES];
extern const char *const bench_traffic_names[BENCH_TRAFFICS];

#endif
