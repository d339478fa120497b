/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the keys of a table that most packets match now: the keys whose counters grow most between two passes. A
 * pass runs in steps, so that the caller can do other work in between.
 */
#ifndef XDP_CUCKOO_HOTTEST_KEYS_H
#define XDP_CUCKOO_HOTTEST_KEYS_H

#include "table/table.h"

#define HITS_BEST 64              /* keys that are ranked */
#define HITS_CHUNK (1U << 18)     /* slots in one step */
#define HITS_SLOTS_MAX (1U << 26) /* of the largest table; each slot takes 8 bytes here */

struct hit {
	__u64 tag;   /* of the key: see abi_record() */
	double rate; /* packets a second */
};

/* The last visit to a chunk. */
struct hits_visit {
	double second;  /* 0: there was no visit */
	__u64 sequence; /* of the table: it changes when entries move */
};

struct hits {
	__u64 slots, at;              /* slots: 0 if not open; at: the next slot of the current pass */
	__u64 *seen;                  /* by slot: packets at the last pass, and tag bits */
	struct hits_visit *visited;   /* by chunk */
	struct hit best[HITS_BEST];   /* of the current pass */
	struct hit ranked[HITS_BEST]; /* of the last complete pass; the highest rate is first */
	size_t best_count, ranked_count;
	unsigned int passes; /* that are complete; the first one ranks nothing */
};

/* 0; -ENOMEM; -E2BIG: the table is too large. hits_close() accepts a zeroed struct, and one that failed to open. */
int hits_open(struct hits *hits, __u64 slots);
void hits_close(struct hits *hits);

/*
 * Visits the next chunk of a table with counters. `second` is the time of any clock. True: the pass is complete and
 * `ranked` is new. The next step starts another pass.
 */
bool hits_step(struct hits *hits, const struct table *table, double second);

#endif
