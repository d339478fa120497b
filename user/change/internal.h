/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the files of change/ share; no other folder includes this.
 *
 * The states of one target during a change. The members are in struct target (filter/filter.h), except
 * is_torn:
 *
 *   in place    !is_deferred. Keys of the change go into the running table, as `ahead` says:
 *                 TARGET_HAS_NONE  no key yet: an abort has nothing to take back
 *                 TARGET_HAS_SOME  perhaps some keys, or new ends or shapes: an abort refills the table
 *                 TARGET_HAS_ALL   exactly the added keys: an abort deletes them again
 *               After the commit, apply_keys_settle() deletes keys and sets ends.
 *   refill      is_deferred, cause TARGET_STAYS. No keys enter before the commit. target_fill() makes it
 *               equal to the store after the commit. apply_clear() does this.
 *   replace     is_deferred, cause says why. prepare_successors() makes the new table before the commit: then
 *               `successor` is set. target_succeed() switches to it after the commit.
 *
 * target_begin() puts a target in place. target_defer() moves it to refill or replace, at any time before the
 * commit; the first cause stays, and a target never moves back. If it already took keys, `ahead` still says
 * so for an abort. A refill whose keys do not fit becomes a replace before the commit. apply_forget_change()
 * resets `ahead` and `successor`. is_deferred and cause stay until the next target_begin(): messages use the
 * cause.
 *
 *   torn        apply->is_torn: an abort, or the work after a commit, failed: a table differs from the store.
 *               The next apply_begin() repairs all tables before anything else.
 */
#ifndef XDP_CUCKOO_APPLY_INTERNAL_H
#define XDP_CUCKOO_APPLY_INTERNAL_H

#include "change/change.h"
#include "change/key_list.h"
#include "change/key_set.h"

/* Whether a flow of the guard was blocked before the change. */
struct apply_was_blocked {
	bool now;    /* by the rules of that time */
	bool undone; /* as if the pending change were undone */
};

struct apply_touched {
	/* Keys of added rules, by action. They enter the tables when the change is complete and allowed. */
	struct key_list held[RULE_ACTIONS];
	/* Held keys whose rules the same change has deleted again. They enter no table. */
	struct key_set absent;
	/*
	 * Keys that are in the tables before the commit. The store says after it whether each stays, and
	 * until when.
	 */
	struct key_set keys;
	/* Keys in `keys` of pass rules with a new end. They get that end before any drop key enters. */
	struct key_set retimed;
	struct apply_was_blocked *was_blocked; /* for each flow of the guard */
	__u64 steps;                           /* rules that the change has added or deleted so far */
	bool is_out_of_kinds;                  /* no shape is free, even with prefix lengths joined anew */
	struct shape_list shapes;              /* as committed */
};

/* Ends the current change, if any: frees its keys and the new tables that were not used. */
void apply_forget_change(struct apply *apply);

/* These set the reason for a failed write to, or read from, the store. They return `error`. */
int apply_say_unwritten(int error, struct reason *reason);
int apply_say_unread(int error, struct reason *reason);

/*
 * apply_plan_anew() joins prefix lengths in a new way, so that shapes need fewer probes. No running table
 * fits that: all are replaced. apply_can_replace_all(): whether that is possible.
 */
bool apply_can_replace_all(const struct apply *apply);
int apply_plan_anew(struct apply *apply);

/* ---- entries.c ---- */

/* Whether any table takes the keys of the change before the commit. */
bool apply_keys_matter(const struct apply *apply);

/*
 * Within a change. apply_keys_hold() keeps a new key until the change is complete. apply_keys_touch() notes a
 * key that is in the tables and whose rules or end change; is_added: it got a rule or another end, else it
 * lost one.
 */
int apply_keys_hold(struct apply *apply, const struct rule_key *key, __s64 timeout_ms, struct reason *reason);
int apply_keys_touch(struct apply *apply, const struct rule_key *key, bool is_added, struct reason *reason);

/*
 * apply_keys_insert() puts the held keys into all tables before the commit, those of pass rules first: no
 * packet is dropped that was passed before the change and is passed after it. apply_keys_take_back() makes a
 * table equal to the store again, after store_abort().
 */
int apply_keys_insert(struct apply *apply, struct reason *reason);
int apply_keys_take_back(struct apply *apply, struct target *target, struct reason *reason);

/*
 * After the commit: deletes the keys that no rule needs from a table, those of pass rules last. Publishes
 * shapes.
 */
int apply_keys_settle(struct apply *apply, struct target *target, struct reason *reason);

void apply_keys_close(struct apply_touched *touched);

/* ---- lockout.c ---- */

/* Before a change: notes which flows of the guard are blocked. 0; -ENOMEM. */
int apply_note_blocked(struct apply *apply);

/* ---- settings.c ---- */

/*
 * Moves the deadline of a pending change on, so that it is not undone while its next step runs. ..._by_rule()
 * does so only now and then, since a rule is a small step.
 */
int apply_push_pending(struct apply *apply, struct reason *reason);
int apply_push_pending_by_rule(struct apply *apply, struct reason *reason);

/* The change is complete: starts the time to confirm. If that fails, the operator only gets more time. */
void apply_start_pending(struct apply *apply);

/* Undoes the pending change if its time is over. apply->undone has the result. */
void apply_undo_overdue(struct apply *apply);

#endif
