/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For which keys of a table most packets are being counted: the largest differences between two passes over its
 * counters, in steps, so that whoever draws meanwhile does not wait for a large table. Knows no rules.
 */
#ifndef XDP_CUCKOO_HITS_H
#define XDP_CUCKOO_HITS_H

#include "table/table.h"

#define HITS_BEST 64              /* that are told */
#define HITS_CHUNK (1U << 18)     /* slots, looked at in one go */
#define HITS_SLOTS_MAX (1U << 26) /* of a table that is not too large to be remembered: 8 bytes a slot */

struct hit {
	__u64 tag;   /* of the key: see abi_record() */
	double rate; /* packets a second */
};

/* When a chunk was looked at last; second 0: never. */
struct hits_visit {
	double second;  /* of any clock */
	__u64 sequence; /* of the table: where it is another now, entries have moved */
};

struct hits {
	__u64 slots, at; /* slots: 0 where it is not open; at: where the pass under way goes on */
	__u64 *seen;     /* by slot: packets at the last pass, and whose; memory only where there were some */
	struct hits_visit *visited;                    /* by chunk */
	struct hit best[HITS_BEST], ranked[HITS_BEST]; /* of the pass under way; of the last one, the most first */
	size_t best_count, ranked_count;
	unsigned int passes; /* that have ended: the first one ranks nothing */
};

/* 0; -ENOMEM; -E2BIG: too large a table. hits_close() accepts what failed, or is zeroed. */
int hits_open(struct hits *hits, __u64 slots);
void hits_close(struct hits *hits);

/*
 * Looks at the next chunk of a table, which has these slots and counts, at a second of any clock. True:
 * that was the last one, `ranked` is new, and the next step starts another pass.
 */
bool hits_step(struct hits *hits, const struct table *table, double second);

#endif
