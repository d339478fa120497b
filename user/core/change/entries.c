// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The keys of one change, and when they enter and leave the tables of the filters. What packets see of a change, they see
 * here: change.h has the order. This is for filters whose `way` is FILTER_KEY_BY_KEY or FILTER_KEYS_IN
 * (filter_change.c): with the other ways the table is filled from the store.
 *
 * A key is what a packet must have for a rule to match. A rule has one key or more, and rules can share a key. A table has
 * one entry for each key. A change adds keys, and touches keys that are in the tables already or that it has itself
 * added. A touched key gains a rule or another end, or it loses a rule. A key ends when the last of its rules ends, and the
 * tables keep the end in ticks.
 *
 *    rules.c               while the rules change       entries_hold(), entries_touch(): no table changes
 *    prepare() in          before the commit            entries_insert(): shapes, added keys, later ends
 *    commit.c
 *    abort_filter()        there is no commit           entries_take_back()
 *    finish()              after the commit             entries_finish(): policies, earlier ends, keys that leave, shapes
 */
#include <errno.h>

#include "change/internal.h"

/* ---- while the change is made ---- */

bool any_table_takes_keys(const struct session *session)
{
	for (size_t i = 0; i < session->filters_count; i++)
		if (session->filters[i].way == FILTER_KEY_BY_KEY)
			return true;
	return false;
}

/*
 * Whether one more key needs a larger table. A filter held by another tool cannot get larger maps. So once the table
 * fills these maps, it may be loaded beyond TABLE_LOAD_PERCENT, up to all slots.
 */
static bool must_grow(const struct session *session, const struct filter *filter, struct filter_parts more)
{
	const struct pending_keys *keys = &session->open_change->keys;

	more.records += keys->added_count - keys->added_addresses;
	more.addresses += keys->added_addresses;
	more = filter_keys_with(filter, more);
	return filter->way == FILTER_KEY_BY_KEY &&
	       filter_slots_to_grow_to(filter, more) != filter_slots(&filter->kernel);
}

bool change_is_full(const struct session *session)
{
	for (size_t i = 0; i < session->filters_count; i++)
		if (must_grow(session, &session->filters[i], (struct filter_parts){ .records = 1 }) ||
		    must_grow(session, &session->filters[i], (struct filter_parts){ .addresses = 1 }))
			return true;
	return false;
}

int entries_hold(struct session *session, const struct rule_key *key, __s64 timeout_ms, struct reason *reason)
{
	const bool is_address = filter_is_address(&key->shape) && !timeout_ms;
	const struct filter_parts one = { .records = !is_address, .addresses = is_address };

	for (size_t i = 0; i < session->filters_count; i++) {
		struct filter *filter = &session->filters[i];
		const struct filter_parts used = filter_keys_with(filter, one);
		const __u64 keys = used.records + used.addresses + session->open_change->keys.added_count;

		if (must_grow(session, filter, one))
			filter_change_replace(filter, FILTER_TOO_SMALL);
		else if (filter->way != FILTER_KEY_BY_KEY || keys <= filter_slots(&filter->kernel))
			continue;
		/* The undo of a change that waits goes key by key, and would lack the same room. */
		else if (session->open_change->is_cleared && !session->confirm_ms)
			filter_change_refill(filter);
		else
			return filter_full_reason(filter, keys, reason);
	}
	return any_table_takes_keys(session) && pending_keys_add(&session->open_change->keys, key, timeout_ms) ?
		       reason_set(reason, -ENOMEM, "no memory for the change") :
		       0;
}

int entries_touch(struct session *session, const struct rule_key *key, bool gains, struct reason *reason)
{
	int error = pending_keys_touch(&session->open_change->keys, key, gains);

	return error ? reason_set(reason, error, "no memory for the change") : 0;
}

/* ---- before the commit ---- */

/* Whether this change has added the key and then deleted all its rules: see entries_insert(). */
static bool is_absent(const struct session *session, const struct rule_key *key)
{
	const struct touched_key *touched = pending_keys_touched(&session->open_change->keys, key);

	return touched && touched->is_absent;
}

/*
 * Inserts the added keys of the rules with this action. A new table replaces the present one, if one can be made, if the
 * epoch of the table is too long ago for a key with an end, or if a key finds no room in its two buckets.
 */
static int insert_action(struct session *session, struct filter *filter, enum rule_action action, struct reason *reason)
{
	struct added_key added = {};
	int error = 0;

	while (filter->way == FILTER_KEY_BY_KEY && pending_keys_next(&session->open_change->keys, action, &added)) {
		const struct filter_parts keys = filter_keys_with(filter, (struct filter_parts){ .records = 1 });
		__u32 tick = 0;

		if (is_absent(session, &added.key))
			continue;
		if (filter->kernel.options.is_exact)
			error = filter_tick(session->store, added.timeout_ms, &tick, reason);
		if (error)
			return error;
		if (filter_has_aged(filter, tick) &&
		    filter_can_build_successor(filter, filter_slots_to_grow_to(filter, keys))) {
			filter_change_replace(filter, FILTER_AGED);
			break;
		}
		error = filter_insert(filter, &added.key, tick);
		if (error == -ENOMEM)
			return filter_unmapped_reason(reason);
		if (error && !filter_can_build_successor(filter, filter_slots_to_grow_to(filter, keys)))
			return filter_full_reason(filter, keys.records + keys.addresses, reason);
		if (error)
			filter_change_replace(filter, FILTER_STUCK);
	}
	return 0;
}

/*
 * Gives the entry of a key another end, see filter_set_end(). 0; -ENOENT: the table lacks the key; other -errno with the
 * reason.
 */
static int set_end(struct session *session, struct filter *filter, const struct rule_key *key, __s64 timeout_ms,
		   bool *is_done, struct reason *reason)
{
	__u32 tick;
	int error = filter_tick(session->store, timeout_ms, &tick, reason);

	if (error)
		return error;
	error = filter_set_end(filter, key, tick, is_done, reason);
	if (error == -ENOSPC)
		return filter_full_reason(filter, filter->kernel.config->used + 1, reason);
	if (error == -E2BIG)
		return reason_set(reason, error, "the change has too many kinds of rules");
	return error == -ENOMEM ? filter_unmapped_reason(reason) : error;
}

/*
 * Publishes the new shapes beside the old ones, and gives new rates their meters. If there is no room for both, the filter
 * gets a new table. If it can get none, the new shapes come after the commit, if there is room for them alone.
 */
static int publish_new(struct session *session, struct filter *filter, struct reason *reason)
{
	int error = filter_publish_shapes(filter, session->store, true, reason);

	if ((error == -E2BIG || error == -ENOSPC) &&
	    filter_can_build_successor(filter, filter_slots(&filter->kernel))) {
		filter_change_replace(filter, FILTER_AT_ONCE);
		return 0;
	}
	return error == -E2BIG ? filter_check_shapes(filter, session->store, reason) : error;
}

/* Gives touched keys of the action that gain their ends, if these are later. */
static int set_later_ends(struct session *session, struct filter *filter, enum rule_action action,
			  struct reason *reason)
{
	struct pending_keys *keys = &session->open_change->keys;
	struct key_rules state;

	for (size_t i = 0; i < keys->touched_count && filter->way == FILTER_KEY_BY_KEY; i++) {
		struct touched_key *touched = &keys->touched[i];
		bool is_done = true;
		int error;

		if (!touched->gains || touched->key.shape.action != action)
			continue;
		error = key_rules(session->store, store_shape_list(session->store), &touched->key, &state);
		if (error)
			return store_unread_reason(error, reason);
		if (state.rules)
			error = set_end(session, filter, &touched->key, state.timeout_ms, &is_done, reason);
		touched->is_done &= state.rules && is_done && !error;
		/* The key belongs to the other part of the table, which has no room for it. */
		if (error == -ENOSPC || error == -E2BIG)
			filter_change_replace(filter, FILTER_STUCK);
		/* entries_finish() reports a key that the table lacks. */
		else if (error && error != -ENOENT)
			return error;
	}
	return 0;
}

/* Whether keys of the action come, or end later. */
static bool any_comes(const struct pending_keys *keys, enum rule_action action)
{
	for (size_t i = 0; i < keys->touched_count; i++)
		if (keys->touched[i].gains && keys->touched[i].key.shape.action == action)
			return true;
	return pending_keys_next(keys, action, &(struct added_key){});
}

/*
 * Puts the added keys into one table, and gives touched keys later ends. If a step finds that it needs a new table, the
 * other steps are left out.
 */
static int insert_all(struct session *session, struct filter *filter, struct reason *reason)
{
	static const enum rule_action order[] = { RULE_PASS, RULE_DROP, RULE_MONITOR };
	const struct pending_keys *keys = &session->open_change->keys;
	int error;

	filter_set_generation(filter, ABI_GENERATION_DIRTY);
	error = publish_new(session, filter, reason);
	for (size_t step = 0; step < RULE_ACTIONS && !error; step++) {
		/* A packet may have looked for pass rules already. */
		if (order[step] == RULE_DROP && any_comes(keys, RULE_PASS) && any_comes(keys, RULE_DROP))
			error = filter_wait_for_packets(filter, reason);
		if (!error)
			error = insert_action(session, filter, order[step], reason);
		if (!error)
			error = set_later_ends(session, filter, order[step], reason);
	}
	/* If nothing but added keys has changed, an abort need not refill the table: it deletes these keys. */
	if (!error && filter->way == FILTER_KEY_BY_KEY && !keys->any_gains)
		filter_change_keys_in(filter);
	return error;
}

/* An added key that the change also touched may have lost all its rules again. Such a key enters no table. */
static int find_absent(struct session *session, struct reason *reason)
{
	struct pending_keys *keys = &session->open_change->keys;
	struct key_rules state;

	for (enum rule_action action = 0; action < RULE_ACTIONS && keys->touched_count; action++) {
		struct added_key added = {};

		while (pending_keys_next(keys, action, &added)) {
			struct touched_key *touched = pending_keys_touched(keys, &added.key);
			int error = touched ? key_rules(session->store, store_shape_list(session->store), &added.key,
							&state) :
					      0;

			if (error)
				return store_unread_reason(error, reason);
			if (touched)
				touched->is_absent = !state.rules;
		}
	}
	return 0;
}

int entries_insert(struct session *session, struct reason *reason)
{
	struct pending_keys *keys = &session->open_change->keys;
	int error = any_table_takes_keys(session) ? find_absent(session, reason) : 0;

	if (error || (!keys->added_count && !keys->any_gains))
		return error;
	for (size_t i = 0; i < keys->touched_count; i++)
		keys->touched[i].is_done = keys->touched[i].gains;
	for (size_t i = 0; i < session->filters_count && !error; i++)
		if (session->filters[i].way == FILTER_KEY_BY_KEY)
			error = insert_all(session, &session->filters[i], reason);
	return error;
}

/* ---- if the change is aborted ---- */

int entries_take_back(const struct session *session, struct filter *filter)
{
	int error = 0;

	for (enum rule_action action = RULE_DROP; action < RULE_ACTIONS; action++) {
		struct added_key added = {};

		/* A packet may have read the shortcut of a drop rule. */
		if (action == RULE_PASS && any_comes(&session->open_change->keys, RULE_PASS))
			error = filter_wait_for_packets(filter, &(struct reason){});
		while (!error && pending_keys_next(&session->open_change->keys, action, &added))
			if (!is_absent(session, &added.key))
				error = filter_delete(filter, &added.key);
	}
	return error ? error : filter_publish_shapes(filter, session->store, false, &(struct reason){});
}

/* ---- after the commit ---- */

/* A touched key leaves if no rule has it any more; else it gets its end. */
static int finish_key(struct session *session, struct filter *filter, const struct rule_key *key, struct reason *reason)
{
	struct key_rules state;
	int error = key_rules(session->store, &session->open_change->shapes, key, &state);

	if (error)
		return store_unread_reason(error, reason);
	error = state.rules ? set_end(session, filter, key, state.timeout_ms, NULL, reason) :
			      filter_delete(filter, key);
	if (error == -ENOENT)
		return reason_set(reason, error,
				  "a table did not have a key of a changed rule; the next command repairs it");
	return error == -ENOMEM ? filter_unmapped_reason(reason) : error;
}

int entries_finish(struct session *session, struct filter *filter, struct reason *reason)
{
	const struct pending_keys *keys = &session->open_change->keys;
	bool must_wait = keys->added_count || keys->any_gains, has_dropped = false;
	int error = filter_publish_shapes(filter, session->store, true, reason);

	if (error == -E2BIG)
		error = filter_publish_shapes(filter, session->store, false, reason);
	if (!error)
		error = filter_set_policies(filter, session->store, reason);
	for (enum rule_action action = RULE_DROP; action < RULE_ACTIONS && !error; action++)
		for (size_t i = 0; i < keys->touched_count && !error; i++) {
			const struct touched_key *touched = &keys->touched[i];

			if (touched->key.shape.action != action || touched->is_absent || touched->is_done)
				continue;
			/*
			 * A packet that began before a key came must not find that an old one is gone. One that has read
			 * the shortcut of a drop rule must not find that a pass rule is gone.
			 */
			error = must_wait || (has_dropped && action == RULE_PASS) ?
					filter_wait_for_packets(filter, reason) :
					0;
			must_wait = false;
			has_dropped = action == RULE_DROP;
			if (!error)
				error = finish_key(session, filter, &touched->key, reason);
		}
	return error ? error : filter_publish_shapes(filter, session->store, false, reason);
}
