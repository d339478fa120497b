/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeps the running tables equal to the store: every change to rules goes through here. Joins
 * store, table and kernel; knows nothing of commands and prints nothing.
 *
 * Order: an added rule is in every table before the store commits it, a deleted one leaves the
 * tables after the commit, and shapes are published last. So a crash leaves entries too many, never
 * one of an acknowledged rule too few. While added rules wait for their commit the table's generation
 * is ABI_GENERATION_DIRTY; the next writer that finds it different from the store's makes the table
 * equal to the store again.
 *
 * A table that added rules do not fit into gets no more of them; before the commit a larger one, with
 * all that the store will hold and what the change deletes, takes its place.
 */
#ifndef XDP_CUCKOO_APPLY_H
#define XDP_CUCKOO_APPLY_H

#include "reason.h"
#include "rule.h"
#include "store.h"
#include "target.h"

#define APPLY_NAME_DEFAULT "default"
#define APPLY_STATE_DEFAULT "/var/lib/xdp-cuckoo"

struct apply_deletions; /* keys to take out of the tables after the commit */

struct apply {
	char name[ABI_NAME_BYTES];
	struct store *store;
	struct target *targets;
	size_t targets_count;
	bool has_inserted; /* the change under way has put keys into tables, or let one outgrow its own */
	struct apply_deletions *deletions;
};

/* Whether `name` can name a filter: 1 to 31 of A-Z a-z 0-9 . _ -, not starting with . or -. */
bool apply_is_name(const char *name);

/* Writes the directory of the store NAME under STATE (NULL: the default). -ENAMETOOLONG. */
int apply_state_dir(const char *state, const char *name, char *dir, size_t size);

/*
 * Opens the store for writing and every running filter of that name, adopts filters that nobody has
 * set up, repairs tables that differ. Nothing else writes until apply_close(), which accepts a
 * zeroed or half-built one. -errno with the reason.
 */
int apply_open(struct apply *apply, const char *state, const char *name, struct reason *reason);
void apply_close(struct apply *apply);

/*
 * A change: runs `make`, which calls apply_add(), apply_del() and apply_clear() any number of times.
 * Where that returns 0, all of it is durable and active when this returns 0; where it returns an
 * error, this returns the same, and store and tables are what they were.
 */
int apply_change(struct apply *apply,
		 int (*make)(struct apply *apply, void *context, struct reason *reason),
		 void *context, struct reason *reason);

/*
 * Within a change. apply_add(): 0; -EEXIST (the rule is there); -ENOSPC and -E2BIG end the change.
 * apply_del(): 0; -ENOENT (no such rule).
 */
int apply_add(struct apply *apply, const struct rule *rule, struct reason *reason);
int apply_del(struct apply *apply, const struct rule *rule, struct reason *reason);
int apply_clear(struct apply *apply, struct reason *reason);

/*
 * Loads a new filter of at least `capacity` keys (0: the default, or what the store needs), filled
 * from the store, attached nowhere yet. *target is part of `apply`. -ENOSPC: the store holds more;
 * -EINVAL: no table is that large; -ENOMEM.
 */
int apply_load(struct apply *apply, const struct abi_options *options, __u64 capacity,
	       struct target **target, struct reason *reason);

/* Gives every running table room for `capacity` keys, under traffic; errors as apply_load(), -EBUSY. */
int apply_resize(struct apply *apply, __u64 capacity, struct reason *reason);

/* Compares a table with the store, entry by entry, and makes it equal. *difference is what it took. */
int apply_check(struct apply *apply, struct target *target, struct table_difference *difference,
		struct reason *reason);

/*
 * Which rule decides about the flows that `query` names: a pass rule if any matches, else a drop
 * rule. 0 with *rule; -ENOENT where none matches. Reads the store only.
 */
int apply_test(struct store *store, const struct rule *query, struct rule *rule);

/* Whether a running filter, asked as a packet of these flows would, finds some rule's entry. */
bool apply_matches(const struct kernel_filter *filter, const struct rule *query);

/* Filled slots, 0 to 1. */
double apply_load_factor(const struct kernel_filter *filter);

/* The chance that a packet of the family which no rule matches meets an entry all the same. */
double apply_false_positive_rate(const struct kernel_filter *filter, enum flow_family family);

#endif
