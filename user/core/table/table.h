/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cuckoo filter engine: insert with kick-outs, delete, find. It works on plain memory, in a running filter the
 * mmapped array maps. There is one writer at a time; readers read at the same time and need no lock. The top of
 * include/abi.h defines "slot", "entry" and "record".
 *
 * A (2,4)-cuckoo filter: Fan, Andersen, Kaminsky, Mitzenmacher, CoNEXT 2014. The search for a path before any move:
 * Li, Andersen, Kaminsky, Freedman, "Algorithmic Improvements for Fast Concurrent Cuckoo Hashing", EuroSys 2014.
 *
 * A compact table has only fingerprints. It cannot tell equal entries apart, but keeps each of them. In an exact
 * table each slot has a record with the key's tag, and a counter if rules are counted. Both move with the entry. In a table
 * of addresses, BUCKET_ADDRESS, the fingerprint and its place are the key: `hash` is a permuted prefix (permute.h), and
 * there are counters but no records.
 */
#ifndef XDP_CUCKOO_TABLE_H
#define XDP_CUCKOO_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "bucket.h"

#define TABLE_SEARCH_NODES 2048 /* the most buckets that a search for a path reads */
#define TABLE_LOAD_PERCENT 95   /* the load that the engine reaches; capacities are computed with it */
#define TABLE_PARTS 1024        /* the most parts of a table that is mapped as needed */

/* Ends of the same rule may differ by this many ticks, because they are computed at different times. */
#define TABLE_TICKS_TOLERATED 8

struct table_search; /* the queue of one path search */

/* An entry to put into a table. `end`: see abi_record(); compact tables ignore it. */
struct table_entry {
	struct hash_value key;
	__u32 end;
	__u32 turn; /* 0: it comes before those with 1: see table_add_missing() */
};

/* The memory of a table. The caller owns it, and readers read it. */
struct table_memory {
	void *bucket;                /* table_bucket_bytes(), 16-byte aligned */
	__u64 *record;               /* of each slot, see abi_record(); NULL: compact */
	struct abi_counter *counter; /* of each slot; NULL: rules are not counted */
	__u64 *sequence;             /* changes when a reader might otherwise miss an entry */
};

struct table {
	enum bucket_format format;
	struct bucket_geometry geometry;
	__u32 reciprocal; /* for BUCKET_ADDRESS: see address_pair() */
	struct table_memory memory;
	__u64 used;                /* filled slots: see table_open() */
	__u64 moves;               /* entries moved since table_open() */
	unsigned int longest_path; /* moves of the worst insert since table_open() */
	const __u16 *prefixes;     /* for BUCKET_17: see bucket_get() */
	bool waits_for_readers;    /* the table has readers that may reorder their loads: see table_announce() */
	struct table_search *search;
	/*
	 * Maps the buckets, records and counters of slots before their first use; with 0 slots, all buckets. 0 or -ENOMEM. NULL:
	 * all are mapped.
	 */
	int (*reach)(const struct table *table, __u64 slot, __u64 slots);
	__u64 reached[TABLE_PARTS / 64]; /* a bit for each part that reach() has mapped: see table_reach() */
	bool has_buckets;                /* it has mapped all buckets */
};

/*
 * The smallest geometry with at least `slots` slots: from 2^10 to 2^16 a power of two; then up to 2^30 a multiple of
 * 2^16, or of an eighth of the next lower power of two if that is larger.
 */
struct bucket_geometry table_geometry(__u64 slots);

/* The slots of a geometry. */
__u64 table_slots_of(struct bucket_geometry geometry);

/* The slots of the smallest table in which `rules` entries are a load of at most 95 %. More than 2^30: there is none. */
__u64 table_slots_for(__u64 rules);

/* The slots of the smallest table of addresses with at least so many. */
#define TABLE_ADDRESS_SLOTS_MIN ((__u64)ADDRESS_BUCKETS_MIN * BUCKET_SLOTS)
__u64 table_address_slots(__u64 slots);

/* The bytes of all buckets: a multiple of 8. */
__u64 table_bucket_bytes(enum bucket_format format, struct bucket_geometry geometry);

/* The probability that a look-up of an absent key finds an equal fingerprint. */
double table_false_positive_rate(enum bucket_format format, double load_factor);

/*
 * Opens a table over the caller's memory. 0; -EINVAL: table_geometry() never returns this geometry, or a table with
 * records does not have BUCKET_16; -ENOMEM. Does not read the buckets, which takes long: if the table is not empty,
 * the caller sets `used`. table_close() accepts a zeroed or half-opened table.
 */
int table_open(struct table *table, enum bucket_format format, struct bucket_geometry geometry,
	       const struct table_memory *memory);
void table_close(struct table *table);

__u64 table_slots(const struct table *table);

/* Maps the part of the table that has this slot; all buckets; all parts. 0 or -ENOMEM. */
int table_reach(struct table *table, __u64 slot);
int table_reach_buckets(struct table *table);
int table_reach_all(struct table *table); /* call this before you change many keys, or read the memory yourself */

/* Counts the filled slots by reading all buckets, which must be mapped, as for table_find(). */
__u64 table_count(const struct table *table);

/*
 * Adds an entry for the key, also to a compact table that has an equal entry. In an exact table there must be none.
 * Readers do not miss any entry during the call. The key's counter starts at 0. If a packet is being counted at this
 * moment, the counter may get one too high, and the counter of a moved entry one too low. 0; -ENOSPC: no path to a
 * free slot; -ENOMEM. After an error nothing has changed.
 */
int table_insert(struct table *table, const struct hash_value *key, __u32 end);

/*
 * Sets the end of the key's entry, in an exact table; with `is_done` only if it does not end sooner then, and says
 * whether. Readers see the old or the new end. 0; -ENOENT; -ENOMEM.
 */
int table_set_end(struct table *table, const struct hash_value *key, __u32 end, bool *is_done);

/* Removes an entry of the key, which must have been inserted. 0; -ENOENT; -ENOMEM: nothing has changed. */
int table_delete(struct table *table, const struct hash_value *key);

/*
 * Whether the key is in the table. In a compact table also true for some absent keys: table_false_positive_rate().
 * In an exact table and in one of addresses, *slot (may be NULL) is the slot of the key.
 */
bool table_find(const struct table *table, const struct hash_value *key, __u32 *slot);

/* The permuted prefix in a slot of a table of addresses; 2^33: none. */
__u64 table_address(const struct table *table, __u64 slot);

/* Sets all counters to 0. Packets that are counted during the call may be lost. 0 or -ENOMEM. */
int table_reset_counts(struct table *table);

/* Adds entries to a table without readers, whose counters are 0. 0; -ENOSPC: not all fit, clear the memory; -ENOMEM. */
int table_build(struct table *table, const struct table_entry *entries, size_t count);

/*
 * ---- makes a live table hold exactly the wanted entries, by the fewest changes ----
 *
 * Entries that stay keep their counters, and readers never miss them. The order of `entries` changes.
 */

struct table_difference {
	__u64 added, removed, kept;
	__u64 retimed; /* of the kept entries, those that got another end */
};

/* Which slots have a wanted entry: a bit for each. An insert makes this wrong. */
struct table_claims {
	__u64 *slots;
	size_t missing; /* wanted entries that the table lacks */
	__u64 others;   /* entries of the table that are not wanted */
};

/*
 * Finds the wanted entries in the table, and sets the ends of those whose turn is not after `turn`. 0; -ENOMEM.
 * table_claims_close() takes zeroed ones.
 */
int table_claim(struct table *table, struct table_entry *entries, size_t count, __u32 turn, struct table_claims *claims,
		__u64 *retimed);
void table_claims_close(struct table_claims *claims);

/*
 * table_claim(); then inserts those of the missing entries that have this turn. 0; -ENOMEM; -ENOSPC: not all fit. Then
 * others are inserted until the first failure above 95 % load.
 */
int table_add_missing(struct table *table, struct table_entry *entries, size_t count, __u32 turn,
		      struct table_difference *difference);

/*
 * In an exact table: all unwanted entries end `later` after `now`, or before. Of the others, those that end after `now` do so
 * by as much later; never, if that is too far ahead for a record.
 */
void table_end_others(struct table *table, const struct table_claims *claims, __u32 now, __u32 later);

/* Removes the unwanted entries, in the order of their slots. */
void table_remove_others(struct table *table, const struct table_claims *claims);

#endif
