/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The traffic of `bench`: flows that rules match, flows that no rule matches, and what the filter must do. */
#ifndef XDP_CUCKOO_BENCH_TRAFFIC_H
#define XDP_CUCKOO_BENCH_TRAFFIC_H

#include "bench_abi.h"
#include "bench/random_flow.h"
#include "kernel/kernel.h"
#include "store/store.h"

enum bench_traffic {
	BENCH_HIT,  /* each flow matches a rule; all rules are equally likely */
	BENCH_HALF, /* hits and misses in random order */
	BENCH_MISS, /* no rule matches */
	BENCH_TRAFFICS,
};

/* BENCH_FLOWS flows in random order. */
struct bench_list {
	struct bench_flow *flow; /* NULL: there is no such flow */
	size_t distinct;         /* different rules or flows among them */
};

struct bench_lists {
	struct bench_list hits[FLOW_FAMILIES], misses[FLOW_FAMILIES];
};

/* What the filter must do with a list. The doubles are 0 for an exact table. */
struct bench_expected {
	__u64 packets[OUTCOMES];      /* by outcome */
	double wrong, wrong_variance; /* packets that get another outcome by chance */
	double together;              /* flows that share a key and so are wrong together */
};

/* The memory that this process needs for the lists, at most. */
__u64 bench_lists_bytes(void);

/*
 * Makes lists for a filter whose table is filled from the store. Leaves out rules that have ended or end within
 * `lasts_ms`, and the flows that these rules match. 0; -EPROTO: the table lacks rules of the store; -ENOMEM;
 * other -errno. bench_lists_close() accepts zeroed lists.
 */
int bench_lists_open(struct bench_lists *lists, struct store *store, const struct kernel_filter *filter, __s64 lasts_ms,
		     struct reason *reason);
void bench_lists_close(struct bench_lists *lists);

/* Whether this traffic exists. */
bool bench_lists_has(const struct bench_lists *lists, enum flow_family family, enum bench_traffic traffic);

/* Writes the traffic to `to`, BENCH_FLOWS flows of the family's type, and what the filter must do with it. */
void bench_lists_write(const struct bench_lists *lists, const struct kernel_filter *filter, enum flow_family family,
		       enum bench_traffic traffic, void *to, struct bench_expected *expected);

#endif
