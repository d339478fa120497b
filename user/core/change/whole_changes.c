// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Calls that are a whole change each: settings, `confirm`, and the undo that is due. */
#include <errno.h>

#include "change/internal.h"

/* ---- settings ---- */

int change_settings(struct session *session, const struct store_settings *settings, __s64 confirm_ms,
		    struct reason *reason)
{
	struct store_settings undone;
	struct store_pending pending;
	int error = store_undone_settings(session->store, &undone);

	if (!error)
		error = store_pending(session->store, &pending);
	if (error)
		return store_unread_reason(error, reason);
	/* With `no-rule drop` only pass rules let packets through, and the undo removes those of the pending change. */
	if (pending.rules && settings->policy[OUTCOME_NO_RULE] == VERDICT_DROP &&
	    undone.policy[OUTCOME_NO_RULE] != VERDICT_DROP)
		return reason_set(reason, -EBUSY,
				  "a change waits for xdp-cuckoo%s confirm; if it is undone, its pass rules go, but "
				  "the policy 'no-rule drop' stays; confirm it first",
				  session_name_option(session->name));
	error = change_begin(session, reason);
	if (error)
		return error;
	if (confirm_ms)
		error = change_set_pending(session, confirm_ms, reason);
	if (!error) {
		error = store_set_settings(session->store, settings);
		if (error)
			reason_set(reason, error, "cannot keep the settings: %s", reason_of_write(error));
	}
	error = change_end(session, error, reason);
	for (size_t i = 0; i < session->filters_count && !error; i++)
		if (settings->is_monitor_only != store_settings_kept.is_monitor_only)
			session->filters[i].kernel.config->keeps_monitor_only = true;
	return error;
}

int change_set_monitor_only(struct session *session, bool is_on, struct reason *reason)
{
	struct store_settings settings = store_settings_kept;

	settings.is_monitor_only = is_on;
	return change_settings(session, &settings, 0, reason);
}

/* ---- a change that waits ---- */

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
		*was_waiting |= change_confirm_filters(session);
	return error;
}

void change_undo_overdue(struct session *session)
{
	struct store_pending pending;
	struct reason reason;
	int error = store_pending(session->store, &pending);

	if (error)
		store_unread_reason(error, &reason);
	else if (pending.id && (pending.left_ms <= 0 || store_is_copy(session->store))) {
		error = change_undo(session, &reason);
		session->undone.is_done = !error;
		session->undone.rules = pending.rules;
	}
	if (error)
		session->undone = (struct change_undone){ .error = error, .reason = reason };
}
