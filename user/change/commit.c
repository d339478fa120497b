// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One change to the rules, from its begin to its end. Read this page first.
 *
 * A change is: change_begin(), then calls that add and delete rules (rules.c), then change_commit(). The parts of
 * this file are in that order. change.h says why the order is so; internal.h names the states of a table on the way.
 */
#include <errno.h>
#include <stdlib.h>

#include "change/change.h"
#include "change/internal.h"

/* ---- the end of every change ---- */

void change_forget(struct session *session)
{
	if (session->change) {
		entries_close(session->change);
		free(session->change->was_blocked);
	}
	free(session->change);
	session->change = NULL;
	for (size_t i = 0; i < session->filters_count; i++) {
		filter_drop_successor(&session->filters[i]);
		session->filters[i].ahead = FILTER_HAS_NONE;
	}
}

/* Store and tables become what they were before the change. */
static void undo(struct session *session)
{
	struct reason ignored;

	store_abort(session->store);
	for (size_t i = 0; i < session->filters_count; i++) {
		if (entries_take_back(session, &session->filters[i], &ignored))
			session->is_torn = true;
		if (session->confirm_ms)
			filter_confirm(&session->filters[i]);
	}
}

void change_abort(struct session *session)
{
	undo(session);
	change_forget(session);
}

/* ---- 1. begin ---- */

static int begin(struct session *session, struct reason *reason)
{
	int error = 0;

	session->confirm_ms = 0;
	/*
	 * An earlier change may have failed halfway and left tables that differ from the store. If this change
	 * gave them its generation, nobody would notice. So repair them first.
	 */
	for (size_t i = 0; i < session->filters_count && session->is_torn && !error; i++)
		error = filter_update(&session->filters[i], session->store, session->name, reason);
	session->is_torn = error != 0;
	if (error)
		return error;
	for (size_t i = 0; i < session->filters_count; i++) {
		struct filter *filter = &session->filters[i];

		filter_begin(filter);
		if (session->is_whole && filter_can_prepare(filter, table_slots(&filter->table)))
			filter_defer(filter, FILTER_AT_ONCE);
	}
	session->change = calloc(1, sizeof(*session->change));
	error = session->change ? store_begin(session->store) : -ENOMEM;
	if (!error)
		error = change_note_blocked(session);
	return error ? change_say_unwritten(error, reason) : 0;
}

int change_begin(struct session *session, struct reason *reason)
{
	int error = begin(session, reason);

	if (error)
		change_abort(session);
	return error;
}

/* ---- 2. rules.c adds and deletes rules ---- */

/* ---- 3. the tables get the added keys, or new tables are made ---- */

bool change_can_replace_all(const struct session *session)
{
	for (size_t i = 0; i < session->filters_count; i++)
		if (!filter_can_prepare(&session->filters[i], table_slots(&session->filters[i].table)))
			return false;
	return true;
}

int change_plan_anew(struct session *session)
{
	int error = store_plan(session->store);

	for (size_t i = 0; i < session->filters_count && !error; i++)
		filter_defer(&session->filters[i], FILTER_NEW_PLAN);
	return error;
}

/* Chooses again which shapes are looked up as which, if that saves enough look-ups or keys. */
static int plan(struct session *session, struct reason *reason)
{
	struct store *store = session->store;
	int error = 0;

	if ((store_has_new_shape(store) || shape_list_is_expanded(store_shape_list(store))) &&
	    change_can_replace_all(session) && shape_list_plan_pays(store_shape_list(store)))
		error = change_plan_anew(session);
	return error ? change_say_unread(error, reason) : 0;
}

/* Makes the new tables of the filters that need one. */
static int prepare_successors(struct session *session, struct reason *reason)
{
	struct store_info info;
	int error = store_info(session->store, &info);

	if (error)
		return change_say_unread(error, reason);
	for (size_t i = 0; i < session->filters_count && !error; i++) {
		struct filter *filter = &session->filters[i];
		const __u64 slots = filter_slots_to_grow_to(filter, info.keys);

		if (filter->is_deferred && slots != table_slots(&filter->table))
			filter_defer(filter, FILTER_TOO_SMALL);
		if (filter->cause)
			error = filter_prepare(filter, session->store, slots, reason);
	}
	return error;
}

static int prepare(struct session *session, struct reason *reason)
{
	int error;

	if (!store_is_changed(session->store))
		return 0;
	error = plan(session, reason);
	if (!error)
		error = entries_insert(session, reason);
	return error ? error : prepare_successors(session, reason);
}

/* ---- 4. commit ---- */

static int commit(struct session *session, bool *is_changed, struct reason *reason)
{
	int error;

	*is_changed = store_is_changed(session->store);
	error = store_commit(session->store);
	return error ? change_say_unwritten(error, reason) : 0;
}

/* ---- 5. the tables lose the deleted keys, or new tables take over ---- */

/* Called only after the commit: before it, the deleted rules are still in the store and must still match. */
static int finish(struct session *session, struct reason *reason)
{
	struct store_info info;
	int error = store_info(session->store, &info);

	if (!error)
		error = store_shapes(session->store, &session->change->shapes);
	if (error)
		return change_say_unread(error, reason);
	for (size_t i = 0; i < session->filters_count && !error; i++) {
		struct filter *filter = &session->filters[i];

		if (filter->successor)
			error = filter_succeed(filter, reason);
		else if (filter->is_deferred)
			error = filter_fill(filter, session->store, NULL, reason);
		else
			error = entries_settle(session, filter, reason);
		if (!error)
			error = filter_configure(filter, session->store, reason);
	}
	for (size_t i = 0; i < session->filters_count && !error; i++)
		filter_set_generation(&session->filters[i], info.generation);
	return error;
}

/* ---- the whole ---- */

int change_commit(struct session *session, struct reason *reason)
{
	bool is_changed = false;
	int error = change_check_guard(session, reason);

	if (!error)
		error = change_push_pending(session, reason);
	if (!error)
		error = prepare(session, reason);
	if (!error)
		error = change_push_pending(session, reason);
	if (!error)
		error = commit(session, &is_changed, reason);
	if (error) {
		undo(session);
	} else if (is_changed) {
		error = finish(session, reason);
		session->is_torn = error != 0;
		change_start_pending(session);
	}
	change_forget(session);
	return error;
}

int change_make(struct session *session, int (*make)(struct session *session, void *context, struct reason *reason),
		void *context, struct reason *reason)
{
	int error = change_begin(session, reason);

	if (error)
		return error;
	error = make(session, context, reason);
	if (!error)
		return change_commit(session, reason);
	change_abort(session);
	return error;
}
