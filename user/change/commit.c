// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One change to the rules, from its begin to its end. Read this page first.
 *
 * A change is: apply_begin(), then calls that add and delete rules (rules.c), then apply_commit(). The parts of
 * this file are in that order. change.h says why the order is so; internal.h names the states of a table on the way.
 */
#include <errno.h>
#include <stdlib.h>

#include "change/change.h"
#include "change/internal.h"

/* ---- the end of every change ---- */

void apply_forget_change(struct apply *apply)
{
	if (apply->touched) {
		apply_keys_close(apply->touched);
		free(apply->touched->was_blocked);
	}
	free(apply->touched);
	apply->touched = NULL;
	for (size_t i = 0; i < apply->targets_count; i++) {
		target_drop_successor(&apply->targets[i]);
		apply->targets[i].ahead = TARGET_HAS_NONE;
	}
}

/* Store and tables become what they were before the change. */
static void undo(struct apply *apply)
{
	struct reason ignored;

	store_abort(apply->store);
	for (size_t i = 0; i < apply->targets_count; i++) {
		if (apply_keys_take_back(apply, &apply->targets[i], &ignored))
			apply->is_torn = true;
		if (apply->confirm_ms)
			target_confirm(&apply->targets[i]);
	}
}

void apply_abort(struct apply *apply)
{
	undo(apply);
	apply_forget_change(apply);
}

/* ---- 1. begin ---- */

static int begin(struct apply *apply, struct reason *reason)
{
	int error = 0;

	apply->confirm_ms = 0;
	/*
	 * An earlier change may have failed halfway and left tables that differ from the store. If this change
	 * gave them its generation, nobody would notice. So repair them first.
	 */
	for (size_t i = 0; i < apply->targets_count && apply->is_torn && !error; i++)
		error = target_update(&apply->targets[i], apply->store, apply->name, reason);
	apply->is_torn = error != 0;
	if (error)
		return error;
	for (size_t i = 0; i < apply->targets_count; i++) {
		struct target *target = &apply->targets[i];

		target_begin(target);
		if (apply->is_whole && target_can_prepare(target, table_slots(&target->table)))
			target_defer(target, TARGET_AT_ONCE);
	}
	apply->touched = calloc(1, sizeof(*apply->touched));
	error = apply->touched ? store_begin(apply->store) : -ENOMEM;
	if (!error)
		error = apply_note_blocked(apply);
	return error ? apply_say_unwritten(error, reason) : 0;
}

int apply_begin(struct apply *apply, struct reason *reason)
{
	int error = begin(apply, reason);

	if (error)
		apply_abort(apply);
	return error;
}

/* ---- 2. rules.c adds and deletes rules ---- */

/* ---- 3. the tables get the added keys, or new tables are made ---- */

bool apply_can_replace_all(const struct apply *apply)
{
	for (size_t i = 0; i < apply->targets_count; i++)
		if (!target_can_prepare(&apply->targets[i], table_slots(&apply->targets[i].table)))
			return false;
	return true;
}

int apply_plan_anew(struct apply *apply)
{
	int error = store_plan(apply->store);

	for (size_t i = 0; i < apply->targets_count && !error; i++)
		target_defer(&apply->targets[i], TARGET_NEW_PLAN);
	return error;
}

/* Chooses again which shapes are looked up as which, if that saves enough look-ups or keys. */
static int plan(struct apply *apply, struct reason *reason)
{
	struct store *store = apply->store;
	int error = 0;

	if ((store_has_new_shape(store) || shape_list_is_expanded(store_shape_list(store))) &&
	    apply_can_replace_all(apply) && shape_list_plan_pays(store_shape_list(store)))
		error = apply_plan_anew(apply);
	return error ? apply_say_unread(error, reason) : 0;
}

/* Makes the new tables of the targets that need one. */
static int prepare_successors(struct apply *apply, struct reason *reason)
{
	struct store_info info;
	int error = store_info(apply->store, &info);

	if (error)
		return apply_say_unread(error, reason);
	for (size_t i = 0; i < apply->targets_count && !error; i++) {
		struct target *target = &apply->targets[i];
		const __u64 slots = target_slots_to_grow_to(target, info.keys);

		if (target->is_deferred && slots != table_slots(&target->table))
			target_defer(target, TARGET_TOO_SMALL);
		if (target->cause)
			error = target_prepare(target, apply->store, slots, reason);
	}
	return error;
}

static int prepare(struct apply *apply, struct reason *reason)
{
	int error;

	if (!store_is_changed(apply->store))
		return 0;
	error = plan(apply, reason);
	if (!error)
		error = apply_keys_insert(apply, reason);
	return error ? error : prepare_successors(apply, reason);
}

/* ---- 4. commit ---- */

static int commit(struct apply *apply, bool *is_changed, struct reason *reason)
{
	int error;

	*is_changed = store_is_changed(apply->store);
	error = store_commit(apply->store);
	return error ? apply_say_unwritten(error, reason) : 0;
}

/* ---- 5. the tables lose the deleted keys, or new tables take over ---- */

/* Called only after the commit: before it, the deleted rules are still in the store and must still match. */
static int finish(struct apply *apply, struct reason *reason)
{
	struct store_info info;
	int error = store_info(apply->store, &info);

	if (!error)
		error = store_shapes(apply->store, &apply->touched->shapes);
	if (error)
		return apply_say_unread(error, reason);
	for (size_t i = 0; i < apply->targets_count && !error; i++) {
		struct target *target = &apply->targets[i];

		if (target->successor)
			error = target_succeed(target, reason);
		else if (target->is_deferred)
			error = target_fill(target, apply->store, NULL, reason);
		else
			error = apply_keys_settle(apply, target, reason);
		if (!error)
			error = target_configure(target, apply->store, reason);
	}
	for (size_t i = 0; i < apply->targets_count && !error; i++)
		target_set_generation(&apply->targets[i], info.generation);
	return error;
}

/* ---- the whole ---- */

int apply_commit(struct apply *apply, struct reason *reason)
{
	bool is_changed = false;
	int error = apply_check_guard(apply, reason);

	if (!error)
		error = apply_push_pending(apply, reason);
	if (!error)
		error = prepare(apply, reason);
	if (!error)
		error = apply_push_pending(apply, reason);
	if (!error)
		error = commit(apply, &is_changed, reason);
	if (error) {
		undo(apply);
	} else if (is_changed) {
		error = finish(apply, reason);
		apply->is_torn = error != 0;
		apply_start_pending(apply);
	}
	apply_forget_change(apply);
	return error;
}

int apply_change(struct apply *apply, int (*make)(struct apply *apply, void *context, struct reason *reason),
		 void *context, struct reason *reason)
{
	int error = apply_begin(apply, reason);

	if (error)
		return error;
	error = make(apply, context, reason);
	if (!error)
		return apply_commit(apply, reason);
	apply_abort(apply);
	return error;
}
