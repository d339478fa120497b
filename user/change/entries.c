// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The keys of a change. They are held back until the change is complete, so that a change that is refused or
 * interrupted has affected no packet. Added keys enter the tables before the commit; deleted keys leave after
 * it.
 */
#include <errno.h>

#include "change/change.h"
#include "change/internal.h"
#include "filter/filter.h"

/* ---- while the change is made ---- */

bool entries_matter(const struct session *session)
{
	for (size_t i = 0; i < session->filters_count; i++)
		if (session->filters[i].change == FILTER_KEY_BY_KEY)
			return true;
	return false;
}

/*
 * Whether one more key needs a larger table. If another tool holds the filter, none is possible: all slots
 * are used.
 */
static bool must_grow(const struct session *session, const struct filter *filter)
{
	const __u64 keys = session->change->keys.added_count + 1;

	return filter->change == FILTER_KEY_BY_KEY &&
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
		const __u64 keys = filter->table.used + session->change->keys.added_count + 1;

		if (must_grow(session, filter))
			filter_change_replace(filter, FILTER_TOO_SMALL);
		else if (filter->change == FILTER_KEY_BY_KEY && keys > table_slots(&filter->table))
			return filter_full_reason(filter, keys, reason);
	}
	return entries_matter(session) && pending_keys_add(&session->change->keys, key, timeout_ms) ?
		       reason_set(reason, -ENOMEM, "no memory for the change") :
		       0;
}

int entries_touch(struct session *session, const struct rule_key *key, bool is_added, struct reason *reason)
{
	const bool has_new_end = is_added && key->shape.action == RULE_PASS;
	int error = pending_keys_touch(&session->change->keys, key, has_new_end);

	return error ? reason_set(reason, error, "no memory for the change") : 0;
}

/* ---- before the commit ---- */

/* Finds the added keys whose rules the same change has deleted again. */
static int note_absent(struct session *session, enum rule_action action, struct reason *reason)
{
	struct pending_keys *keys = &session->change->keys;
	struct added_key added = {};
	struct key_rules state;

	while (keys->touched_count && pending_keys_next(keys, action, &added)) {
		struct touched_key *touched = pending_keys_touched(keys, &added.key);
		int error = touched ? key_rules(session->store, store_shape_list(session->store), &added.key, &state) :
				      0;

		if (error && error != -ENOENT)
			return store_unread_reason(error, reason);
		if (error)
			touched->is_absent = true;
	}
	return 0;
}

static bool is_absent(const struct session *session, const struct rule_key *key)
{
	const struct touched_key *touched = pending_keys_touched(&session->change->keys, key);

	return touched && touched->is_absent;
}

/* Whether a table for one more key could replace this one. */
static bool has_successor(const struct filter *filter)
{
	return filter_can_build_successor(filter, filter_slots_to_grow_to(filter, filter->table.used + 1));
}

static int insert_key(struct session *session, struct filter *filter, const struct added_key *added,
		      struct reason *reason)
{
	__u32 tick = 0;
	bool is_old;
	int error = 0;

	if (filter->kernel.options.is_exact)
		error = filter_tick(session->store, added->timeout_ms, &tick, reason);
	if (error)
		return error;
	is_old = filter_has_aged(filter, tick) && has_successor(filter);
	if (!is_old)
		error = filter_insert(filter, &added->key, tick);
	if (error == -ENOMEM)
		return filter_unmapped_reason(reason);
	if (is_old || (error && has_successor(filter))) {
		filter_change_replace(filter, is_old ? FILTER_AGED : FILTER_STUCK);
		return 0;
	}
	return error ? filter_full_reason(filter, filter->table.used + 1, reason) : 0;
}

static int insert_action(struct session *session, struct filter *filter, enum rule_action action, struct reason *reason)
{
	struct added_key added = {};
	int error = 0;

	while (!error && filter->change == FILTER_KEY_BY_KEY &&
	       pending_keys_next(&session->change->keys, action, &added))
		if (!is_absent(session, &added.key))
			error = insert_key(session, filter, &added, reason);
	return error;
}

static int set_end(struct session *session, struct filter *filter, const struct rule_key *key, __s64 timeout_ms,
		   struct reason *reason)
{
	__u32 tick;
	int error = filter_tick(session->store, timeout_ms, &tick, reason);

	if (error)
		return error;
	error = filter_set_end(filter, key, tick);
	return error == -ENOMEM ? filter_unmapped_reason(reason) : error;
}

/* A missing key is no error here: entries_settle() reports it. */
static int retime(struct session *session, struct filter *filter, struct reason *reason)
{
	const struct pending_keys *keys = &session->change->keys;
	struct key_rules state;
	int error = 0;

	for (size_t i = 0; i < keys->touched_count && keys->has_new_ends && !error; i++) {
		const struct rule_key *key = &keys->touched[i].key;

		if (!keys->touched[i].has_new_end)
			continue;
		error = key_rules(session->store, store_shape_list(session->store), key, &state);
		if (error && error != -ENOENT)
			return store_unread_reason(error, reason);
		if (!error)
			error = set_end(session, filter, key, state.timeout_ms, reason);
		error = error == -ENOENT ? 0 : error;
	}
	return error;
}

/* Keys of pass rules are in force before the first key of a drop rule enters. */
static int insert_all(struct session *session, struct filter *filter, struct reason *reason)
{
	bool is_more = session->change->keys.has_new_ends;
	int error;

	filter_set_generation(filter, ABI_GENERATION_DIRTY);
	error = insert_action(session, filter, RULE_PASS, reason);
	if (!error && filter->change == FILTER_KEY_BY_KEY)
		error = retime(session, filter, reason);
	if (!error && filter->change == FILTER_KEY_BY_KEY && filter_has_pass_shapes_to_publish(filter)) {
		is_more = true;
		error = filter_publish_pass_shapes(filter, reason);
	}
	if (!error)
		error = insert_action(session, filter, RULE_DROP, reason);
	if (!error)
		error = insert_action(session, filter, RULE_MONITOR, reason);
	if (!error && filter->change == FILTER_KEY_BY_KEY && !is_more)
		filter_change_keys_in(filter);
	return error;
}

int entries_insert(struct session *session, struct reason *reason)
{
	const struct pending_keys *keys = &session->change->keys;
	int error = 0;

	if (!entries_matter(session))
		return 0;
	for (enum rule_action action = 0; action < RULE_ACTIONS && !error; action++)
		error = note_absent(session, action, reason);
	if (!keys->added_count && !keys->has_new_ends)
		return error;
	for (size_t i = 0; i < session->filters_count && !error; i++)
		if (session->filters[i].change == FILTER_KEY_BY_KEY)
			error = insert_all(session, &session->filters[i], reason);
	return error;
}

/* ---- if the change is aborted ---- */

int entries_take_back(const struct session *session, struct filter *filter)
{
	int error = 0;

	for (enum rule_action action = RULE_DROP; action < RULE_ACTIONS; action++) {
		struct added_key added = {};

		while (!error && pending_keys_next(&session->change->keys, action, &added))
			if (!is_absent(session, &added.key))
				error = filter_delete(filter, &added.key);
	}
	return error;
}

/* ---- after the commit ---- */

/* Deletes a key that no rule needs; else gives it the end of its last rule. */
static int settle_key(struct session *session, struct filter *filter, const struct rule_key *key, struct reason *reason)
{
	struct key_rules state;
	int error;

	error = key_rules(session->store, &session->change->shapes, key, &state);
	if (error && error != -ENOENT)
		return store_unread_reason(error, reason);
	error = error ? filter_delete(filter, key) : set_end(session, filter, key, state.timeout_ms, reason);
	if (error == -ENOMEM)
		return filter_unmapped_reason(reason);
	return error == -ENOENT ? reason_set(reason, error,
					     "a table did not have a key of a changed rule; the next "
					     "command repairs it") :
				  error;
}

int entries_settle(struct session *session, struct filter *filter, struct reason *reason)
{
	const struct pending_keys *keys = &session->change->keys;
	int error = 0;

	for (enum rule_action action = RULE_DROP; action < RULE_ACTIONS; action++)
		for (size_t i = 0; i < keys->touched_count && !error; i++)
			if (keys->touched[i].key.shape.action == action && !keys->touched[i].is_absent)
				error = settle_key(session, filter, &keys->touched[i].key, reason);
	return error ? error : filter_publish_shapes(filter, session->store, reason);
}
