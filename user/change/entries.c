// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The keys of a change. They are held back until the change is complete, so that a change that is refused or
 * interrupted has affected no packet. Added keys enter the tables before the commit; deleted keys leave after
 * it.
 */
#include <errno.h>

#include "change/change.h"
#include "change/internal.h"
#include "filter/rule_entries.h"

/* ---- while the change is made ---- */

bool entries_matter(const struct session *session)
{
	for (size_t i = 0; i < session->filters_count; i++)
		if (session->filters[i].change == FILTER_KEY_BY_KEY)
			return true;
	return false;
}

void entries_close(struct change *change)
{
	for (enum rule_action action = 0; action < RULE_ACTIONS; action++)
		key_list_close(&change->held[action]);
	key_set_close(&change->absent);
	key_set_close(&change->keys);
	key_set_close(&change->retimed);
}

static size_t held_count(const struct session *session)
{
	return session->change->held[RULE_DROP].count + session->change->held[RULE_PASS].count;
}

/*
 * Whether one more key needs a larger table. If another tool holds the filter, none is possible: all slots
 * are used.
 */
static bool must_grow(const struct session *session, const struct filter *filter)
{
	const __u64 keys = held_count(session) + 1;

	return filter->change == FILTER_KEY_BY_KEY && !filter_has_room(filter, keys) &&
	       filter_slots_to_grow_to(filter, filter->table.used + keys) > table_slots(&filter->table);
}

bool change_is_full(const struct session *session)
{
	for (size_t i = 0; i < session->filters_count; i++)
		if (must_grow(session, &session->filters[i]))
			return true;
	return false;
}

int entries_hold(struct session *session, const struct rule_key *key, __s64 timeout_ms, struct reason *reason)
{
	for (size_t i = 0; i < session->filters_count; i++) {
		struct filter *filter = &session->filters[i];
		const __u64 keys = filter->table.used + held_count(session) + 1;

		if (must_grow(session, filter))
			filter_change_replace(filter, FILTER_TOO_SMALL);
		else if (filter->change == FILTER_KEY_BY_KEY && keys > table_slots(&filter->table))
			return filter_say_full(filter, keys, reason);
	}
	return entries_matter(session) && key_list_add(&session->change->held[key->shape.action], key, timeout_ms) ?
		       reason_set(reason, -ENOMEM, "no memory for the change") :
		       0;
}

int entries_touch(struct session *session, const struct rule_key *key, bool is_added, struct reason *reason)
{
	int error = key_set_add(&session->change->keys, key);

	if (!error && is_added && key->shape.action == RULE_PASS)
		error = key_set_add(&session->change->retimed, key);
	return error ? reason_set(reason, error, "no memory for the change") : 0;
}

/* ---- before the commit ---- */

struct moving {
	struct session *session;
	struct filter *filter;
	struct reason *reason;
};

/* A key that was added and deleted again within the change enters no table. */
static int note_absent(const struct rule_key *key, __s64 timeout_ms, void *context)
{
	const struct moving *moving = context;
	struct session *session = moving->session;
	struct keys_state state;
	int error;

	(void)timeout_ms;
	if (!key_set_has(&session->change->keys, key))
		return 0;
	error = keys_state(session->store, store_shape_list(session->store), key, &state);
	if (error == -ENOENT)
		error = key_set_add(&session->change->absent, key);
	return error ? change_say_unread(error, moving->reason) : 0;
}

/* Whether a table for one more key could replace this one. */
static bool has_successor(const struct filter *filter)
{
	return filter_can_prepare(filter, filter_slots_to_grow_to(filter, filter->table.used + 1));
}

static int insert_key(const struct rule_key *key, __s64 timeout_ms, void *context)
{
	const struct moving *moving = context;
	struct filter *filter = moving->filter;
	__u32 tick = 0;
	bool is_old;
	int error = 0;

	if (filter->change != FILTER_KEY_BY_KEY || key_set_has(&moving->session->change->absent, key))
		return 0;
	if (filter->kernel.options.is_exact)
		error = filter_tick(moving->session->store, timeout_ms, &tick, moving->reason);
	if (error)
		return error;
	is_old = filter_has_aged(filter, tick) && has_successor(filter);
	if (!is_old)
		error = filter_insert(filter, key, tick);
	if (error == -ENOMEM)
		return filter_say_unmapped(moving->reason);
	if (is_old || (error && has_successor(filter))) {
		filter_change_replace(filter, is_old ? FILTER_AGED : FILTER_STUCK);
		return 0;
	}
	return error ? filter_say_full(filter, filter->table.used + 1, moving->reason) : 0;
}

static int set_end(struct session *session, struct filter *filter, const struct rule_key *key, __s64 timeout_ms,
		   struct reason *reason)
{
	__u32 tick;
	int error = filter_tick(session->store, timeout_ms, &tick, reason);

	if (error)
		return error;
	error = filter_set_end(filter, key, tick);
	return error == -ENOMEM ? filter_say_unmapped(reason) : error;
}

/* A missing key is no error here: entries_settle() reports it. */
static int retime(const struct moving *moving)
{
	struct session *session = moving->session;
	const struct key_set *retimed = &session->change->retimed;
	struct keys_state state;
	int error = 0;

	for (size_t i = 0; i < retimed->count && !error; i++) {
		error = keys_state(session->store, store_shape_list(session->store), &retimed->key[i], &state);
		if (error && error != -ENOENT)
			return change_say_unread(error, moving->reason);
		if (!error)
			error = set_end(session, moving->filter, &retimed->key[i], state.timeout_ms, moving->reason);
		error = error == -ENOENT ? 0 : error;
	}
	return error;
}

/* Keys of pass rules are in force before the first key of a drop rule enters. */
static int insert_all(struct moving *moving)
{
	const struct change *change = moving->session->change;
	struct filter *filter = moving->filter;
	bool is_more = change->retimed.count;
	int error;

	filter_set_generation(filter, ABI_GENERATION_DIRTY);
	error = key_list_each(&change->held[RULE_PASS], insert_key, moving);
	if (!error && filter->change == FILTER_KEY_BY_KEY)
		error = retime(moving);
	if (!error && filter->change == FILTER_KEY_BY_KEY && filter_has_passing_to_publish(filter)) {
		is_more = true;
		error = filter_publish_passing(filter, moving->reason);
	}
	if (!error)
		error = key_list_each(&change->held[RULE_DROP], insert_key, moving);
	if (!error && filter->change == FILTER_KEY_BY_KEY && !is_more)
		filter_change_keys_in(filter);
	return error;
}

int entries_insert(struct session *session, struct reason *reason)
{
	const struct change *change = session->change;
	struct moving moving = { session, NULL, reason };
	int error = 0;

	for (enum rule_action action = 0; action < RULE_ACTIONS && change->keys.count && !error; action++)
		error = key_list_each(&change->held[action], note_absent, &moving);
	if (!held_count(session) && !change->retimed.count)
		return error;
	for (size_t i = 0; i < session->filters_count && !error; i++) {
		moving.filter = &session->filters[i];
		if (moving.filter->change == FILTER_KEY_BY_KEY)
			error = insert_all(&moving);
	}
	return error;
}

/* ---- if the change is aborted ---- */

static int delete_key(const struct rule_key *key, __s64 timeout_ms, void *context)
{
	const struct moving *moving = context;

	(void)timeout_ms;
	if (key_set_has(&moving->session->change->absent, key))
		return 0;
	return filter_delete(moving->filter, key);
}

int entries_take_back(struct session *session, struct filter *filter)
{
	struct moving moving = { session, filter, NULL };
	int error = key_list_each(&session->change->held[RULE_DROP], delete_key, &moving);

	return error ? error : key_list_each(&session->change->held[RULE_PASS], delete_key, &moving);
}

/* ---- after the commit ---- */

/* Deletes a key that no rule needs; else gives it the end of its last rule. */
static int settle_key(struct session *session, struct filter *filter, const struct rule_key *key, struct reason *reason)
{
	struct keys_state state;
	int error;

	if (key_set_has(&session->change->absent, key))
		return 0;
	error = keys_state(session->store, &session->change->shapes, key, &state);
	if (error && error != -ENOENT)
		return change_say_unread(error, reason);
	error = error ? filter_delete(filter, key) : set_end(session, filter, key, state.timeout_ms, reason);
	if (error == -ENOMEM)
		return filter_say_unmapped(reason);
	return error == -ENOENT ? reason_set(reason, error,
					     "a table did not have a key of a changed rule; the next "
					     "command repairs it") :
				  error;
}

static int settle_action(struct session *session, struct filter *filter, enum rule_action action, struct reason *reason)
{
	const struct key_set *keys = &session->change->keys;
	int error = 0;

	for (size_t i = 0; i < keys->count && !error; i++)
		if (keys->key[i].shape.action == action)
			error = settle_key(session, filter, &keys->key[i], reason);
	return error;
}

int entries_settle(struct session *session, struct filter *filter, struct reason *reason)
{
	int error = settle_action(session, filter, RULE_DROP, reason);

	if (!error)
		error = settle_action(session, filter, RULE_PASS, reason);
	return error ? error : filter_publish(filter, session->store, reason);
}
