/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cuckoo filter engine: insert with kick-outs, delete, contains, on plain memory that concurrent
 * readers may be looking at (in a running filter, the mmapped array map). Knows hashes, not keys;
 * neither libbpf nor LMDB. One writer at a time; readers need no lock.
 *
 * (2,4)-cuckoo filter with 16-bit fingerprints: Fan, Andersen, Kaminsky, Mitzenmacher, CoNEXT 2014;
 * path search before moving, breadth first: Li, Andersen, Kaminsky, Freedman, "Algorithmic
 * Improvements for Fast Concurrent Cuckoo Hashing", EuroSys 2014.
 */
#ifndef XDP_CUCKOO_TABLE_H
#define XDP_CUCKOO_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "bucket.h"

#define TABLE_SEARCH_NODES 2048 /* buckets looked at before an insert gives up */
#define TABLE_LOAD_PERCENT 95	/* what the engine reaches; capacities are computed with it */

struct table_search; /* the queue of one path search */

struct table {
	__u64 *bucket;	   /* shared with readers */
	__u64 *sequence;   /* shared with readers; incremented where one could miss a resident */
	__u64 bucket_mask; /* buckets - 1 */
	__u32 step_shift;  /* 64 - log2(buckets) */
	__u64 used;	   /* filled slots; see table_open() */
	__u64 moves;	   /* entries moved since table_open() */
	unsigned int longest_path; /* moves of the worst insert since table_open() */
	struct table_search *search;
};

/*
 * Opens a table over `buckets` words (a power of two, 2^8 to 2^28) and a sequence word that the
 * caller keeps. 0, -EINVAL, -ENOMEM. Does not look at the words, which for a large table takes long:
 * the caller of a table that is not empty sets `used` to what it remembers or table_count() finds.
 * table_close() frees what it owns and accepts a zeroed or half-built table.
 */
int table_open(struct table *table, __u64 *bucket, __u64 buckets, __u64 *sequence);
void table_close(struct table *table);

/* Counts the filled slots, by reading all. */
__u64 table_count(const struct table *table);

/*
 * Adds one entry for `hash`, also where an equal one stands already. 0; -ENOSPC where no path to a
 * free slot is found: then nothing has changed. A reader never misses a resident meanwhile.
 */
int table_insert(struct table *table, __u64 hash);

/* Removes one entry for `hash`. 0; -ENOENT. Only what was inserted may be deleted. */
int table_delete(struct table *table, __u64 hash);

/* Whether some entry matches `hash`: true for each inserted one, and for 8 * load / 2^16 of others. */
bool table_contains(const struct table *table, __u64 hash);

/*
 * The slots of a table, and the power of two of slots, 2^10 to 2^30, that `rules` need at 95 %
 * load; 2^31 where no table is large enough.
 */
__u64 table_slots(const struct table *table);
__u64 table_slots_for(__u64 rules);

struct table_difference {
	__u64 added, removed, kept;
};

/*
 * Makes the table hold exactly the entries of `hashes`, each as often as it stands there, by the
 * fewest changes; entries that stay are never missed by readers. Sorts `hashes` in place into an
 * order of its own. -ENOMEM: nothing changed. -ENOSPC: not all fit; entries that should not be
 * there are removed, and as many as fit are added; past 95 % load the first failure ends it.
 */
int table_reconcile(struct table *table, __u64 *hashes, size_t count,
		    struct table_difference *difference);

#endif
