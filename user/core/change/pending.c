// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A change that waits for `confirm`: its deadline, in the store and in the filters. */
#include <errno.h>
#include <time.h>

#include "base/clock.h"
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
	return ++session->open_change->steps % STEP_RULES ? 0 : change_extend_deadline(session, reason);
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

bool change_confirm_filters(struct session *session)
{
	const bool was_waiting = is_waiting(session);

	for (size_t i = 0; i < session->filters_count; i++)
		filter_confirm(&session->filters[i]);
	return was_waiting;
}

/* ---- for the process that waits for `confirm` ---- */

void (*watchdog_wanted)(const struct watchdog *watchdog);

__s64 watchdog_deadline(__s64 left_ms)
{
	return clock_ms(CLOCK_BOOTTIME) + left_ms;
}

__s64 watchdog_left(__s64 deadline_ms)
{
	return deadline_ms - clock_ms(CLOCK_BOOTTIME);
}

void watchdog_take_pending(struct watchdog *watchdog, struct store *store)
{
	struct store_pending pending;

	if (store_pending(store, &pending) || !pending.id)
		return;
	watchdog->pending_id = pending.id;
	watchdog->deadline_ms = watchdog_deadline(pending.left_ms);
}
