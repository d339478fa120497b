// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Changes of settings, and pending changes: their deadline, confirm and undo. */
#include <errno.h>
#include <string.h>

#include "change/change.h"
#include "change/internal.h"

#define STEP_RULES 4096    /* rules of a change between two moves of its deadline */
#define STEP_KEYS_A_MS 200 /* keys that the slowest step, a new table, handles in a millisecond at least */

/* ---- settings ---- */

static int set(struct apply *apply, void *context, struct reason *reason)
{
	int error = store_set_settings(apply->store, context);

	return error ? reason_set(reason, error, "cannot keep the settings: %s", strerror(-error)) : 0;
}

/*
 * With `no-rule drop` only pass rules let packets through, and the undo removes the pass rules of the pending
 * change.
 */
static int check_pending(struct apply *apply, const struct store_settings *settings, struct reason *reason)
{
	struct store_settings before;
	struct store_pending pending;
	int error = store_settings(apply->store, &before);

	if (!error)
		error = store_pending(apply->store, &pending);
	if (error)
		return apply_say_unread(error, reason);
	if (!pending.id || settings->policy[OUTCOME_NO_RULE] != VERDICT_DROP ||
	    before.policy[OUTCOME_NO_RULE] == VERDICT_DROP)
		return 0;
	return reason_set(reason, -EBUSY,
			  "a change waits for xdp-cuckoo confirm; if it is undone, its pass rules go, but "
			  "the policy 'no-rule drop' stays; confirm it first");
}

int apply_set(struct apply *apply, const struct store_settings *settings, struct reason *reason)
{
	struct store_settings copy = *settings;
	int error = check_pending(apply, settings, reason);

	return error ? error : apply_change(apply, set, &copy, reason);
}

int apply_set_monitor_only(struct apply *apply, bool is_on, struct reason *reason)
{
	struct store_settings settings;
	int error = store_settings(apply->store, &settings);

	if (error)
		return apply_say_unread(error, reason);
	settings.is_monitor_only = is_on;
	return apply_set(apply, &settings, reason);
}

/* ---- pending changes ---- */

/* Whether a filter waits for `confirm`. A load that waits is not in the store: only the filter knows. */
static bool is_waiting(const struct apply *apply)
{
	for (size_t i = 0; i < apply->targets_count; i++)
		if (apply->targets[i].filter.config->run & ABI_RUN_UNCONFIRMED)
			return true;
	return false;
}

int apply_set_pending(struct apply *apply, __s64 timeout_ms, struct reason *reason)
{
	int error = is_waiting(apply) ? -EBUSY : store_set_pending(apply->store, timeout_ms);

	if (error == -EBUSY)
		return reason_set(reason, error,
				  "another change waits for xdp-cuckoo confirm; confirm it, or "
				  "wait until it has been undone");
	if (error)
		return apply_say_unwritten(error, reason);
	apply->confirm_ms = timeout_ms;
	return apply_push_pending(apply, reason);
}

static int set_unconfirmed(struct apply *apply, __u64 id, __s64 left_ms, struct reason *reason)
{
	int error = 0;

	for (size_t i = 0; i < apply->targets_count && !error; i++)
		error = target_set_unconfirmed(&apply->targets[i], id, left_ms, reason);
	return error;
}

/* The longest steps are a new table of all keys, and the commit. */
int apply_push_pending(struct apply *apply, struct reason *reason)
{
	struct store_pending pending;
	struct store_info info;
	__s64 left_ms;
	int error;

	if (!apply->confirm_ms)
		return 0;
	error = store_info(apply->store, &info);
	if (!error)
		error = store_pending(apply->store, &pending);
	if (error)
		return apply_say_unread(error, reason);
	left_ms = apply->confirm_ms + info.keys / STEP_KEYS_A_MS;
	error = store_push_pending(apply->store, left_ms);
	return error ? apply_say_unwritten(error, reason) : set_unconfirmed(apply, pending.id, left_ms, reason);
}

int apply_push_pending_by_rule(struct apply *apply, struct reason *reason)
{
	return ++apply->touched->steps % STEP_RULES ? 0 : apply_push_pending(apply, reason);
}

static int push_alone(struct apply *apply)
{
	int error = store_begin(apply->store);

	if (error)
		return error;
	error = store_push_pending(apply->store, apply->confirm_ms);
	if (!error)
		return store_commit(apply->store);
	store_abort(apply->store);
	return error;
}

void apply_start_pending(struct apply *apply)
{
	struct reason ignored;
	__s64 left_ms;
	__u64 id;

	if (apply->confirm_ms && !push_alone(apply) && !apply_pending_left(apply, &id, &left_ms))
		set_unconfirmed(apply, id, left_ms, &ignored);
}

int apply_pending_left(struct apply *apply, __u64 *id, __s64 *left_ms)
{
	struct store_pending pending;
	int error = store_pending(apply->store, &pending);

	if (error)
		return error;
	*id = pending.id;
	*left_ms = pending.left_ms - store_lag_ms(apply->store);
	return 0;
}

static int forget(struct apply *apply, void *context, struct reason *reason)
{
	int error = store_forget_pending(apply->store);

	*(bool *)context = !error;
	return error && error != -ENOENT ? apply_say_unwritten(error, reason) : 0;
}

/* Confirms all filters. Whether one of them was waiting. */
static bool confirm_targets(struct apply *apply)
{
	const bool was_waiting = is_waiting(apply);

	for (size_t i = 0; i < apply->targets_count; i++)
		target_confirm(&apply->targets[i]);
	return was_waiting;
}

int apply_confirm(struct apply *apply, struct reason *reason)
{
	bool had_pending = false;
	int error = apply_change(apply, forget, &had_pending, reason);

	if (error)
		return error;
	return confirm_targets(apply) || had_pending ? 0 : -ENOENT;
}

struct undoing {
	struct apply *apply;
	struct reason *reason;
};

/*
 * Other commands may have used up the shapes since. Then this rule is lost, and the rest is undone all the
 * same.
 */
static int put_back(struct apply *apply, const struct rule *rule, struct reason *reason)
{
	struct apply_undone *undone = &apply->undone;
	int error = apply_put_back(apply, rule, reason);

	if (error != -E2BIG)
		return error;
	if (!undone->lost++)
		undone->reason = *reason;
	reason->text[0] = '\0';
	return 0;
}

static int undo_rule(const struct rule *rule, bool is_back, void *context)
{
	const struct undoing *undoing = context;
	int error;

	if (is_back)
		return rule->timeout_ms < 0 ? 0 : put_back(undoing->apply, rule, undoing->reason);
	error = apply_del(undoing->apply, rule, undoing->reason);
	return error == -ENOENT ? 0 : error;
}

static int undo_all(struct apply *apply, void *context, struct reason *reason)
{
	struct undoing undoing = { apply, reason };
	int error;

	(void)context;
	apply->undone = (struct apply_undone){};
	reason->text[0] = '\0';
	error = store_undo_each(apply->store, undo_rule, &undoing);
	if (!error)
		error = store_forget_pending(apply->store);
	if (error && error != -ENOENT && !reason->text[0])
		reason_set(reason, error, "cannot undo the change: %s", strerror(-error));
	return error;
}

int apply_undo(struct apply *apply, struct reason *reason)
{
	int error = apply_change(apply, undo_all, NULL, reason);

	if (!error)
		confirm_targets(apply);
	return error;
}

void apply_undo_overdue(struct apply *apply)
{
	struct store_pending pending;
	struct reason reason;
	int error = store_pending(apply->store, &pending);

	if (error)
		apply_say_unread(error, &reason);
	else if (pending.id && pending.left_ms <= 0) {
		error = apply_undo(apply, &reason);
		apply->undone.is_done = !error;
		apply->undone.rules = pending.rules;
	}
	if (error)
		apply->undone = (struct apply_undone){ .error = error, .reason = reason };
}
