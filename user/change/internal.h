/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of apply share; nobody else includes it. */
#ifndef XDP_CUCKOO_APPLY_INTERNAL_H
#define XDP_CUCKOO_APPLY_INTERNAL_H

#include "change/change.h"
#include "change/key_list.h"
#include "change/key_set.h"

/* As rules are, and were the change undone that waits to be confirmed. */
struct apply_was_blocked {
	bool now, undone;
};

struct apply_touched {
	/* Keys that rules bring which a change adds: in no table before the change is complete and allowed. */
	struct key_list held[RULE_ACTIONS];
	struct key_set absent; /* of them, those that no rule has any more: they get into no table */
	/* Keys that are in the tables by then: the store says after the commit whether they stay, and until when. */
	struct key_set keys;
	struct key_set retimed; /* of them, those that pass and get another end: they have it before any key drops */
	struct apply_was_blocked *was_blocked; /* of the guard's flows, before the change */
	__u64 steps;                           /* rules of the change */
	bool is_out_of_kinds;                  /* and new targets for shapes make no room for more */
	struct shape_list shapes;              /* as committed */
};

/* Forgets the change under way, if any. */
void apply_forget_change(struct apply *apply);

/* The messages for a store that fails. Return `error`. */
int apply_store_refused(int error, struct reason *reason);
int apply_store_unread(int error, struct reason *reason);

/* Whether every table can be exchanged; and new targets for shapes, which what the tables hold does not go by. */
bool apply_can_replace_all(const struct apply *apply);
int apply_plan_anew(struct apply *apply);

/* ---- entries.c ---- */

/* Whether some table is to have the keys of the change before the commit. */
bool apply_keys_matter(const struct apply *apply);

/* Within a change: a key for every table; a key that has got, or lost, a rule or its end (`is_added`: got). */
int apply_keys_hold(struct apply *apply, const struct rule_key *key, __s64 timeout_ms, struct reason *reason);
int apply_keys_touch(struct apply *apply, const struct rule_key *key, bool is_added, struct reason *reason);

/*
 * Before the commit, at the end of a change: all held keys into all tables, those that pass first, such that no packet
 * is dropped that was not before and will not be after; out again after store_abort(), or as the store has it.
 */
int apply_keys_insert(struct apply *apply, struct reason *reason);
int apply_keys_take_back(struct apply *apply, struct target *target, struct reason *reason);

/* After the commit: out of a table with what no rule has any more, those that pass last. */
int apply_keys_settle(struct apply *apply, struct target *target, struct reason *reason);

void apply_keys_close(struct apply_touched *touched);

/* ---- lockout.c ---- */

/* Before a change: which of the guard's flows are blocked. -ENOMEM. */
int apply_note_blocked(struct apply *apply);

/* ---- settings.c ---- */

/* Where the change is to be confirmed: not before this step of it is over, and that time. A rule is a small one. */
int apply_push_pending(struct apply *apply, struct reason *reason);
int apply_push_pending_by_rule(struct apply *apply, struct reason *reason);

/* It is done: from here on its time is counted. What fails here leaves more of it. */
void apply_start_pending(struct apply *apply);

/* Undoes a change that was to be confirmed and was not in time: see apply->undone. */
void apply_undo_overdue(struct apply *apply);

#endif
