// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One change to the rules, from its begin to its end. Read this page first.
 *
 * A change is: change_begin(), then calls that add and delete rules (rules.c), then change_commit(). The parts of
 * this file are in that order. change.h gives the reasons for this order. filter_change.c has the states of a table
 * during a change.
 */
#include <errno.h>
#include <stdlib.h>

#include "change/internal.h"

/* ---- the end of every change ---- */

void change_forget(struct session *session)
{
	if (session->open_change) {
		pending_keys_close(&session->open_change->keys);
		free(session->open_change->was_blocked);
	}
	free(session->open_change);
	session->open_change = NULL;
	for (size_t i = 0; i < session->filters_count; i++)
		filter_drop_successor(&session->filters[i]);
}

/* After an error the table differs from the store, and the next change repairs it. */
static void abort_filter(struct session *session, struct filter *filter)
{
	struct reason ignored;
	struct store_info info;

	if (store_info(session->store, &info) || filter->kernel.config->generation == info.generation)
		return;
	if (filter->way == FILTER_KEYS_IN && !entries_take_back(session, filter))
		filter_set_generation(filter, info.generation);
	else
		filter_refill(filter, session->store, &ignored);
}

/* Store and tables become what they were before the change. */
void change_abort(struct session *session)
{
	struct reason ignored;

	store_abort(session->store);
	for (size_t i = 0; i < session->filters_count; i++) {
		abort_filter(session, &session->filters[i]);
		if (session->confirm_ms)
			filter_confirm(&session->filters[i]);
		filter_configure(&session->filters[i], session->store, &ignored);
	}
	session->confirm_ms = 0;
	change_forget(session);
}

/* ---- 1. begin ---- */

int change_begin(struct session *session, struct reason *reason)
{
	struct store_info info;
	int error = store_info(session->store, &info);

	if (error)
		return store_unread_reason(error, reason);
	/*
	 * An earlier change may have failed halfway and left tables that differ from the store. If this change gave these
	 * tables its own generation, nobody would notice the difference.
	 */
	for (size_t i = 0; i < session->filters_count && !error; i++)
		if (session->filters[i].kernel.config->generation != info.generation)
			error = filter_update(&session->filters[i], session->store, session->name, reason);
	if (error)
		return error;
	session->confirm_ms = 0;
	for (size_t i = 0; i < session->filters_count; i++)
		filter_change_begin(&session->filters[i]);
	session->open_change = calloc(1, sizeof(*session->open_change));
	error = session->open_change ? store_begin(session->store) : -ENOMEM;
	if (!error)
		error = change_record_blocked(session);
	if (!error)
		return 0;
	change_abort(session);
	return change_unwritten_reason(error, reason);
}

/* ---- 2. rules.c adds and deletes rules ---- */

/* ---- 3. the tables get the added keys, or new tables are made ---- */

/* Makes the new table, if one is needed. `keys`: of the store after the change. */
static int prepare_filter(const struct session *session, struct filter *filter, struct filter_parts keys,
			  struct reason *reason)
{
	const __u64 slots = filter_slots_to_grow_to(filter, keys);

	if (filter->way == FILTER_REFILL && slots != filter_slots(&filter->kernel))
		filter_change_replace(filter, FILTER_TOO_SMALL);
	/* After the commit it would be too late to refuse. */
	if (filter->way == FILTER_REFILL && !filter_has_room(filter, keys))
		return filter_full_reason(filter, keys.records + keys.addresses, reason);
	return filter->way == FILTER_REPLACE ? filter_build_successor(filter, session->store, NULL, slots, reason) : 0;
}

static int prepare(struct session *session, struct reason *reason)
{
	const struct shape_list *shapes = store_shape_list(session->store);
	struct filter_need need;
	int error = 0;

	if (!store_is_changed(session->store))
		return 0;
	/* Choose again which shapes are joined for look-up, if it must be, or saves enough look-ups or keys. */
	if (shapes->must_plan || ((store_has_new_shape(session->store) || shape_list_is_expanded(shapes)) &&
				  change_can_replace_all(session) && shape_list_plan_pays(shapes))) {
		error = store_plan(session->store);
		change_replace_all(session);
	}
	if (error)
		return store_unread_reason(error, reason);
	for (size_t i = 0; i < session->filters_count && !error; i++)
		error = filter_begin_monitor_only(&session->filters[i], session->store, reason);
	if (!error)
		error = entries_insert(session, reason);
	if (error)
		return error;
	error = filter_read_need(session->store, &need);
	if (error)
		return store_unread_reason(error, reason);
	for (size_t i = 0; i < session->filters_count && !error; i++)
		error = prepare_filter(session, &session->filters[i], need.keys, reason);
	return error;
}

/* ---- 4. after the commit, the tables lose the deleted keys, or new tables take over ---- */

static int finish_filter(struct session *session, struct filter *filter, struct reason *reason)
{
	switch (filter->way) {
	case FILTER_REPLACE:
		return filter_switch(filter, reason);
	case FILTER_REFILL:
		return filter_refill(filter, session->store, reason);
	default:
		return entries_finish(session, filter, reason);
	}
}

/*
 * Called only after the commit: before it, the deleted rules are still in the store and must still match. A filter that
 * fails does not keep the others from the change; the next change repairs it.
 */
static int finish(struct session *session, struct reason *reason)
{
	struct reason ignored = {};
	struct store_info info;
	int error = store_info(session->store, &info), failed = 0;

	if (!error)
		error = store_shapes(session->store, &session->open_change->shapes);
	if (error)
		return store_unread_reason(error, reason);
	for (size_t i = 0; i < session->filters_count; i++) {
		struct filter *filter = &session->filters[i];
		struct reason *why = failed ? &ignored : reason;

		error = finish_filter(session, filter, why);
		if (!error)
			error = filter_configure(filter, session->store, why);
		if (!error)
			filter_set_generation(filter, info.generation);
		failed = failed ? failed : error;
	}
	return failed;
}

/* ---- the whole ---- */

void (*change_hold_signals)(bool is_held);

static void hold_signals(bool is_held)
{
	if (change_hold_signals)
		change_hold_signals(is_held);
}

/*
 * The change is stored, but a table is not equal to the store. A change that waits for `confirm` is undone. If that fails,
 * confirm_ms makes the caller start the watchdog.
 */
static int say_unfinished(struct session *session, __s64 confirm_ms, int error, struct reason *reason)
{
	const struct reason why = *reason;
	struct reason ignored;
	const bool is_undone = confirm_ms && !change_undo(session, &ignored);

	session->confirm_ms = is_undone ? 0 : confirm_ms;
	return reason_set(reason, error, "%.400s; %s", why.text,
			  is_undone ? "the change is undone" :
				      "the rules are stored, and the next change repairs the filter");
}

/* All that packets see. Signals are held. */
static int carry_out(struct session *session, struct reason *reason)
{
	const bool is_changed = store_is_changed(session->store);
	const __s64 confirm_ms = session->confirm_ms;
	int error = change_extend_deadline(session, reason);

	if (!error)
		error = prepare(session, reason);
	if (!error)
		error = change_extend_deadline(session, reason);
	if (!error) {
		error = store_commit(session->store);
		if (error)
			change_unwritten_reason(error, reason);
	}
	if (error) {
		change_abort(session);
		return error;
	}
	if (is_changed) {
		error = finish(session, reason);
		change_start_pending(session);
	}
	change_forget(session);
	return error ? say_unfinished(session, confirm_ms, error, reason) : 0;
}

int change_commit(struct session *session, struct reason *reason)
{
	int error = change_check_guard(session, reason);

	if (!error && session->is_dry_run)
		error = store_unread_reason(store_info(session->store, &session->planned), reason);
	if (error || session->is_dry_run) {
		change_abort(session);
		return error;
	}
	hold_signals(true);
	error = carry_out(session, reason);
	hold_signals(false);
	return error;
}

int change_end(struct session *session, int error, struct reason *reason)
{
	if (!error)
		return change_commit(session, reason);
	change_abort(session);
	return error;
}

/* ---- the undo of a pending change ---- */

struct undo_visit {
	struct session *session;
	struct reason *reason;
};

static int undo_rule(const struct rule *rule, bool is_back, void *context)
{
	const struct undo_visit *undoing = context;
	struct change_undone *undone = &undoing->session->undone;
	enum store_deleted ignored;
	int error;

	if (!is_back)
		return change_del(undoing->session, rule, &ignored, undoing->reason);
	error = rule->timeout_ms < 0 ? 0 : change_put_back(undoing->session, rule, undoing->reason);
	if (error != -E2BIG)
		return error;
	/* Since the change, other commands have used up the shapes. This rule is lost, but the rest is undone. */
	if (!undone->lost++)
		undone->reason = *undoing->reason;
	undoing->reason->text[0] = '\0';
	return 0;
}

/* The guard is for rules that an operator gives now. These are those of before. */
int change_undo(struct session *session, struct reason *reason)
{
	struct undo_visit undoing = { session, reason };
	const struct guard *guard = session->guard;
	int error;

	session->guard = NULL;
	error = change_begin(session, reason);
	if (!error) {
		session->undone = (struct change_undone){};
		reason->text[0] = '\0';
		error = store_undo_each(session->store, undo_rule, &undoing);
		if (!error)
			error = store_forget_pending(session->store);
		if (error && error != -ENOENT && !reason->text[0])
			reason_set(reason, error, "cannot undo the change: %s", reason_of_write(error));
		error = change_end(session, error, reason);
	}
	if (!error)
		change_confirm_filters(session);
	session->guard = guard;
	return error;
}
