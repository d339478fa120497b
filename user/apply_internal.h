/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of apply share; nobody else includes it. */
#ifndef XDP_CUCKOO_APPLY_INTERNAL_H
#define XDP_CUCKOO_APPLY_INTERNAL_H

#include "apply.h"
#include "key_set.h"

/*
 * Keys that are in the tables, and of which the store is to be asked after the commit: whether they
 * stay, and when they end.
 */
struct apply_touched {
	struct key_set keys;
	bool *was_blocked; /* of the guard's flows, before the change */
	struct shape_list shapes; /* as committed */
};

/* Forgets the change under way, if any. */
void apply_forget_change(struct apply *apply);

/* The messages for a store that fails. Return `error`. */
int apply_store_refused(int error, struct reason *reason);
int apply_store_unread(int error, struct reason *reason);

/* Of every table: of the store, or ABI_GENERATION_DIRTY. */
void apply_set_generation(struct apply *apply, __u64 generation);

/* Whether every table can be exchanged; and new targets for shapes, which what the tables hold does not go by. */
bool apply_can_replace_all(const struct apply *apply);
int apply_plan_anew(struct apply *apply);

/* ---- apply_guard.c ---- */

/* Before a change: which of the guard's flows are blocked. -ENOMEM. */
int apply_note_blocked(struct apply *apply);

/* ---- */

/* Undoes a change that was to be confirmed and was not in time. 0, also where there is none. */
int apply_undo_overdue(struct apply *apply, struct reason *reason);

#endif
