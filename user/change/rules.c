// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Adds and deletes the rules of a change in the store. For the tables it only notes keys: see entries.c. */
#include <errno.h>
#include <string.h>

#include "change/change.h"
#include "change/internal.h"
#include "filter/rule_entries.h"

/* ---- messages ---- */

int apply_say_unwritten(int error, struct reason *reason)
{
	return reason_set(reason, error, "cannot write to the store: %s", reason_of_write(error));
}

int apply_say_unread(int error, struct reason *reason)
{
	return reason_set(reason, error, "cannot read the store: %s", strerror(-error));
}

/* ---- adding ---- */

struct adding {
	struct apply *apply;
	const struct rule *rule;
	struct reason *reason;
};

/* A key is new unless another rule has it, or this change has touched it. */
static int add_key(const struct rule_key *key, bool is_shared, void *context)
{
	const struct adding *adding = context;
	struct apply *apply = adding->apply;
	struct keys_state state;
	int error;

	if (key_set_has(&apply->touched->keys, key))
		return apply_keys_touch(apply, key, true, adding->reason);
	if (!is_shared)
		return apply_keys_hold(apply, key, adding->rule->timeout_ms, adding->reason);
	error = keys_state(apply->store, store_shape_list(apply->store), key, &state);
	if (error)
		return apply_say_unread(error, adding->reason);
	if (state.rules == 1)
		return apply_keys_hold(apply, key, adding->rule->timeout_ms, adding->reason);
	return apply_keys_touch(apply, key, true, adding->reason);
}

static int retime_key(const struct rule_key *key, bool is_shared, void *context)
{
	const struct adding *adding = context;

	(void)is_shared;
	return apply_keys_touch(adding->apply, key, true, adding->reason);
}

static int leave_key(const struct rule_key *key, bool is_shared, void *context)
{
	const struct adding *adding = context;

	(void)is_shared;
	return apply_keys_touch(adding->apply, key, false, adding->reason);
}

static int put_once(struct apply *apply, const struct rule *rule, bool is_back)
{
	return is_back ? store_put_back(apply->store, rule) : store_put_for(apply->store, rule, apply->owner);
}

static int put(struct apply *apply, const struct rule *rule, bool is_back, struct reason *reason)
{
	char text[RULE_TEXT_BYTES];
	int error = put_once(apply, rule, is_back);

	if (error == -E2BIG && !apply->touched->is_out_of_kinds && apply_can_replace_all(apply) &&
	    !apply_plan_anew(apply))
		error = put_once(apply, rule, is_back);
	apply->touched->is_out_of_kinds |= error == -E2BIG;
	if (error == -E2BIG)
		return reason_set(reason, error,
				  "'%s': %d kinds of rule (fields and prefix lengths) are in use for its "
				  "family, and there is room for no more; use a prefix length that other "
				  "rules use",
				  rule_format(rule, text), ABI_SHAPES_MAX);
	if (!error || error == -EEXIST || error == -EALREADY || error == -EUSERS || error == -ENOENT)
		return error;
	return apply_say_unwritten(error, reason);
}

static int add(struct apply *apply, const struct rule *rule, bool is_back, struct reason *reason)
{
	struct adding adding = { apply, rule, reason };
	int put_error, error = apply_push_pending_by_rule(apply, reason);

	if (error)
		return error;
	put_error = put(apply, rule, is_back, reason);
	if ((put_error && put_error != -EALREADY) || !apply_keys_matter(apply))
		return put_error;
	error = keys_each(store_shape_list(apply->store), rule, put_error ? retime_key : add_key, &adding);
	return error ? error : put_error;
}

int apply_add(struct apply *apply, const struct rule *rule, struct reason *reason)
{
	return add(apply, rule, false, reason);
}

/* If none of its owners exists any more, the rule is not restored. */
int apply_put_back(struct apply *apply, const struct rule *rule, struct reason *reason)
{
	int error = add(apply, rule, true, reason);

	return error == -ENOENT ? 0 : error;
}

/* ---- deleting ---- */

enum deletion { DELETE_OWN, DELETE_ANY, DELETE_ENDED };

static int del(struct apply *apply, const struct rule *rule, enum deletion deletion, struct reason *reason)
{
	struct adding adding = { apply, rule, reason };
	struct rule found = *rule;
	int error = apply_push_pending_by_rule(apply, reason);

	if (error)
		return error;
	error = store_get(apply->store, &found);
	/* First: the keys depend on the shapes, which may disappear with the rule. */
	if (!error && apply_keys_matter(apply))
		error = keys_each(store_shape_list(apply->store), rule, leave_key, &adding);
	/* Even if the rule does not exist: else the undo of a pending change could bring it back. */
	if (!error || error == -ENOENT)
		error = deletion == DELETE_OWN ? store_give_up(apply->store, rule, apply->owner) :
			deletion == DELETE_ANY ? store_del(apply->store, rule) :
						 store_del_ended(apply->store, rule);
	if (!error || error == -EALREADY || error == -ENOENT)
		return error;
	return reason_set(reason, error, "cannot delete: %s", strerror(-error));
}

int apply_give_up(struct apply *apply, const struct rule *rule, struct reason *reason)
{
	return del(apply, rule, DELETE_OWN, reason);
}

int apply_del(struct apply *apply, const struct rule *rule, struct reason *reason)
{
	return del(apply, rule, DELETE_ANY, reason);
}

/* The tables are refilled after the commit, which is faster than deleting each key. */
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
	return del(expiring->apply, rule, DELETE_ENDED, expiring->reason);
}

int apply_expire(struct apply *apply, __u64 *count, struct reason *reason)
{
	struct expiring expiring = { apply, count, reason };
	int error;

	*count = 0;
	reason->text[0] = '\0';
	error = store_expired(apply->store, expire_rule, &expiring);
	return error && !reason->text[0] ? apply_say_unread(error, reason) : error;
}
