/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A target: one running filter, with the table engine over its memory, filled from a store. Knows how
 * to set it up, to make it equal to the store, to put a new table in the place of one that is too small
 * or stuck, and to publish the shapes in use; not what changes.
 */
#ifndef XDP_CUCKOO_TARGET_H
#define XDP_CUCKOO_TARGET_H

#include "kernel.h"
#include "reason.h"
#include "store.h"
#include "table.h"

enum target_state {
	TARGET_UP_TO_DATE, /* its generation was the store's */
	TARGET_SET_UP,     /* nobody had set it up: it is now, with a fresh hash key */
	TARGET_REPAIRED,   /* it differed, and is equal to the store now */
};

struct target {
	struct kernel_filter filter;
	struct table table;
	enum target_state state; /* what target_update() found */
	bool is_outgrown;	 /* the change under way needs a new table: this one lacks its keys */
	__u64 slots_before;	 /* of the table that the present one took the place of; 0: none did */
};

/* Takes `filter` over and opens its table. On failure the target is closed. */
int target_open(struct target *target, struct kernel_filter *filter, struct reason *reason);
void target_close(struct target *target);

/* The geometry of a filter's table; of one that nobody has set up, as its maps are. */
struct bucket_geometry target_geometry(const struct kernel_filter *filter);

/* Opens a table over a filter's memory, for looking only. 0; -EINVAL; -ENOMEM. */
int target_open_table(const struct kernel_filter *filter, struct table *table);

/*
 * Loads a new, empty filter of at least `slots` slots, attached nowhere, not set up. -ENOMEM where the
 * memory available is less than it and filling it with `keys` keys need.
 */
int target_create(struct target *target, const struct abi_options *options, __u64 slots, __u64 keys,
		  struct reason *reason);

/*
 * Brings the table to what the store, which is open for writing, holds; `name` is the filter's. A table
 * that is too small is replaced by a larger one. -EEXIST: it is filled from another store; -ENOSPC: the
 * rules do not fit, and it cannot be replaced; other -errno.
 */
int target_update(struct target *target, struct store *store, const char *name,
		  struct reason *reason);

/* Makes the table equal to the store, in place, whatever it holds now; *difference may be NULL. */
int target_fill(struct target *target, struct store *store, struct table_difference *difference,
		struct reason *reason);

/* Whether the table is as full as it shall get: the next insert would rather need a larger one. */
bool target_has_reached_limit(const struct target *target);

/*
 * The slots of a table that takes this one's place because `keys` keys did not fit: more, where they are
 * too many; as many, where they only met in too few buckets, which a fresh hash key cures.
 */
__u64 target_slots_to_grow_to(const struct target *target, __u64 keys);

/*
 * Puts a table of at least `slots` slots, with a fresh hash key, in the place of this one, on every
 * interface, while packets go on meeting one of the two: filled with all that the store holds, in its
 * open transaction if there is one, and `extra` keys beside. Counters go on. On failure the old table
 * goes on. -ENOSPC: more than `slots` hold, -ENOMEM: memory is short, -EBUSY: held by another tool.
 */
int target_rebuild(struct target *target, struct store *store, __u64 slots,
		   const struct rule_key *extra, size_t extra_count, struct reason *reason);

/* Tells the packet path which shapes the store's rules have. */
int target_publish(struct target *target, struct store *store, struct reason *reason);

/* Remembers in the filter's config what the engine counts: for the next command, and for status. */
void target_note_counts(struct target *target);

/* The one message for a table that `keys` do not fit into: returns -ENOSPC. */
int target_full(const struct target *target, __u64 keys, struct reason *reason);

#endif
