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

bool apply_keys_matter(const struct apply *apply)
{
	for (size_t i = 0; i < apply->targets_count; i++)
		if (!apply->targets[i].is_deferred)
			return true;
	return false;
}

void apply_keys_close(struct apply_touched *touched)
{
	for (enum rule_action action = 0; action < RULE_ACTIONS; action++)
		key_list_close(&touched->held[action]);
	key_set_close(&touched->absent);
	key_set_close(&touched->keys);
	key_set_close(&touched->retimed);
}

static size_t held_count(const struct apply *apply)
{
	return apply->touched->held[RULE_DROP].count + apply->touched->held[RULE_PASS].count;
}

/*
 * Whether one more key needs a larger table. If another tool holds the filter, none is possible: all slots
 * are used.
 */
static bool must_grow(const struct apply *apply, const struct target *target)
{
	const __u64 keys = held_count(apply) + 1;

	return !target->is_deferred && !target_has_room(target, keys) &&
	       target_slots_to_grow_to(target, target->table.used + keys) > table_slots(&target->table);
}

bool apply_is_full(const struct apply *apply)
{
	for (size_t i = 0; i < apply->targets_count; i++)
		if (must_grow(apply, &apply->targets[i]))
			return true;
	return false;
}

int apply_keys_hold(struct apply *apply, const struct rule_key *key, __s64 timeout_ms, struct reason *reason)
{
	for (size_t i = 0; i < apply->targets_count; i++) {
		struct target *target = &apply->targets[i];
		const __u64 keys = target->table.used + held_count(apply) + 1;

		if (must_grow(apply, target))
			target_defer(target, TARGET_TOO_SMALL);
		else if (!target->is_deferred && keys > table_slots(&target->table))
			return target_say_full(target, keys, reason);
	}
	return apply_keys_matter(apply) && key_list_add(&apply->touched->held[key->shape.action], key, timeout_ms) ?
		       reason_set(reason, -ENOMEM, "no memory for the change") :
		       0;
}

int apply_keys_touch(struct apply *apply, const struct rule_key *key, bool is_added, struct reason *reason)
{
	int error = key_set_add(&apply->touched->keys, key);

	if (!error && is_added && key->shape.action == RULE_PASS)
		error = key_set_add(&apply->touched->retimed, key);
	return error ? reason_set(reason, error, "no memory for the change") : 0;
}

/* ---- before the commit ---- */

struct moving {
	struct apply *apply;
	struct target *target;
	struct reason *reason;
};

/* A key that was added and deleted again within the change enters no table. */
static int note_absent(const struct rule_key *key, __s64 timeout_ms, void *context)
{
	const struct moving *moving = context;
	struct apply *apply = moving->apply;
	struct keys_state state;
	int error;

	(void)timeout_ms;
	if (!key_set_has(&apply->touched->keys, key))
		return 0;
	error = keys_state(apply->store, store_shape_list(apply->store), key, &state);
	if (error == -ENOENT)
		error = key_set_add(&apply->touched->absent, key);
	return error ? apply_say_unread(error, moving->reason) : 0;
}

/* Whether a table for one more key could replace this one. */
static bool has_successor(const struct target *target)
{
	return target_can_prepare(target, target_slots_to_grow_to(target, target->table.used + 1));
}

static int insert_key(const struct rule_key *key, __s64 timeout_ms, void *context)
{
	const struct moving *moving = context;
	struct target *target = moving->target;
	__u32 tick = 0;
	bool is_old;
	int error = 0;

	if (target->is_deferred || key_set_has(&moving->apply->touched->absent, key))
		return 0;
	if (target->filter.options.is_exact)
		error = target_tick(moving->apply->store, timeout_ms, &tick, moving->reason);
	if (error)
		return error;
	is_old = target_has_aged(target, tick) && has_successor(target);
	if (!is_old)
		error = target_insert(target, key, tick);
	if (error == -ENOMEM)
		return target_say_unmapped(moving->reason);
	if (is_old || (error && has_successor(target))) {
		target_defer(target, is_old ? TARGET_AGED : TARGET_STUCK);
		return 0;
	}
	return error ? target_say_full(target, target->table.used + 1, moving->reason) : 0;
}

static int set_end(struct apply *apply, struct target *target, const struct rule_key *key, __s64 timeout_ms,
		   struct reason *reason)
{
	__u32 tick;
	int error = target_tick(apply->store, timeout_ms, &tick, reason);

	if (error)
		return error;
	error = target_set_end(target, key, tick);
	return error == -ENOMEM ? target_say_unmapped(reason) : error;
}

/* A missing key is no error here: apply_keys_settle() reports it. */
static int retime(const struct moving *moving)
{
	struct apply *apply = moving->apply;
	const struct key_set *retimed = &apply->touched->retimed;
	struct keys_state state;
	int error = 0;

	for (size_t i = 0; i < retimed->count && !error; i++) {
		error = keys_state(apply->store, store_shape_list(apply->store), &retimed->key[i], &state);
		if (error && error != -ENOENT)
			return apply_say_unread(error, moving->reason);
		if (!error)
			error = set_end(apply, moving->target, &retimed->key[i], state.timeout_ms, moving->reason);
		error = error == -ENOENT ? 0 : error;
	}
	return error;
}

/* Keys of pass rules are in force before the first key of a drop rule enters. */
static int insert_all(struct moving *moving)
{
	const struct apply_touched *touched = moving->apply->touched;
	struct target *target = moving->target;
	bool is_more = touched->retimed.count;
	int error;

	target->ahead = TARGET_HAS_SOME;
	target_set_generation(target, ABI_GENERATION_DIRTY);
	error = key_list_each(&touched->held[RULE_PASS], insert_key, moving);
	if (!error && !target->is_deferred)
		error = retime(moving);
	if (!error && !target->is_deferred && target_has_passing_to_publish(target)) {
		is_more = true;
		error = target_publish_passing(target, moving->reason);
	}
	if (!error)
		error = key_list_each(&touched->held[RULE_DROP], insert_key, moving);
	if (!error && !target->is_deferred && !is_more)
		target->ahead = TARGET_HAS_ALL;
	return error;
}

int apply_keys_insert(struct apply *apply, struct reason *reason)
{
	const struct apply_touched *touched = apply->touched;
	struct moving moving = { apply, NULL, reason };
	int error = 0;

	for (enum rule_action action = 0; action < RULE_ACTIONS && touched->keys.count && !error; action++)
		error = key_list_each(&touched->held[action], note_absent, &moving);
	if (!held_count(apply) && !touched->retimed.count)
		return error;
	for (size_t i = 0; i < apply->targets_count && !error; i++) {
		moving.target = &apply->targets[i];
		if (!moving.target->is_deferred)
			error = insert_all(&moving);
	}
	return error;
}

/* ---- if the change is aborted ---- */

static int delete_key(const struct rule_key *key, __s64 timeout_ms, void *context)
{
	const struct moving *moving = context;

	(void)timeout_ms;
	if (key_set_has(&moving->apply->touched->absent, key))
		return 0;
	return target_delete(moving->target, key);
}

static int delete_all(struct apply *apply, struct target *target, struct reason *reason)
{
	struct moving moving = { apply, target, reason };
	struct store_info info;
	int error = store_info(apply->store, &info);

	if (!error)
		error = key_list_each(&apply->touched->held[RULE_DROP], delete_key, &moving);
	if (!error)
		error = key_list_each(&apply->touched->held[RULE_PASS], delete_key, &moving);
	if (!error)
		target_set_generation(target, info.generation);
	return error;
}

int apply_keys_take_back(struct apply *apply, struct target *target, struct reason *reason)
{
	if (target->ahead == TARGET_HAS_NONE)
		return 0;
	if (target->ahead == TARGET_HAS_ALL && !delete_all(apply, target, reason))
		return 0;
	return target_fill(target, apply->store, NULL, reason);
}

/* ---- after the commit ---- */

/* Deletes a key that no rule needs; else gives it the end of its last rule. */
static int settle_key(struct apply *apply, struct target *target, const struct rule_key *key, struct reason *reason)
{
	struct keys_state state;
	int error;

	if (key_set_has(&apply->touched->absent, key))
		return 0;
	error = keys_state(apply->store, &apply->touched->shapes, key, &state);
	if (error && error != -ENOENT)
		return apply_say_unread(error, reason);
	error = error ? target_delete(target, key) : set_end(apply, target, key, state.timeout_ms, reason);
	if (error == -ENOMEM)
		return target_say_unmapped(reason);
	return error == -ENOENT ? reason_set(reason, error,
					     "a table did not have a key of a changed rule; the next "
					     "command repairs it") :
				  error;
}

static int settle_action(struct apply *apply, struct target *target, enum rule_action action, struct reason *reason)
{
	const struct key_set *keys = &apply->touched->keys;
	int error = 0;

	for (size_t i = 0; i < keys->count && !error; i++)
		if (keys->key[i].shape.action == action)
			error = settle_key(apply, target, &keys->key[i], reason);
	return error;
}

int apply_keys_settle(struct apply *apply, struct target *target, struct reason *reason)
{
	int error = settle_action(apply, target, RULE_DROP, reason);

	if (!error)
		error = settle_action(apply, target, RULE_PASS, reason);
	return error ? error : target_publish(target, apply->store, reason);
}
