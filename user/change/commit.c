// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A change to the rules, all of it or nothing: into the tables, into the store, out of the tables. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "change/change.h"
#include "change/internal.h"

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

int apply_store_refused(int error, struct reason *reason)
{
	return reason_set(reason, error, "cannot write to the store: %s", reason_of_write(error));
}

int apply_store_unread(int error, struct reason *reason)
{
	return reason_set(reason, error, "cannot read the store: %s", strerror(-error));
}

/* ---- beginning ---- */

/* No change makes torn tables look whole: they are equal to the store before it begins. */
static int mend(struct apply *apply, struct reason *reason)
{
	int error = 0;

	for (size_t i = 0; i < apply->targets_count && apply->is_torn && !error; i++)
		error = target_update(&apply->targets[i], apply->store, apply->name, reason);
	apply->is_torn = error != 0;
	return error;
}

static int begin(struct apply *apply, struct reason *reason)
{
	int error;

	apply->confirm_ms = 0;
	error = mend(apply, reason);
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
	return error ? apply_store_refused(error, reason) : 0;
}

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

/* ---- before the commit ---- */

static bool fits(const struct target *target, const struct store_info *info)
{
	return target_slots_to_grow_to(target, info->keys) == table_slots(&target->table);
}

static bool has_reason_to_plan(const struct store *store)
{
	return store_has_new_shape(store) || shape_list_is_expanded(store_shape_list(store));
}

/* Targets for the shapes anew, where that pays: then no table of now takes keys. */
static int plan(struct apply *apply, struct reason *reason)
{
	int error = 0;

	if (has_reason_to_plan(apply->store) && apply_can_replace_all(apply) &&
	    shape_list_plan_pays(store_shape_list(apply->store)))
		error = apply_plan_anew(apply);
	return error ? apply_store_unread(error, reason) : 0;
}

/* New tables for those that this one's keys do not fit into, and for those that change at once. */
static int prepare_successors(struct apply *apply, struct reason *reason)
{
	struct store_info info;
	int error = store_info(apply->store, &info);

	if (error)
		return apply_store_unread(error, reason);
	for (size_t i = 0; i < apply->targets_count && !error; i++) {
		struct target *target = &apply->targets[i];

		if (target->is_deferred && !fits(target, &info))
			target_defer(target, TARGET_TOO_SMALL);
		if (target->cause)
			error = target_prepare(target, apply->store, target_slots_to_grow_to(target, info.keys),
					       reason);
	}
	return error;
}

/* The change is complete, and allowed: from here on it meets packets. */
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

/* Tables go back to what the store holds. */
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

/* ---- after the commit ---- */

static int finish_target(struct apply *apply, struct target *target, struct reason *reason)
{
	int error;

	if (target->successor)
		error = target_succeed(target, reason);
	else if (target->is_deferred)
		error = target_fill(target, apply->store, NULL, reason);
	else
		error = apply_keys_settle(apply, target, reason);
	return error ? error : target_configure(target, apply->store, reason);
}

/* What must wait for the commit: a rule that is still stored is never missing from a table. */
static int finish(struct apply *apply, struct reason *reason)
{
	struct store_info info;
	int error = store_info(apply->store, &info);

	if (!error)
		error = store_shapes(apply->store, &apply->touched->shapes);
	if (error)
		return apply_store_unread(error, reason);
	for (size_t i = 0; i < apply->targets_count && !error; i++)
		error = finish_target(apply, &apply->targets[i], reason);
	for (size_t i = 0; i < apply->targets_count && !error; i++)
		target_set_generation(&apply->targets[i], info.generation);
	return error;
}

static int commit(struct apply *apply, bool *is_changed, struct reason *reason)
{
	int error;

	*is_changed = store_is_changed(apply->store);
	error = store_commit(apply->store);
	return error ? apply_store_refused(error, reason) : 0;
}

int apply_begin(struct apply *apply, struct reason *reason)
{
	int error = begin(apply, reason);

	if (error)
		apply_abort(apply);
	return error;
}

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

void apply_abort(struct apply *apply)
{
	undo(apply);
	apply_forget_change(apply);
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
