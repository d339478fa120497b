// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From the rules of a store to the entries of a table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hints.h"
#include "target_internal.h"

/* When the entry ends. -ENOENT where it belongs to another rule, which brings it itself. */
static int key_timeout(struct target_keys *keys, const struct rule_key *key, bool is_shared,
		       __s64 *timeout_ms)
{
	struct keys_state state;
	int error;

	*timeout_ms = keys->rule->timeout_ms;
	if (!is_shared)
		return 0;
	error = keys_state(keys->store, &keys->shapes, key, &state);
	if (error)
		return error == -ENOENT ? -EBADMSG : error;
	*timeout_ms = state.timeout_ms;
	return keys_same_rule(&state.owner, keys->rule) ? 0 : -ENOENT;
}

static int note_shortcut(struct target_keys *keys, const struct rule_key *key)
{
	if (keys->shortcuts == keys->shortcuts_room) {
		const size_t room = 2 * keys->shortcuts_room + 64;
		struct rule_key *grown = realloc(keys->shortcut, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		keys->shortcut = grown;
		keys->shortcuts_room = room;
	}
	keys->shortcut[keys->shortcuts++] = *key;
	return 0;
}

static int put_key(struct target_keys *keys, const struct rule_key *key, __s64 timeout_ms)
{
	struct target *target = keys->target;
	struct table_entry *entry = &keys->entry[keys->count];
	__u64 hint;
	int error = target_hint(target, &key->shape, &hint);

	if (error)
		return error;
	*entry = (struct table_entry){ .key = rule_hash(key, &target->filter.config->secret) };
	if (target->filter.options.is_exact && timeout_ms)
		error = target_tick(keys->store, timeout_ms, &entry->expires, keys->reason);
	if (error)
		return error;
	hints_mark(keys->hints, key, hint);
	keys->count++;
	return hints_can_shorten(&key->shape) && !entry->expires ? note_shortcut(keys, key) : 0;
}

void target_keys_shorten(const struct target_keys *keys)
{
	const struct target *target = keys->target;
	__u32 number;

	for (size_t i = 0; i < keys->shortcuts; i++) {
		const struct rule_key *key = &keys->shortcut[i];
		const struct hash_value value = rule_hash(key, &target->filter.config->secret);

		if (table_find(&target->table, &value, &number))
			hints_set_shortcuts(target_hints(target), key, number);
	}
}

/* ---- all of it ---- */

static int collect_key(const struct rule_key *key, bool is_shared, void *context)
{
	struct target_keys *keys = context;
	__s64 timeout_ms;
	int error = key_timeout(keys, key, is_shared, &timeout_ms);

	if (error)
		return error == -ENOENT ? 0 : error;
	/* The store is locked: more keys than its shape counts say means that it is damaged. */
	if (keys->count == keys->room)
		return -EBADMSG;
	return put_key(keys, key, timeout_ms);
}

static int collect_rule(const struct rule *rule, void *context)
{
	struct target_keys *keys = context;

	keys->rule = rule;
	return keys_each(&keys->shapes, rule, collect_key, keys);
}

int target_keys_collect(struct target_keys *keys, struct reason *reason)
{
	int error;

	keys->count = keys->shortcuts = 0;
	keys->reason = reason;
	reason->text[0] = '\0';
	error = store_each(keys->store, collect_rule, keys);
	return error && !reason->text[0] ? target_store_failed(error, reason) : error;
}

/* ---- counts that go on ---- */

static bool find_number(const struct target *target, const struct rule_key *key, __u32 *number)
{
	const struct hash_value value = rule_hash(key, &target->filter.config->secret);

	return table_find(&target->table, &value, number) && *number < table_slots(&target->table);
}

/* Whether all that the key expands to is in the table: no more look-ups than the table has keys. */
static bool is_expanded(const struct target *target, const struct rule_key *key, const struct rule_shape *to)
{
	const unsigned int bits = rule_expansion_bits(&key->shape, to);
	__u32 number;

	if (bits >= 64 || 1ULL << bits > target->table.used)
		return false;
	for (__u64 i = 0; i < 1ULL << bits; i++) {
		const struct rule_key expanded = rule_expand(key, to, i);

		if (!find_number(target, &expanded, &number))
			return false;
	}
	return true;
}

/* Nothing kept tells which target a shape had under the old plan. The table tells, by what it has of the key. */
static bool find_old_target(const struct target *old, const struct rule_key *key, struct rule_shape *target)
{
	const struct abi_shape_list *list = abi_shapes(old->filter.config, key->shape.family);
	__u32 number;

	*target = key->shape;
	if (find_number(old, key, &number))
		return true;
	for (__u32 i = 0; i < list->count; i++) {
		*target = rule_shape_of_tag(abi_shape_at(list, i)->tag, key->shape.family);
		if (rule_can_expand(&key->shape, target) && is_expanded(old, key, target))
			return true;
	}
	return false;
}

/* The part of an old key that both targets can tell apart: all of it where the new target is no longer. */
static struct rule_key common_key(const struct rule_key *old, const struct rule_shape *target)
{
	const struct rule query = rule_of_key(old);
	struct rule rules[RULE_KEYS_MAX];
	struct rule_key keys[RULE_KEYS_MAX];
	struct rule_shape shape = *target;

	if (old->shape.src_len < shape.src_len)
		shape.src_len = old->shape.src_len;
	if (old->shape.dst_len < shape.dst_len)
		shape.dst_len = old->shape.dst_len;
	rule_generalise(&query, &shape, rules);
	rule_keys(&rules[0], keys);
	return keys[0];
}

/*
 * The new key that goes on with the count of an old key of the rule. If several new keys share the old one's packets,
 * the first that no narrower rule has: a narrower rule would show packets that it does not match.
 */
static int choose_new_key(struct target_keys *keys, const struct rule *rule, const struct rule_key *old,
			  const struct rule_shape *target, struct rule_key *new)
{
	const struct rule_key common = common_key(old, target);
	const unsigned int bits = rule_expansion_bits(&common.shape, target);
	struct keys_state state;
	int error;

	for (__u64 i = 0; bits && i < 1ULL << bits; i++) {
		*new = rule_expand(&common, target, i);
		error = keys_state(keys->store, &keys->shapes, new, &state);
		if (error)
			return error == -ENOENT ? -EBADMSG : error;
		if (keys_same_rule(&state.narrowest, rule))
			return 0;
	}
	*new = rule_expand(&common, target, 0);
	return 0;
}

static int carry_key(struct target_keys *keys, const struct rule *rule, const struct rule_key *key)
{
	const struct rule_shape *target = &shape_list_find(&keys->shapes, &key->shape)->target;
	struct rule_shape old_target = *target;
	__u32 old_number, number;
	int error = 0;

	if (keys->is_replanned && !find_old_target(keys->predecessor, key, &old_target))
		return 0;
	for (__u64 i = 0; i < 1ULL << rule_expansion_bits(&key->shape, &old_target) && !error; i++) {
		const struct rule_key old = rule_expand(key, &old_target, i);
		struct rule_key new;

		if (!find_number(keys->predecessor, &old, &old_number))
			continue;
		error = choose_new_key(keys, rule, &old, target, &new);
		if (!error && find_number(keys->target, &new, &number))
			keys->heir[old_number] = number + 1;
	}
	return error;
}

/* The store has wider rules before the narrower ones in them: the narrowest that had a key goes on with its count. */
static int carry_rule(const struct rule *rule, void *context)
{
	struct rule_key own[RULE_KEYS_MAX];
	const size_t count = rule_keys(rule, own);
	int error = 0;

	for (size_t i = 0; i < count && !error; i++)
		error = carry_key(context, rule, &own[i]);
	return error;
}

int target_keys_carry(struct target_keys *keys, struct reason *reason)
{
	int error;

	if (!keys->predecessor)
		return 0;
	keys->heir = calloc(table_slots(&keys->predecessor->table), sizeof(*keys->heir));
	if (!keys->heir)
		return reason_set(reason, -ENOMEM, "no memory to carry counts over");
	error = store_each(keys->store, carry_rule, keys);
	return error ? target_store_failed(error, reason) : 0;
}

/* ---- opening ---- */

int target_keys_open(struct target_keys *keys, struct target *target, struct store *store,
		     const struct target *predecessor, struct reason *reason)
{
	struct store_info info;
	int error = store_info(store, &info);

	*keys = (struct target_keys){ .target = target,
				      .store = store,
				      .hints = target_hints(target),
				      .predecessor = predecessor };
	if (!error)
		error = store_shapes(store, &keys->shapes);
	if (error)
		return target_store_failed(error, reason);
	keys->is_replanned = predecessor && predecessor->filter.config->plan != info.plan;
	keys->room = info.keys;
	keys->entry = malloc(keys->room * sizeof(*keys->entry) + 1);
	return keys->entry ? 0 : reason_set(reason, -ENOMEM, "no memory to fill the table");
}

void target_keys_close(struct target_keys *keys)
{
	free(keys->entry);
	free(keys->shortcut);
	free(keys->heir);
	*keys = (struct target_keys){};
}
