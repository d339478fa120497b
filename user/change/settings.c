// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Changes of settings. */
#include <errno.h>
#include <string.h>

#include "change/change.h"
#include "change/internal.h"

int change_set(struct session *session, const struct store_settings *settings, struct reason *reason)
{
	struct store_settings before;
	struct store_pending pending;
	int error = store_settings(session->store, &before);

	if (!error)
		error = store_pending(session->store, &pending);
	if (error)
		return store_unread_reason(error, reason);
	/* With `no-rule drop` only pass rules let packets through, and the undo removes those of the pending change. */
	if (pending.id && settings->policy[OUTCOME_NO_RULE] == VERDICT_DROP &&
	    before.policy[OUTCOME_NO_RULE] != VERDICT_DROP)
		return reason_set(reason, -EBUSY,
				  "a change waits for xdp-cuckoo confirm; if it is undone, its pass rules go, but "
				  "the policy 'no-rule drop' stays; confirm it first");
	error = change_begin(session, reason);
	if (error)
		return error;
	error = store_set_settings(session->store, settings);
	if (error)
		reason_set(reason, error, "cannot keep the settings: %s", reason_of_write(error));
	return change_end(session, error, reason);
}

int change_set_monitor_only(struct session *session, bool is_on, struct reason *reason)
{
	struct store_settings settings;
	int error = store_settings(session->store, &settings);

	if (error)
		return store_unread_reason(error, reason);
	settings.is_monitor_only = is_on;
	return change_set(session, &settings, reason);
}
