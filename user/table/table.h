/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cuckoo filter engine: insert with kick-outs, delete, find, on plain memory that concurrent
 * readers may be looking at (in a running filter, the mmapped array maps). Knows hashes and tags, not
 * keys; neither libbpf nor LMDB. One writer at a time; readers need no lock.
 *
 * (2,4)-cuckoo filter: Fan, Andersen, Kaminsky, Mitzenmacher, CoNEXT 2014; path search before moving,
 * breadth first: Li, Andersen, Kaminsky, Freedman, "Algorithmic Improvements for Fast Concurrent
 * Cuckoo Hashing", EuroSys 2014.
 *
 * Compact: fingerprints alone; equal entries are kept apart only by their number. Exact: each slot has
 * a record with the key's tag, by which an entry is told from every other, and, where rules are counted,
 * a counter. Both move with the key.
 */
#ifndef XDP_CUCKOO_TABLE_H
#define XDP_CUCKOO_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "bucket.h"

#define TABLE_SEARCH_NODES 2048 /* buckets looked at before an insert gives up */
#define TABLE_LOAD_PERCENT 95   /* what the engine reaches; capacities are computed with it */

/* Ticks (see abi.h) by which two ends of the same rule may differ: they are computed at other times. */
#define TABLE_TICKS_TOLERATED 8

struct table_search; /* the queue of one path search */

/* What a table is filled with. `end`: see abi_record(); compact tables know none. */
struct table_entry {
	struct hash_value key;
	__u32 end;
	__u32 reserved;
};

/* What the caller keeps, and readers share. */
struct table_memory {
	void *bucket;                /* table_bucket_bytes(), 16-byte aligned */
	__u64 *record;               /* see abi_record(), one a slot; NULL: compact */
	struct abi_counter *counter; /* one a slot; NULL: rules are not counted */
	__u64 *sequence;             /* incremented where a reader could miss a resident */
};

struct table {
	enum bucket_format format;
	struct bucket_geometry geometry;
	struct table_memory memory;
	__u64 used;                /* filled slots; see table_open() */
	__u64 moves;               /* entries moved since table_open() */
	unsigned int longest_path; /* moves of the worst insert since table_open() */
	const __u16 *prefixes;     /* of BUCKET_17, see bucket_get() */
	struct table_search *search;
	/*
	 * Makes the records and counters of some slots usable, before the table first looks at them: 0 or -ENOMEM.
	 * NULL, as table_open() leaves it: all are usable.
	 */
	int (*reach)(const struct table *table, __u64 slot, __u64 slots);
	__u64 reached; /* a bit for each of the table's parts that reach() has made usable */
};

/*
 * The smallest geometry of at least `slots` slots: 2^10 to 2^16 by powers of two, then to 2^30 by steps of
 * 2^16 or of an eighth of the power of two below, whichever is larger. Pieces stay so large that none
 * fills much before the others.
 */
struct bucket_geometry table_geometry(__u64 slots);

/*
 * The slots of a geometry, and the slots, 2^10 to 2^30, of the smallest one in which `rules` are at
 * most 95 %; more than 2^30 where none is large enough.
 */
__u64 table_slots_of(struct bucket_geometry geometry);
__u64 table_slots_for(__u64 rules);

/* The bytes that the buckets take: a multiple of 8. */
__u64 table_bucket_bytes(enum bucket_format format, struct bucket_geometry geometry);

/* The chance that a key which is not there meets an equal fingerprint, by load factor: 2b * load / (2^f - 1). */
double table_false_positive_rate(enum bucket_format format, double load_factor);

/*
 * Opens a table over the caller's memory. 0; -EINVAL (a geometry that table_geometry() does not give,
 * records with a format other than BUCKET_16); -ENOMEM. Does not look at the buckets, which for a large
 * table takes long: the caller of a table that is not empty sets `used` to what it remembers or
 * table_count() finds. table_close() frees what it owns and accepts a zeroed or half-built table.
 */
int table_open(struct table *table, enum bucket_format format, struct bucket_geometry geometry,
	       const struct table_memory *memory);
void table_close(struct table *table);

__u64 table_slots(const struct table *table);

/*
 * Makes the part of the table with this slot usable, or all of it at once: before many keys, and for a caller who reads
 * records or counters without the functions below. 0 or -ENOMEM.
 */
int table_reach(struct table *table, __u64 slot);
int table_reach_all(struct table *table);

/* Counts the filled slots, by reading all. */
__u64 table_count(const struct table *table);

/*
 * Adds one entry for the key, also where an equal one stands already; in an exact table the caller
 * sees to it that none does. 0; -ENOSPC where no path to a free slot is found, or -ENOMEM: then nothing has
 * changed. A reader never misses a resident meanwhile. The key is counted from 0; a packet under way may still
 * count for what had its slot before, and so be one too many, or where an entry moved, one too few.
 */
int table_insert(struct table *table, const struct hash_value *key, __u32 end);

/* Sets when the key's entry ends, in an exact table; readers see the old or the new end. 0; -ENOENT; -ENOMEM. */
int table_set_end(struct table *table, const struct hash_value *key, __u32 end);

/* Removes one entry for the key. 0; -ENOENT; -ENOMEM: nothing has changed. Only what was inserted may be deleted. */
int table_delete(struct table *table, const struct hash_value *key);

/*
 * Whether the key is there; compact: also true for table_false_positive_rate() of keys that are not.
 * *slot (may be NULL) is the key's, in an exact table.
 */
bool table_find(const struct table *table, const struct hash_value *key, __u32 *slot);

/* Sets all counts to 0: what readers add meanwhile stays, or goes with them. 0 or -ENOMEM. */
int table_reset_counts(struct table *table);

/*
 * Adds entries to a table that no reader sees yet, and of which nothing is counted, as fast as memory allows. 0;
 * -ENOSPC: not all fit; clear the memory before the next try.
 */
int table_build(struct table *table, const struct table_entry *entries, size_t count);

struct table_difference {
	__u64 added, removed, kept;
	__u64 retimed; /* of those kept: they ended at another tick, beyond what is tolerated */
};

/*
 * Makes the table hold exactly `entries`, each as often as it stands there, by the fewest changes; entries
 * that stay keep their counts and are never missed by readers.
 * Leaves `entries` in an order of its own. -ENOMEM: nothing changed. -ENOSPC: not all fit;
 * entries that should not be there are removed, and as many as fit are added; past 95 % load the first
 * failure ends it.
 */
int table_reconcile(struct table *table, struct table_entry *entries, size_t count,
		    struct table_difference *difference);

#endif
