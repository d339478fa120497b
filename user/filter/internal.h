/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of a target share; nobody else includes it. */
#ifndef XDP_CUCKOO_TARGET_INTERNAL_H
#define XDP_CUCKOO_TARGET_INTERNAL_H

#include "filter/rule_entries.h"
#include "filter/filter.h"

/* ---- collect_entries.c ---- */

/* All that the store says a table must hold, as the table engine wants it. */
struct target_keys {
	struct target *target; /* under whose hash key, and with whose hint bits */
	struct store *store;
	struct shape_list shapes;
	struct table_entry *entry; /* those of which the table has not been told: `count`, with room for `room` */
	size_t count, room, collected, expected;
	bool is_building;          /* an empty table, which is filled while keys are collected: see table_build() */
	__u8 *hints;               /* where the hints of the keys are marked: ABI_HINTS */
	struct rule_key *shortcut; /* the keys that are to have shortcuts: `shortcuts` of them */
	size_t shortcuts, shortcuts_room;
	const struct target *predecessor; /* whose counts go on; NULL: nobody's */
	bool is_replanned;                /* since it was made shapes have got other targets */
	__u32 *heir;    /* for each of its slots, whose count goes on: 1 + a slot of the new table; others: none */
	__u32 searches; /* for heirs, that have been made */
	const struct rule *rule; /* the one under way */
	struct reason *reason;
};

/* Makes room for all keys, or, to build, for some. 0; -ENOMEM. Closed by target_keys_close(), which accepts a zeroed one. */
#define TARGET_KEYS_AT_ONCE (1ULL << 16)
int target_keys_open(struct target_keys *keys, struct target *target, struct store *store,
		     const struct target *predecessor, bool is_building, struct reason *reason);
void target_keys_close(struct target_keys *keys);

/* Collects them under the target's present hash key, from the start. -ENOSPC: they do not fit into the table being built. */
int target_keys_collect(struct target_keys *keys, struct reason *reason);

/* Once they are in the target's table: sets their shortcuts. */
void target_keys_shorten(const struct target_keys *keys);

/*
 * And then, with a predecessor: finds for each of its counts a rule that matches those packets, and its slot now; again
 * for what was first counted since.
 */
int target_keys_carry(struct target_keys *keys, struct reason *reason);

/* ---- new_table.c ---- */

/*
 * Fills the table of a filter that no packet looks at, whatever is in its memory, under a fresh hash
 * key. -ENOSPC: the keys do not fit, under any of several hash keys.
 */
int target_build(struct target *target, struct target_keys *keys, struct reason *reason);

/*
 * A panic, and its end, is told to the table that has the place, by whoever holds no lock. Around kernel_replace(): the
 * new table is as the old one; and then, what the old one alone was told before it went holds for the new one, unless
 * that has been told something itself, which was later.
 */
void target_make_heir(struct abi_config *config, const struct abi_config *old);
void target_settle_heir(struct abi_config *config, const struct abi_config *old);

/* Of what target_prepare() made; NULL: nothing. */
struct abi_config *target_successor_config(const struct target *target);

/* ---- filter.c ---- */

int target_store_failed(int error, struct reason *reason);
int target_of_another_store(const struct kernel_filter *filter, struct reason *reason);

/* What the kernel knows of the target's table. */
FLOW_INLINE struct abi_table *target_own(const struct target *target)
{
	return &target->filter.config->table[target->which];
}

FLOW_INLINE __u8 *target_hints(const struct target *target)
{
	return (__u8 *)target->filter.map[KERNEL_HINTS].memory + target_own(target)->first_hint;
}

/* Opens the table that target->which names; of its records and counters it maps what it comes to use. */
int target_open_own(struct target *target, struct bucket_geometry geometry);

/* Says in the config where each table has its room: `tables` of them, of `slots` slots each. */
void target_lay_out(struct abi_config *config, unsigned int tables, __u64 slots);

/* A tick, 0 for none, as the table's records tell it: what ends later than they can tell ends by the tool, and is 0. */
__u32 target_end(const struct target *target, __u32 tick);

/* Whether packets may be in the target's table. */
bool target_is_met(const struct target *target);

#endif
