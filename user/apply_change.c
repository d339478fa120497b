// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A change to the rules, all of it or nothing: into the tables, into the store, out of the tables. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apply.h"
#include "apply_internal.h"
#include "guard.h"
#include "key_set.h"
#include "keys.h"

/*
 * Keys that are in the tables, and of which the store is to be asked after the commit: whether they
 * stay, and when they end.
 */
struct apply_touched {
	struct key_set keys;
	bool *was_blocked; /* of the guard's flows, before the change */
	struct shape_list shapes; /* as committed */
};

void apply_forget_change(struct apply *apply)
{
	if (apply->touched) {
		key_set_close(&apply->touched->keys);
		free(apply->touched->was_blocked);
	}
	free(apply->touched);
	apply->touched = NULL;
	for (size_t i = 0; i < apply->targets_count; i++)
		target_drop_successor(&apply->targets[i]);
}

static int store_refused(int error, struct reason *reason)
{
	return reason_set(reason, error, "cannot write to the store: %s", strerror(-error));
}

static int store_unread(int error, struct reason *reason)
{
	return reason_set(reason, error, "cannot read the store: %s", strerror(-error));
}

static void set_generation(struct apply *apply, __u64 generation)
{
	for (size_t i = 0; i < apply->targets_count; i++) {
		struct target *target = &apply->targets[i];

		target_note_counts(target);
		__atomic_store_n(&target->filter.config->generation, generation, __ATOMIC_RELEASE);
	}
}

/* ---- the guard ---- */

static int note_blocked(struct apply *apply)
{
	const struct guard *guard = apply->guard;
	struct rule rule;

	if (!guard)
		return 0;
	apply->touched->was_blocked = calloc(guard->count + 1, sizeof(bool));
	if (!apply->touched->was_blocked)
		return -ENOMEM;
	for (size_t i = 0; i < guard->count; i++)
		apply->touched->was_blocked[i] =
			apply_blocks(apply->store, &guard->flows[i].flow, &rule) != APPLY_NOTHING;
	return 0;
}

static int refuse(const struct apply *apply, const struct rule *rule, enum apply_blocker blocker,
		  const struct guard_flow *flow, struct reason *reason)
{
	const bool is_named = strcmp(apply->name, APPLY_NAME_DEFAULT);
	char text[RULE_TEXT_BYTES], who[RULE_TEXT_BYTES + 2] = "the policy 'no-rule drop'";
	struct rule bare = *rule;

	bare.comment[0] = '\0';
	if (blocker == APPLY_RULE)
		snprintf(who, sizeof(who), "'%s'", rule_format(&bare, text));
	return reason_set(reason, -ECANCELED, "%s would block %s; nothing was changed; say --force, or first: "
			  "xdp-cuckoo%s%s add %s action pass", who, flow->what, is_named ? " --name " : "",
			  is_named ? apply->name : "", rule_format(&flow->flow, text));
}

int apply_check_guard(struct apply *apply, struct reason *reason)
{
	const struct guard *guard = apply->guard;
	struct rule rule;

	for (size_t i = 0; guard && i < guard->count; i++) {
		enum apply_blocker blocker;

		if (apply->touched && apply->touched->was_blocked[i])
			continue;
		blocker = apply_blocks(apply->store, &guard->flows[i].flow, &rule);
		if (blocker != APPLY_NOTHING)
			return refuse(apply, &rule, blocker, &guard->flows[i], reason);
	}
	return 0;
}

/* ---- beginning ---- */

static int begin(struct apply *apply, struct reason *reason)
{
	int error;

	apply->has_inserted = apply->has_set_pending = false;
	for (size_t i = 0; i < apply->targets_count; i++) {
		struct target *target = &apply->targets[i];

		target_begin(target);
		if (apply->is_whole && !kernel_held_attachment(&target->filter))
			target_defer(target, TARGET_AT_ONCE);
	}
	apply->touched = calloc(1, sizeof(*apply->touched));
	error = apply->touched ? store_begin(apply->store) : -ENOMEM;
	if (!error)
		error = note_blocked(apply);
	return error ? store_refused(error, reason) : 0;
}

/* Whether some table is to have the keys of the change before the commit. */
static bool has_live_target(const struct apply *apply)
{
	for (size_t i = 0; i < apply->targets_count; i++)
		if (!apply->targets[i].is_deferred)
			return true;
	return false;
}

static bool can_replace_all(const struct apply *apply)
{
	for (size_t i = 0; i < apply->targets_count; i++)
		if (kernel_held_attachment(&apply->targets[i].filter))
			return false;
	return true;
}

/* New targets for shapes: what the tables hold goes by the old ones. */
static int plan_anew(struct apply *apply)
{
	int error = store_plan(apply->store);

	for (size_t i = 0; i < apply->targets_count && !error; i++)
		target_defer(&apply->targets[i], TARGET_NEW_PLAN);
	return error;
}

/* ---- adding ---- */

/* Where another tool holds the filter it cannot be replaced: the table is used to its last slot. */
static bool can_grow(const struct target *target)
{
	return !kernel_held_attachment(&target->filter);
}

static bool must_grow(const struct target *target)
{
	return !target->is_deferred && target_has_reached_limit(target) && can_grow(target);
}

bool apply_is_full(const struct apply *apply)
{
	for (size_t i = 0; i < apply->targets_count; i++)
		if (must_grow(&apply->targets[i]))
			return true;
	return false;
}

static int insert_into(struct apply *apply, struct target *target, const struct rule_key *key,
		       __s64 timeout_ms, struct reason *reason)
{
	__u32 expires = 0;
	int error;

	if (must_grow(target))
		target_defer(target, TARGET_TOO_SMALL);
	if (target->is_deferred)
		return 0;
	if (target->filter.options.is_exact) {
		error = target_tick(apply->store, timeout_ms, &expires, reason);
		if (error)
			return error;
	}
	error = target_insert(target, key, expires);
	if (error && can_grow(target)) {
		target_defer(target, TARGET_STUCK);
		return 0;
	}
	return error ? target_full(target, target->table.used + 1, reason) : 0;
}

/* From the first key on, and until the commit, the tables may hold more than the store. */
static int insert_key(struct apply *apply, const struct rule_key *key, __s64 timeout_ms,
		      struct reason *reason)
{
	int error = 0;

	if (!apply->has_inserted)
		set_generation(apply, ABI_GENERATION_DIRTY);
	apply->has_inserted = true;
	for (size_t i = 0; i < apply->targets_count && !error; i++)
		error = insert_into(apply, &apply->targets[i], key, timeout_ms, reason);
	return error;
}

struct adding {
	struct apply *apply;
	const struct rule *rule;
	struct reason *reason;
};

static int touch(struct apply *apply, const struct rule_key *key, struct reason *reason)
{
	return key_set_add(&apply->touched->keys, key) ?
		       reason_set(reason, -ENOMEM, "no memory for the change") : 0;
}

/* A key that another rule has too, or that this change has touched, is in the tables. */
static int add_key(const struct rule_key *key, bool is_shared, void *context)
{
	const struct adding *adding = context;
	struct apply *apply = adding->apply;
	struct keys_state state;
	int error;

	if (key_set_has(&apply->touched->keys, key))
		return 0;
	if (!is_shared)
		return insert_key(apply, key, adding->rule->timeout_ms, adding->reason);
	error = keys_state(apply->store, store_shape_list(apply->store), key, &state);
	if (error)
		return store_unread(error, adding->reason);
	if (state.rules == 1)
		return insert_key(apply, key, adding->rule->timeout_ms, adding->reason);
	return touch(apply, key, adding->reason);
}

static int touch_key(const struct rule_key *key, bool is_shared, void *context)
{
	const struct adding *adding = context;

	(void)is_shared;
	return touch(adding->apply, key, adding->reason);
}

static int put_once(struct apply *apply, const struct rule *rule, bool is_back)
{
	return is_back ? store_put_back(apply->store, rule) : store_put_for(apply->store, rule, apply->owner);
}

static bool is_answer(int error)
{
	return error == -EEXIST || error == -EALREADY || error == -EUSERS;
}

static int put(struct apply *apply, const struct rule *rule, bool is_back, struct reason *reason)
{
	char text[RULE_TEXT_BYTES];
	int error = put_once(apply, rule, is_back);

	if (error == -E2BIG && can_replace_all(apply) && !plan_anew(apply))
		error = put_once(apply, rule, is_back);
	if (error == -E2BIG)
		return reason_set(reason, error,
				  "'%s': %d kinds of rule (fields and prefix lengths) are in use for its "
				  "family, and there is room for no more; use a prefix length that other "
				  "rules use", rule_format(rule, text), ABI_SHAPES_MAX);
	return error && !is_answer(error) && error != -ENOENT ? store_refused(error, reason) : error;
}

static int add(struct apply *apply, const struct rule *rule, bool is_back, struct reason *reason)
{
	struct adding adding = { apply, rule, reason };
	const int put_error = put(apply, rule, is_back, reason);
	int error;

	if ((put_error && put_error != -EALREADY) || !has_live_target(apply))
		return put_error;
	error = keys_each(store_shape_list(apply->store), rule, put_error ? touch_key : add_key,
			  &adding);
	return error ? error : put_error;
}

int apply_add(struct apply *apply, const struct rule *rule, struct reason *reason)
{
	return add(apply, rule, false, reason);
}

/* Where none of its owners is left, it is not. */
int apply_put_back(struct apply *apply, const struct rule *rule, struct reason *reason)
{
	int error = add(apply, rule, true, reason);

	return error == -ENOENT ? 0 : error;
}

/* ---- deleting ---- */

static int del(struct apply *apply, const struct rule *rule, bool is_given_up, struct reason *reason)
{
	struct adding adding = { apply, rule, reason };
	struct rule found = *rule;
	int error = store_get(apply->store, &found);

	if (error == -ENOENT)
		return error;
	/* Before its shapes are gone, and their targets with them. */
	if (!error && has_live_target(apply))
		error = keys_each(store_shape_list(apply->store), rule, touch_key, &adding);
	if (!error)
		error = is_given_up ? store_give_up(apply->store, rule, apply->owner) :
				      store_del(apply->store, rule);
	if (!error || error == -EALREADY || error == -ENOENT)
		return error;
	return reason_set(reason, error, "cannot delete: %s", strerror(-error));
}

int apply_give_up(struct apply *apply, const struct rule *rule, struct reason *reason)
{
	return del(apply, rule, true, reason);
}

int apply_del(struct apply *apply, const struct rule *rule, struct reason *reason)
{
	return del(apply, rule, false, reason);
}

/* The tables are filled anew after the commit: quicker than key by key. */
int apply_clear(struct apply *apply, struct reason *reason)
{
	int error = store_clear(apply->store);

	for (size_t i = 0; i < apply->targets_count; i++)
		target_defer(&apply->targets[i], TARGET_STAYS);
	return error ? reason_set(reason, error, "cannot delete: %s", strerror(-error)) : 0;
}

struct expiring {
	struct apply *apply;
	__u64 *count;
	struct reason *reason;
};

static int expire_rule(const struct rule *rule, void *context)
{
	const struct expiring *expiring = context;

	++*expiring->count;
	return apply_del(expiring->apply, rule, expiring->reason);
}

int apply_expire(struct apply *apply, __u64 *count, struct reason *reason)
{
	struct expiring expiring = { apply, count, reason };
	int error;

	*count = 0;
	reason->text[0] = '\0';
	error = store_expired(apply->store, expire_rule, &expiring);
	return error && !reason->text[0] ? store_unread(error, reason) : error;
}

/* ---- before the commit ---- */

static bool fits(const struct target *target, const struct store_info *info)
{
	return target_slots_to_grow_to(target, info->keys) == table_slots(&target->table);
}

static bool has_reason_to_plan(const struct store *store)
{
	return store_has_new_shape(store) || shape_list_is_expanded(store_shape_list(store));
}

/* New tables for those that this one's keys do not fit into, and for those that change at once. */
static int prepare(struct apply *apply, struct reason *reason)
{
	struct store_info info;
	int error = 0;

	if (!store_is_changed(apply->store))
		return 0;
	if (has_reason_to_plan(apply->store) && can_replace_all(apply) &&
	    shape_list_plan_pays(store_shape_list(apply->store)))
		error = plan_anew(apply);
	if (!error)
		error = store_info(apply->store, &info);
	if (error)
		return store_unread(error, reason);
	for (size_t i = 0; i < apply->targets_count && !error; i++) {
		struct target *target = &apply->targets[i];

		if (target->is_deferred && !fits(target, &info))
			target_defer(target, TARGET_TOO_SMALL);
		if (target->cause)
			error = target_prepare(target, apply->store,
					       target_slots_to_grow_to(target, info.keys), reason);
	}
	return error;
}

/* Tables go back to what the store holds: by filling them again only where the change got to them. */
static void undo(struct apply *apply)
{
	struct store_info info;
	struct reason ignored;

	store_abort(apply->store);
	if (!apply->has_inserted && !store_info(apply->store, &info))
		set_generation(apply, info.generation);
	for (size_t i = 0; i < apply->targets_count; i++) {
		if (apply->has_inserted)
			target_fill(&apply->targets[i], apply->store, NULL, &ignored);
		if (apply->has_set_pending)
			target_confirm(&apply->targets[i]);
	}
}

/* ---- after the commit ---- */

/* A key that no rule has any more goes; another ends with the last of its rules. */
static int settle_key(struct apply *apply, struct target *target, const struct rule_key *key,
		      struct reason *reason)
{
	struct keys_state state;
	__u32 expires;
	int error = keys_state(apply->store, &apply->touched->shapes, key, &state);

	if (error == -ENOENT)
		error = target_delete(target, key);
	else if (!error) {
		error = target_tick(apply->store, state.timeout_ms, &expires, reason);
		if (!error)
			error = target_set_expires(target, key, expires);
	}
	return error ? reason_set(reason, error,
				  "a table lacked a deleted rule; the next command repairs it") : 0;
}

static int settle(struct apply *apply, struct target *target, struct reason *reason)
{
	const struct key_set *keys = &apply->touched->keys;
	int error = 0;

	for (size_t i = 0; i < keys->count && !error; i++)
		error = settle_key(apply, target, &keys->key[i], reason);
	return error ? error : target_publish(target, apply->store, reason);
}

static int finish_target(struct apply *apply, struct target *target, struct reason *reason)
{
	int error;

	if (target->successor)
		error = target_succeed(target, reason);
	else if (target->is_deferred)
		error = target_fill(target, apply->store, NULL, reason);
	else
		error = settle(apply, target, reason);
	return error ? error : target_configure(target, apply->store, reason);
}

/* What must wait for the commit: a rule that is still stored is never missing from a table. */
static int finish(struct apply *apply, struct reason *reason)
{
	struct store_info info;
	int error = store_info(apply->store, &info);

	if (!error)
		error = store_shapes(apply->store, &apply->touched->shapes);
	if (error)
		return store_unread(error, reason);
	for (size_t i = 0; i < apply->targets_count && !error; i++)
		error = finish_target(apply, &apply->targets[i], reason);
	if (!error)
		set_generation(apply, info.generation);
	return error;
}

static int commit(struct apply *apply, bool *is_changed, struct reason *reason)
{
	int error;

	*is_changed = store_is_changed(apply->store);
	error = store_commit(apply->store);
	return error ? store_refused(error, reason) : 0;
}

int apply_begin(struct apply *apply, struct reason *reason)
{
	int error = begin(apply, reason);

	if (error)
		apply_abort(apply);
	return error;
}

int apply_commit(struct apply *apply, struct reason *reason)
{
	bool is_changed = false;
	int error = apply_check_guard(apply, reason);

	if (!error)
		error = prepare(apply, reason);
	if (!error)
		error = commit(apply, &is_changed, reason);
	if (error)
		undo(apply);
	else if (is_changed)
		error = finish(apply, reason);
	apply_forget_change(apply);
	return error;
}

void apply_abort(struct apply *apply)
{
	undo(apply);
	apply_forget_change(apply);
}

int apply_change(struct apply *apply,
		 int (*make)(struct apply *apply, void *context, struct reason *reason),
		 void *context, struct reason *reason)
{
	int error = apply_begin(apply, reason);

	if (error)
		return error;
	error = make(apply, context, reason);
	if (!error)
		return apply_commit(apply, reason);
	apply_abort(apply);
	return error;
}
