/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeps the running tables equal to the store: every change to rules goes through here. Joins
 * store, table and kernel; knows nothing of commands and prints nothing.
 *
 * Order: nothing is in a table before the change is complete and the guard has let it pass. Then an added rule
 * is in every table before the store commits it, a deleted one leaves the tables after the commit, and shapes
 * are published last. So a crash leaves entries too many, never one of an acknowledged rule too few. Rules that
 * pass come before rules that drop and leave after them, with their shapes: no exception is missed on the way.
 * While added rules wait for their commit the table's generation is ABI_GENERATION_DIRTY; the next writer that
 * finds it different from the store's makes the table equal to the store again.
 *
 * A table that added rules do not fit into, or that is to change at once, or whose shapes get other
 * targets, is left alone by the rest of the change: a new one is made of what the store will hold, before the
 * commit, and takes its place after it.
 */
#ifndef XDP_CUCKOO_APPLY_H
#define XDP_CUCKOO_APPLY_H

#include "base/error_reason.h"
#include "rule/rule.h"
#include "store/store.h"
#include "filter/filter.h"

#define APPLY_NAME_DEFAULT "default"
#define APPLY_STATE_DEFAULT "/var/lib/xdp-cuckoo"

struct apply_touched; /* the keys of the change under way */

/* What became of a change that was not confirmed in time. */
struct apply_undone {
	bool is_done, is_told; /* by this command; on stderr */
	__u64 rules;           /* that the change had added, removed or timed anew */
	int error;             /* it could not be undone, and waits still; 0: it was, or there was none */
	__u64 lost;            /* rules from before it that there was no room for any more */
	struct reason reason;  /* of the error, or of the first that was lost */
};

struct apply {
	char name[ABI_NAME_BYTES];
	struct store *store;
	struct target *targets;
	size_t targets_count;
	/* What a change must leave unblocked, else it is refused with -ECANCELED; NULL: nothing. */
	const struct guard *guard;
	unsigned int owner; /* whose rules a change adds and gives up: STORE_BY_HAND, or a list's number */
	bool is_whole;      /* change at once: a new table takes the place of the old, where that can be done */
	__s64 confirm_ms; /* the change under way is to be confirmed within that, when it is done; 0: it need not be */
	bool is_torn;     /* an earlier change, as it failed, has left tables that differ from the store */
	struct apply_touched *touched;
	struct apply_undone undone;
};

/* Whether `name` can name a filter: 1 to 31 of A-Z a-z 0-9 . _ -, not starting with . or -. */
bool apply_is_name(const char *name);

/* Writes the directory of the store NAME under STATE (NULL: the default). -ENAMETOOLONG. */
int apply_state_dir(const char *state, const char *name, char *dir, size_t size);

/*
 * Opens the store for writing and every running filter of that name, adopts filters that nobody has
 * set up, repairs tables that differ, puts this version's filter in the place of another's, and undoes what was not
 * confirmed in time: apply->undone tells what that came to, which is no reason to fail. Nothing else writes until
 * apply_close(), which accepts a zeroed or half-built one. -errno with the reason; -EPERM too where no filter of the
 * name is seen, and a program may be one that this process may not look at. apply_try_open() does not wait for other
 * writers: -EBUSY. apply_open_to_load() is for who makes a filter run: there that program is no failure, and *unseen
 * tells of it; else *unseen is "".
 */
int apply_open(struct apply *apply, const char *state, const char *name, struct reason *reason);
int apply_open_to_load(struct apply *apply, const char *state, const char *name, struct reason *unseen,
		       struct reason *reason);
int apply_try_open(struct apply *apply, const char *state, const char *name, struct reason *reason);
void apply_close(struct apply *apply);

/* Lets others write: from here on there is no store, and of the filters it can only be told what they are. */
void apply_unlock(struct apply *apply);

/* Where a filter of that name runs on the interface, by whichever of its names; NULL: nowhere. */
const struct kernel_attachment *apply_attachment_on(const struct apply *apply, const char *interface);

/* What a filter that is not to be a copy is like: see apply_load(). */
struct apply_wanted {
	bool is_another; /* than the one that runs: with these, whatever that has */
	struct abi_options options;
	__u64 capacity;
};

struct apply_original {
	bool is_running, is_copied;
	bool is_filtering;           /* neither monitor-only, panic nor unconfirmed */
	char interface[IF_NAMESIZE]; /* the first that the running filter is on */
};

/*
 * Opens, instead of what runs, one target that no packet meets, and that filters whatever the original does: a
 * copy of the first filter that runs under the name, or what a load would make of the store. What runs is only
 * read. Nothing else writes until apply_unlock(). -ENOENT: no filter of the name runs, and there is no such
 * store; -ENOMEM; other -errno.
 */
int apply_open_copy(struct apply *apply, const char *state, const char *name, const struct apply_wanted *wanted,
		    struct apply_original *original, struct reason *reason);

/*
 * A change: runs `make`, which calls apply_add(), apply_del() and apply_clear() any number of times.
 * Where that returns 0, all of it is durable and active when this returns 0; where it returns an
 * error, this returns the same, and store and tables are what they were.
 */
int apply_change(struct apply *apply, int (*make)(struct apply *apply, void *context, struct reason *reason),
		 void *context, struct reason *reason);

/* The same in parts: after apply_begin(), if that returns 0, one of the other two, which say how it ends. */
int apply_begin(struct apply *apply, struct reason *reason);
int apply_commit(struct apply *apply, struct reason *reason);
void apply_abort(struct apply *apply);

/*
 * Within a change. apply_add(), for apply->owner: 0; -EEXIST (that has the rule already); -EALREADY (it was
 * there with another time to end, or had ended: now it ends as this one, or as others want it); -EUSERS (others
 * have it for good); -ENOSPC and -E2BIG end the change. apply_give_up(): 0: it is deleted; -EALREADY: others
 * want it still; -ENOENT: it is no rule of apply->owner. apply_del(), whoever has it: 0; -ENOENT. What else
 * they return ends the change. apply_put_back() is for undoing.
 */
int apply_add(struct apply *apply, const struct rule *rule, struct reason *reason);
int apply_put_back(struct apply *apply, const struct rule *rule, struct reason *reason);
int apply_give_up(struct apply *apply, const struct rule *rule, struct reason *reason);
int apply_del(struct apply *apply, const struct rule *rule, struct reason *reason);
int apply_clear(struct apply *apply, struct reason *reason);

/* Within a change: whether one more rule lets a table grow, which what the change deletes may make needless. */
bool apply_is_full(const struct apply *apply);

/* Deletes the rules that have ended; counts them. */
int apply_expire(struct apply *apply, __u64 *count, struct reason *reason);

/*
 * Keeps settings and puts them in force on every running filter. A change of its own. -EBUSY: not `no-rule drop` while
 * a change waits to be confirmed, whose undo would take pass rules away.
 */
int apply_set(struct apply *apply, const struct store_settings *settings, struct reason *reason);
int apply_set_monitor_only(struct apply *apply, bool is_on, struct reason *reason);

/*
 * Within a change: unless apply_confirm() comes within `timeout_ms` of its end, apply_open() of any later command,
 * or apply_undo(), undoes it. -EBUSY: another change waits already. While it is under way the time is pushed out again
 * and again, so that after a crash everything passes in time as well, but for what the next step may take.
 */
int apply_set_pending(struct apply *apply, __s64 timeout_ms, struct reason *reason);

/* After it: what is left at this moment. */
int apply_pending_left(struct apply *apply, __u64 *id, __s64 *left_ms);

/* Changes of their own. 0; -ENOENT: nothing waits. apply_undo() counts in apply->undone what it must leave out. */
int apply_confirm(struct apply *apply, struct reason *reason);
int apply_undo(struct apply *apply, struct reason *reason);

/*
 * Loads a new filter of at least `capacity` keys (0: the default, or what the store needs), filled
 * from the store, attached nowhere yet. *target is part of `apply`. -ENOSPC: the store holds more;
 * -EINVAL: no table is that large; -ENOMEM.
 */
int apply_load(struct apply *apply, const struct abi_options *options, __u64 capacity, struct target **target,
	       struct reason *reason);

/* Gives every running table room for `capacity` keys, under traffic; errors as apply_load(), -EBUSY. */
int apply_resize(struct apply *apply, __u64 capacity, struct reason *reason);

/*
 * Gives every running filter a table of this kind and of at least `capacity` keys (0: any), and this tool's own
 * program, where it has not; under traffic. *renewed counts them; errors as apply_resize().
 */
int apply_renew(struct apply *apply, const struct abi_options *options, __u64 capacity, size_t *renewed,
		struct reason *reason);

/* Compares a table with the store, entry by entry, and makes it equal. *difference is what it took. */
int apply_check(struct apply *apply, struct target *target, struct table_difference *difference, struct reason *reason);

/*
 * Which rule decides about the flows that `query` names: a pass rule if any matches, else a drop
 * rule; rules that have ended do not count. 0 with *rule; -ENOENT where none matches. Reads the store only.
 */
int apply_test(struct store *store, const struct rule *query, struct rule *rule);

/*
 * Refuses, with -ECANCELED, where rules or policies drop what apply->guard holds, or within a change begin to; or
 * would, were the change undone that waits to be confirmed: what only that lets pass is not to be relied on.
 */
int apply_check_guard(struct apply *apply, struct reason *reason);

/* What drops packets of these flows, if anything: a rule, *rule; or no pass rule where `policy no-rule drop`. */
enum apply_blocker { APPLY_NOTHING, APPLY_RULE, APPLY_POLICY };
enum apply_blocker apply_blocks(struct store *store, const struct rule *query, struct rule *rule);

/* The same, were the change undone that waits to be confirmed; by shapes that rules have now. */
enum apply_blocker apply_blocks_undone(struct store *store, const struct rule *query, struct rule *rule);

/* Whether the running filter has all that the stored rule needs, so that it would match its packets. */
bool apply_has_rule(const struct kernel_filter *filter, struct store *store, const struct rule *rule);

/* Whether a running filter, asked as a packet of these flows would, finds some rule's entry. */
bool apply_matches(const struct kernel_filter *filter, const struct rule *query);

/* Filled slots, 0 to 1. */
double apply_load_factor(const struct kernel_filter *filter);

/* The probes that a packet of the family costs which no rule matches, as a mean over all sources. */
double apply_mean_probes(const struct kernel_filter *filter, enum flow_family family);

/* The chance that such a packet meets an entry all the same. */
double apply_false_positive_rate(const struct kernel_filter *filter, enum flow_family family);

#endif
