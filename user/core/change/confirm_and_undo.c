// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pending changes: their deadline, confirm and undo. */
#include <errno.h>

#include "change/internal.h"

#define STEP_RULES 4096    /* rules of a change between two moves of its deadline */
#define STEP_KEYS_A_MS 200 /* a new table, the slowest step, takes at least so many keys in a millisecond */

/* Whether a filter waits for `confirm`. A load that waits is not in the store: only the filter knows. */
static bool is_waiting(const struct session *session)
{
	for (size_t i = 0; i < session->filters_count; i++)
		if (session->filters[i].kernel.config->run & ABI_RUN_UNCONFIRMED)
			return true;
	return false;
}

int change_set_pending(struct session *session, __s64 timeout_ms, struct reason *reason)
{
	int error = is_waiting(session) ? -EBUSY : store_set_pending(session->store, timeout_ms);

	if (error == -EBUSY)
		return reason_set(reason, error,
				  "another change waits for xdp-cuckoo%s confirm; confirm it, or "
				  "wait until it has been undone",
				  session_name_option(session->name));
	if (error)
		return change_unwritten_reason(error, reason);
	session->confirm_ms = timeout_ms;
	return change_extend_deadline(session, reason);
}

static int set_unconfirmed(struct session *session, __u64 id, __s64 left_ms, struct reason *reason)
{
	int error = 0;

	for (size_t i = 0; i < session->filters_count && !error; i++)
		error = filter_set_unconfirmed(&session->filters[i], id, left_ms, reason);
	return error;
}

/* The longest steps are a new table of all keys, and the commit. */
int change_extend_deadline(struct session *session, struct reason *reason)
{
	struct store_pending pending;
	struct store_info info;
	__s64 left_ms;
	int error;

	if (!session->confirm_ms)
		return 0;
	error = store_info(session->store, &info);
	if (!error)
		error = store_pending(session->store, &pending);
	if (error)
		return store_unread_reason(error, reason);
	left_ms = session->confirm_ms + info.keys / STEP_KEYS_A_MS;
	session->pending_id = pending.id;
	error = store_extend_deadline(session->store, left_ms);
	return error ? change_unwritten_reason(error, reason) : set_unconfirmed(session, pending.id, left_ms, reason);
}

int change_extend_deadline_by_rule(struct session *session, struct reason *reason)
{
	return ++session->change->steps % STEP_RULES ? 0 : change_extend_deadline(session, reason);
}

void change_start_pending(struct session *session)
{
	struct store_pending pending;
	struct reason ignored;

	if (!session->confirm_ms || store_begin(session->store))
		return;
	if (store_extend_deadline(session->store, session->confirm_ms))
		store_abort(session->store);
	else if (!store_commit(session->store) && !store_pending(session->store, &pending))
		set_unconfirmed(session, pending.id, pending.left_ms, &ignored);
}

/* Confirms all filters. Returns whether one of them was waiting. */
static bool confirm_filters(struct session *session)
{
	const bool was_waiting = is_waiting(session);

	for (size_t i = 0; i < session->filters_count; i++)
		filter_confirm(&session->filters[i]);
	return was_waiting;
}

int change_confirm(struct session *session, bool *was_waiting, struct reason *reason)
{
	int error = change_begin(session, reason);

	*was_waiting = false;
	if (error)
		return error;
	error = store_forget_pending(session->store);
	*was_waiting = !error;
	if (error && error != -ENOENT)
		change_unwritten_reason(error, reason);
	error = change_end(session, error == -ENOENT ? 0 : error, reason);
	if (!error)
		*was_waiting |= confirm_filters(session);
	return error;
}

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

static int undo(struct session *session, struct reason *reason)
{
	struct undo_visit undoing = { session, reason };
	int error = change_begin(session, reason);

	if (error)
		return error;
	session->undone = (struct change_undone){};
	reason->text[0] = '\0';
	error = store_undo_each(session->store, undo_rule, &undoing);
	if (!error)
		error = store_forget_pending(session->store);
	if (error && error != -ENOENT && !reason->text[0])
		reason_set(reason, error, "cannot undo the change: %s", reason_of_write(error));
	error = change_end(session, error, reason);
	if (!error)
		confirm_filters(session);
	return error;
}

/* The guard and the notes of who adds are for rules that an operator gives now. These are those of before. */
int change_undo(struct session *session, struct reason *reason)
{
	const struct guard *guard = session->guard;
	const bool notes_adder = session->notes_adder;
	int error;

	session->guard = NULL;
	session->notes_adder = false;
	error = undo(session, reason);
	session->guard = guard;
	session->notes_adder = notes_adder;
	return error;
}

void change_undo_overdue(struct session *session)
{
	struct store_pending pending;
	struct reason reason;
	int error = store_pending(session->store, &pending);

	if (error)
		store_unread_reason(error, &reason);
	else if (pending.id && pending.left_ms <= 0) {
		error = change_undo(session, &reason);
		session->undone.is_done = !error;
		session->undone.rules = pending.rules;
	}
	if (error)
		session->undone = (struct change_undone){ .error = error, .reason = reason };
}
