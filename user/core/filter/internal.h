/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the files of this folder only. */
#ifndef XDP_CUCKOO_FILTER_INTERNAL_H
#define XDP_CUCKOO_FILTER_INTERNAL_H

#include "filter/filter.h"

/* ---- parts.c ---- */

/* In which part a key of the shape belongs; the shape by which packets look it up there; and its hash. */
enum filter_part filter_part_of(const struct filter *filter, const struct rule_shape *shape, bool is_timed);
struct rule_shape filter_shape_in(const struct rule_shape *shape, enum filter_part part);
struct hash_value filter_hash(const struct abi_table *in_config, const struct rule_key *key, enum filter_part part);

/* ---- one_key.c ---- */

/* If a key is in both parts, its count of the other part comes to this one. */
void filter_join_counts(struct filter *filter, const struct rule_key *key, enum filter_part part);

/*
 * The end of a record for a tick (0: never). If the end is too far away for a record, the result is 0, and
 * the tool deletes the entry later.
 */
__u32 filter_end(const struct filter *filter, __u32 tick);

/* ---- sizes.c ---- */

/* The slots for which the maps have room, in all tables together, without those of addresses. */
__u64 filter_all_slots(const struct kernel_filter *kernel);

/* The slots of a filter's active table; those for which the maps have room, in each table. */
struct filter_parts filter_slots_of_parts(const struct kernel_filter *kernel);
struct filter_parts filter_room_of_parts(const struct kernel_filter *kernel);

/* Whether the second table of the same maps can have this many slots, and should. */
bool filter_fits_into_maps(const struct filter *filter, struct filter_parts slots);

/* New maps for a table of this many slots, with room to grow and for a second table if that costs little. */
struct kernel_sizes filter_plan_maps(const struct abi_options *options, struct filter_parts slots, __u32 hint_shift);

/*
 * Chooses for these rules, and a table of at least `slots` slots, whether it gets a part for
 * addresses (options->has_addresses), and how large its parts are. `present`: the filter that has
 * another table now; NULL: none. If another tool holds it, its programs stay.
 */
struct filter_parts filter_plan_parts(const struct filter_need *need, const struct filter *present, __u64 slots,
				      struct abi_options *options);

/* ---- rule_entries.c ---- */

/* Collected entries of one part that are not in the table yet. */
struct filter_collected {
	struct table_entry *entry;
	size_t count;
};

/* All entries that a table must have according to the store. */
struct filter_entries {
	struct filter *filter; /* hashes the keys and has the hint bits */
	struct store *store;
	struct shape_list shapes;
	struct filter_collected part[FILTER_PARTS]; /* with room for `room` */
	size_t room, collected, expected;
	bool is_building;                 /* an empty table is filled during collection, by table_build() */
	struct hints hints;               /* set for the collected keys, with their shortcuts */
	struct sharing *sharing;          /* see rule_entries.c; NULL: no key has several rules, or no memory */
	const struct rule *rule;          /* the one that is being collected */
	struct reason *reason;
};

/*
 * Makes room for all keys, or for a part of them if `is_building`. 0 or -ENOMEM. filter_entries_close() also
 * accepts a zeroed struct.
 */
#define FILTER_ENTRIES_AT_ONCE (1ULL << 16)
int filter_entries_open(struct filter_entries *entries, struct filter *filter, struct store *store, bool is_building,
			struct reason *reason);
void filter_entries_close(struct filter_entries *entries);

/* Collects all entries under the filter's present secret. -ENOSPC: they do not fit into the table. */
int filter_entries_collect(struct filter_entries *entries, struct reason *reason);

/* ---- carry_counts.c ---- */

/* Where the counts of an old table go. */
struct filter_heirs {
	const struct filter *old; /* NULL: counts are not carried */
	struct store *store;
	__u32 *slot; /* by old slot: 1 + the new slot that gets its count; 0: none. NULL: not found yet */
	struct abi_counter *carried; /* by old slot: what its heir already has of it */
};

/*
 * Finds the heir of each slot of the old table: the slot of a rule that matches the same packets.
 * Does nothing if they were found before, or if nothing was counted. 0; -ENOMEM; an error of the
 * store.
 */
int filter_heirs_find(struct filter_heirs *heirs, const struct filter *new, struct reason *reason);

/* Adds each count of the old table to that of its heir in `to`; a later call adds what was counted since the call before. */
void filter_heirs_carry(const struct filter_heirs *heirs, const struct filter *to);
void filter_heirs_close(struct filter_heirs *heirs);

/* ---- new_table.c ---- */

/*
 * Fills a table that no packet uses, whatever is in its memory, under a new secret; finds the heirs
 * of counters; publishes its shapes. -ENOSPC: the keys do not fit, under any of several secrets.
 */
int filter_build(struct filter *filter, struct store *store, struct filter_heirs *heirs, struct reason *reason);

/* What filter_build_successor() made. */
struct filter_successor {
	struct filter filter;
	struct filter_heirs heirs;
};

/* ---- rates.c ---- */

/*
 * Gives the keys of the store's rules with a rate their meters. Others lose theirs, unless it
 * `keeps` them. 0; -ENOSPC: all is as before; -ENOMEM; an error of the store or of the wait for
 * packets.
 */
int filter_sync_rates(struct filter *filter, struct store *store, bool keeps, struct reason *reason);

/* ---- publish_shapes.c ---- */

/* Whether packets look for pass rules. */
bool filter_publishes_pass(const struct filter *filter);

/* ---- run_state.c ---- */

/*
 * Call these before and after kernel_replace(): they give a new filter the panic of the old one. `unload` takes no lock:
 * since the config was copied, it may have taken the old filter off interfaces. The second forgets these, too.
 */
void filter_begin_replacing(struct abi_config *config, const struct abi_config *old);
void filter_end_replacing(struct abi_config *config, const struct abi_config *old);

/* ---- filter.c ---- */

/* Sets the reason: the filter belongs to another store. Returns -ESTALE. */
int filter_other_store_reason(const struct kernel_filter *kernel, struct reason *reason);

/* The filter's table in the config. */
FLOW_INLINE struct abi_table *filter_abi_table(const struct filter *filter)
{
	return &filter->kernel.config->table[filter->which];
}

FLOW_INLINE struct hints filter_hints_in(const struct kernel_filter *kernel, const struct abi_table *table)
{
	return (struct hints){ (__u8 *)kernel->map[KERNEL_HINTS].memory + table->first_hint[0], table->hint_shift };
}

FLOW_INLINE struct hints filter_hints(const struct filter *filter)
{
	return filter_hints_in(&filter->kernel, filter_abi_table(filter));
}

/* Call this when packets begin to use a table: whether a move in it must wait for look-ups that have begun. */
void filter_note_readers(struct filter *filter);

/* Reads from the config how many slots are filled. */
void filter_read_used(struct filter *filter);

/* Opens table number filter->which, with its addresses. Both are mapped piece by piece when they are first used. */
int filter_open_table_memory(struct filter *filter, struct bucket_geometry geometry);

/* Maps what table_find() reads: all but the counters. 0 or -errno. */
int filter_map_entries(const struct filter *filter);

/* Sets in the config where each of `tables` tables of so many slots starts in the maps, and how many hints it has. */
void filter_lay_out(const struct kernel_filter *kernel, unsigned int tables, struct filter_parts slots);

#endif
