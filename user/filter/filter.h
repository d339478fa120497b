/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A target: one running filter, with the table engine over its memory, filled from a store. Knows how
 * to set it up, to make it equal to the store, to put a new table in the place of one that is too small
 * or stuck, and to publish the shapes in use; not what changes.
 */
#ifndef XDP_CUCKOO_TARGET_H
#define XDP_CUCKOO_TARGET_H

#include "kernel/kernel.h"
#include "base/error_reason.h"
#include "store/store.h"
#include "table/table.h"

enum target_state {
	TARGET_UP_TO_DATE, /* its generation was the store's */
	TARGET_SET_UP,     /* nobody had set it up: it is now, with a fresh hash key */
	TARGET_REPAIRED,   /* it differed, and is equal to the store now */
	TARGET_TAKEN_OVER, /* another version's filter ran: this one has its place now */
};

/* Why another table takes a target's place. */
enum target_cause {
	TARGET_STAYS,
	TARGET_TOO_SMALL,
	TARGET_STUCK,    /* keys met in too few buckets: a fresh hash key cures that */
	TARGET_AGED,     /* its records cannot tell when a rule ends: a fresh epoch cures that */
	TARGET_NEW_PLAN, /* shapes have got other targets */
	TARGET_AT_ONCE,  /* so that the whole change is seen at once */
};

/* How much a table has, before its commit, of the change under way. */
enum target_ahead {
	TARGET_HAS_NONE,
	TARGET_HAS_SOME,
	TARGET_HAS_ALL, /* every key that it adds, and nothing else has changed */
};

/* The shapes of a family that are published, or will be because keys of them are in the table. */
struct target_shapes {
	size_t count;
	struct rule_shape shape[2 * ABI_SHAPES_MAX];
	__u64 hint[2 * ABI_SHAPES_MAX]; /* see struct abi_shape */
};

struct target {
	struct kernel_filter filter;
	unsigned int which; /* of the filter's two tables, `table` is */
	bool is_beside;     /* the filter is another target's, whose place this one's table is to take */
	struct table table;
	enum target_state state; /* what target_update() found */
	/* The change under way is not for this table: filling it anew after the commit brings it in... */
	bool is_deferred;
	enum target_cause cause; /* ...or, if not TARGET_STAYS, another table */
	enum target_ahead ahead;
	struct target_successor *successor; /* see target_prepare(); NULL: none */
	__u64 slots_before;                 /* of the table that the present one took the place of; 0: none did */
	struct target_shapes shapes[FLOW_FAMILIES];
};

/* Takes `filter` over and opens its table. On failure the target is closed. */
int target_open(struct target *target, struct kernel_filter *filter, struct reason *reason);
void target_close(struct target *target);

/* Opens the active table, where its memory has been written from outside. On failure the target is closed. */
int target_reopen(struct target *target, struct reason *reason);

/* The geometry of a filter's active table; of one that nobody has set up, what its maps have room for. */
struct bucket_geometry target_geometry(const struct kernel_filter *filter);

/* The slots that each table of a filter can have, and how many tables there is room for: 1 or ABI_TABLES. */
__u64 target_room(const struct kernel_filter *filter);
unsigned int target_tables(const struct kernel_filter *filter);

/* The hints of a filter's active table: ABI_HINTS. */
const __u8 *target_hints_of(const struct kernel_filter *filter);

/* Opens a filter's active table, for looking only. 0; -EINVAL; -ENOMEM. */
int target_open_table(const struct kernel_filter *filter, struct table *table);

/*
 * Loads a new, empty filter of at least `slots` slots, attached nowhere, not set up. -ENOMEM where the
 * memory available is less than it and filling it with `keys` keys need.
 */
int target_create(struct target *target, const struct abi_options *options, __u64 slots, __u64 keys,
		  struct reason *reason);

/* The same, with maps of the sizes that `filter` has. */
int target_create_like(struct target *target, const struct kernel_filter *filter, struct reason *reason);

/*
 * Brings the table to what the store, which is open for writing, holds; `name` is the filter's. A table
 * that is too small is replaced by a larger one. -EEXIST: it is filled from another store; -ENOSPC: the
 * rules do not fit, and it cannot be replaced; other -errno.
 */
int target_update(struct target *target, struct store *store, const char *name, struct reason *reason);

/*
 * The same of a filter of another version, which keeps filtering until this one's, made of the store, has its place on
 * every interface. It stays the caller's. What it has counted does not go on. -EBUSY: another tool holds it; on failure
 * nothing has changed.
 */
int target_take_over(struct target *target, struct kernel_filter *filter, struct store *store, struct reason *reason);

/* Makes the table equal to the store, in place, whatever it holds now; *difference may be NULL. */
int target_fill(struct target *target, struct store *store, struct table_difference *difference, struct reason *reason);

/* Whether so many more keys are as many as the table shall get: beyond, they would rather need a larger one. */
bool target_has_room(const struct target *target, __u64 keys);

/*
 * The slots of a table that takes this one's place because `keys` keys did not fit: more, where they are
 * too many; as many, where they only met in too few buckets, which a fresh hash key cures.
 */
__u64 target_slots_to_grow_to(const struct target *target, __u64 keys);

/* Whether target_prepare() can make such a table: in the filter's own maps, or in new ones if no other tool holds it. */
bool target_can_prepare(const struct target *target, __u64 slots);

/*
 * Makes a table of at least `slots` slots, with a fresh hash key, that can take this one's place: filled with
 * all that the store holds, in its open transaction if there is one; no packet meets it yet. It is made in the
 * filter's own maps if they have room, else in new ones. -ENOSPC: more than `slots` hold; -ENOMEM: memory is short;
 * -EBUSY: another tool holds the filter. Then there is none.
 */
int target_prepare(struct target *target, struct store *store, __u64 slots, struct reason *reason);

/*
 * Puts what target_prepare() made in the place of this table, on every interface, while packets go on
 * meeting one of the two. Counters go on. On failure the old table goes on, and the new one is given up.
 */
int target_succeed(struct target *target, struct reason *reason);

/* Both in one, from a store without an open transaction; target_rebuild_as(): a table of another kind. */
int target_rebuild(struct target *target, struct store *store, __u64 slots, struct reason *reason);
int target_rebuild_as(struct target *target, struct store *store, const struct abi_options *options, __u64 slots,
		      struct reason *reason);

/* Gives up what target_prepare() made, if anything. */
void target_drop_successor(struct target *target);

/* Starts a change; leaves the rest of it to another table. */
void target_begin(struct target *target);
void target_defer(struct target *target, enum target_cause cause);

/*
 * Adds a key, which ends at a tick, so that packets find it as soon as its shape is published. 0; -ENOSPC; -E2BIG: too
 * many shapes in one change; -ENOMEM: see target_unmapped().
 */
int target_insert(struct target *target, const struct rule_key *key, __u32 tick);

/* Whether the table is so old that its records soon cannot tell ends such as this tick, while those of a new one can. */
bool target_has_aged(const struct target *target, __u32 tick);

/*
 * The tick (kernel/ticks.h) at which a timeout ends that the store has told, whose time may have stood still for a
 * while. Timeout 0 never ends: 0.
 */
int target_tick(const struct store *store, __s64 timeout_ms, __u32 *tick, struct reason *reason);

/*
 * Takes a key that is there out again, and makes it end at another tick, of which compact tables know nothing.
 * 0; -ENOENT; -ENOMEM: see target_unmapped().
 */
int target_delete(struct target *target, const struct rule_key *key);
int target_set_end(struct target *target, const struct rule_key *key, __u32 tick);

/* The hint bit of a key's shape, chosen at its first key. -E2BIG: too many shapes in one change. */
int target_hint(struct target *target, const struct rule_shape *shape, __u64 *hint);

/* Takes over how the store wants filters to run: policies, monitor-only, what waits to be confirmed. */
int target_configure(struct target *target, struct store *store, struct reason *reason);

/*
 * From the tick on that is `left_ms` away the filter passes everything, until target_confirm(), or until
 * target_configure() finds that the store's change `pending_id` waits no more; 0: of a load, which no store knows.
 * What target_prepare() has made does the same.
 */
int target_set_unconfirmed(struct target *target, __u64 pending_id, __s64 left_ms, struct reason *reason);
void target_confirm(struct target *target);

/* Tells the packet path which shapes to look for, by the store's rules, and whether by their hints. */
int target_publish(struct target *target, struct store *store, struct reason *reason);

/*
 * Whether keys that pass wait for their shape to be published, in a family in which packets are dropped; publishes
 * such shapes beside all that are. 0 or -errno with the reason.
 */
bool target_has_passing_to_publish(const struct target *target);
int target_publish_passing(struct target *target, struct reason *reason);

/* Remembers in the filter's config what the engine counts: for the next command, and for status. */
void target_note_counts(struct target *target);

/* That, and says of which generation of the store the table is, or ABI_GENERATION_DIRTY. */
void target_set_generation(struct target *target, __u64 generation);

/* The one message for a table of which a part cannot be mapped: returns -ENOMEM. */
int target_unmapped(struct reason *reason);

/* The one message for a table that `keys` do not fit into: returns -ENOSPC. */
int target_full(const struct target *target, __u64 keys, struct reason *reason);

#endif
