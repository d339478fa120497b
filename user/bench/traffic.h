/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The traffic that `bench` measures with: flows drawn from the rules of a store, flows that no rule matches,
 * and what the filter must do with each. Knows rules, store and table; neither libbpf nor time.
 */
#ifndef XDP_CUCKOO_BENCH_LISTS_H
#define XDP_CUCKOO_BENCH_LISTS_H

#include "bench_abi.h"
#include "bench/random_flow.h"
#include "kernel/kernel.h"
#include "store/store.h"

enum bench_traffic {
	BENCH_HIT,  /* each matches a rule, any with the same chance */
	BENCH_HALF, /* half of each of the others, at random */
	BENCH_MISS, /* no rule matches */
	BENCH_TRAFFICS,
};

/* BENCH_FLOWS of them in random order; NULL: there are none. */
struct bench_list {
	struct bench_flow *flow;
	size_t distinct; /* rules, or flows, that they were drawn from */
};

struct bench_lists {
	struct bench_list hits[FLOW_FAMILIES], misses[FLOW_FAMILIES];
};

/*
 * What the filter must make of a list: how many of each outcome; and of these, how many a compact table will
 * get wrong by chance, of which `together` at a time have a key in common. All 0 in an exact one.
 */
struct bench_expected {
	__u64 packets[OUTCOMES];
	double wrong, wrong_variance, together;
};

/* Bytes of this process's memory that it takes at most to make them. */
__u64 bench_lists_bytes(void);

/*
 * Makes lists for a filter whose table is filled from the store. Rules that have ended, or end within
 * `lasts_ms`, are not drawn, nor flows that they decide about. 0; -EPROTO: the table lacks what the store
 * has; -ENOMEM; other -errno. Closed by bench_lists_close(), which accepts zeroed ones.
 */
int bench_lists_open(struct bench_lists *lists, struct store *store, const struct kernel_filter *filter, __s64 lasts_ms,
		     struct reason *reason);
void bench_lists_close(struct bench_lists *lists);

/* Whether there is such traffic. */
bool bench_lists_has(const struct bench_lists *lists, enum flow_family family, enum bench_traffic traffic);

/* Writes it to `to`, BENCH_FLOWS flows of the family's type, and says what becomes of it in the filter. */
void bench_lists_write(const struct bench_lists *lists, const struct kernel_filter *filter, enum flow_family family,
		       enum bench_traffic traffic, void *to, struct bench_expected *expected);

#endif
