/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A target: one running filter, with the table engine over its memory, filled from a store. Knows how
 * to set it up, to make it equal to the store and to publish the shapes in use; not what changes.
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
};

/* Takes `filter` over and opens its table. On failure the target is closed. */
int target_open(struct target *target, struct kernel_filter *filter, struct reason *reason);
void target_close(struct target *target);

/*
 * Brings the table to what the store, which is open for writing, holds; `name` is the filter's.
 * -EEXIST: it is filled from another store; -ENOSPC: the rules do not fit; other -errno.
 */
int target_update(struct target *target, struct store *store, const char *name,
		  struct reason *reason);

/* Makes the table equal to the store, whatever it holds now. */
int target_fill(struct target *target, struct store *store, struct reason *reason);

/* Tells the packet path which shapes the store's rules have. */
int target_publish(struct target *target, struct store *store, struct reason *reason);

/* The one message for a table that `keys` do not fit into: returns -ENOSPC. */
int target_full(const struct target *target, __u64 keys, struct reason *reason);

#endif
