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

/* ---- counts that go on ---- */

static bool find_old_number(const struct target_keys *keys, const struct rule_key *key, __u32 *number)
{
	const struct target *old = keys->predecessor;
	const struct hash_value value = rule_hash(key, &old->filter.config->secret);

	return table_find(&old->table, &value, number) && *number < table_slots(&old->table);
}

/* Once for each number: rules may have had the key in common. */
static int carry(struct target_keys *keys, __u32 number, __u32 entry)
{
	__u64 *word = &keys->is_carried[number / 64], bit = 1ULL << number % 64;

	if (*word & bit)
		return 0;
	*word |= bit;
	if (keys->carried_count == keys->carried_room) {
		const size_t room = 2 * keys->carried_room + 64;
		struct target_carried *grown = realloc(keys->carried, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		keys->carried = grown;
		keys->carried_room = room;
	}
	keys->carried[keys->carried_count++] = (struct target_carried){ number, entry };
	return 0;
}

/* An entry that goes on counts as it did. */
static int carry_entry(struct target_keys *keys, const struct rule_key *key, __u32 entry)
{
	__u32 number;

	return find_old_number(keys, key, &number) ? carry(keys, number, entry) : 0;
}

struct owning {
	const struct target_keys *keys;
	const struct rule *rule;
};

static int is_owned(const struct rule_key *key, bool is_shared, void *context)
{
	const struct owning *owning = context;
	struct keys_state state;

	return !is_shared || (!keys_state(owning->keys->store, &owning->keys->shapes, key, &state) &&
			      keys_same_rule(&state.owner, owning->rule));
}

static bool brings_entries(const struct target_keys *keys, struct rule *rule)
{
	struct owning owning = { keys, rule };

	return !store_get(keys->store, rule) && keys_each(&keys->shapes, rule, is_owned, &owning) > 0;
}

/* Whether what a key expands to is a narrower rule's as well, which brings entries: then the count is theirs. */
static bool is_of_another(const struct target_keys *keys, const struct rule_key *key,
			  const struct rule_key *expanded)
{
	const struct rule query = rule_of_key(expanded);
	struct rule rules[RULE_KEYS_MAX];

	for (size_t i = 0; i < keys->shapes.count; i++) {
		const struct rule_shape *shape = &keys->shapes.entry[i].shape;

		if (rule_can_expand(&key->shape, shape) && rule_expansion_bits(&key->shape, shape) &&
		    rule_can_expand(shape, &expanded->shape) && rule_generalise(&query, shape, rules) &&
		    brings_entries(keys, &rules[0]))
			return true;
	}
	return false;
}

static int carry_expanded(struct target_keys *keys, const struct rule_key *key,
			  const struct rule_shape *old_target, __u32 entry)
{
	const __u64 count = 1ULL << rule_expansion_bits(&key->shape, old_target);
	int error = 0;

	for (__u64 i = 0; i < count && !error; i++) {
		const struct rule_key expanded = rule_expand(key, old_target, i);

		if (!is_of_another(keys, key, &expanded))
			error = carry_entry(keys, &expanded, entry);
	}
	return error;
}

/* Whether all that the key expands to is in the predecessor; then so many are in use there. */
static bool was_expanded(const struct target_keys *keys, const struct rule_key *key,
			 const struct rule_shape *old_target)
{
	const unsigned int bits = rule_expansion_bits(&key->shape, old_target);
	__u32 number;

	if (bits >= 64 || 1ULL << bits > keys->predecessor->table.used)
		return false;
	for (__u64 i = 0; i < 1ULL << bits; i++) {
		const struct rule_key expanded = rule_expand(key, old_target, i);

		if (!find_old_number(keys, &expanded, &number))
			return false;
	}
	return true;
}

/* Which target the key's shape had in the predecessor is told by where its keys are: itself, or a longer one. */
static int carry_key(struct target_keys *keys, const struct rule_key *key, __u32 entry)
{
	const struct abi_shape_list *list =
		abi_shapes(keys->predecessor->filter.config, key->shape.family);
	__u32 number;

	if (find_old_number(keys, key, &number))
		return carry(keys, number, entry);
	for (__u32 i = 0; i < list->count; i++) {
		const struct rule_shape old =
			rule_shape_of_tag(abi_shape_at(list, i)->tag, key->shape.family);

		if (rule_can_expand(&key->shape, &old) && was_expanded(keys, key, &old))
			return carry_expanded(keys, key, &old, entry);
	}
	return 0;
}

/* Where shapes have got other targets: all that the rule was counted under goes on under the first of its entries. */
static int carry_rule(struct target_keys *keys, const struct rule *rule, __u32 entry)
{
	struct rule_key own[RULE_KEYS_MAX];
	const size_t count = rule_keys(rule, own);
	int error = 0;

	for (size_t i = 0; i < count && !error; i++)
		error = carry_key(keys, &own[i], entry);
	return error;
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
	error = put_key(keys, key, timeout_ms);
	return error || !keys->predecessor ? error : carry_entry(keys, key, keys->count - 1);
}

static int collect_rule(const struct rule *rule, void *context)
{
	struct target_keys *keys = context;
	const size_t before = keys->count;
	int error;

	keys->rule = rule;
	error = keys_each(&keys->shapes, rule, collect_key, keys);
	if (!error && keys->is_replanned && keys->count > before)
		error = carry_rule(keys, rule, before);
	return error;
}

static size_t carried_words(const struct target_keys *keys)
{
	return table_slots(&keys->predecessor->table) / 64 + 1;
}

int target_keys_collect(struct target_keys *keys, struct reason *reason)
{
	int error;

	keys->count = keys->carried_count = keys->shortcuts = 0;
	keys->reason = reason;
	if (keys->predecessor)
		memset(keys->is_carried, 0, carried_words(keys) * sizeof(__u64));
	reason->text[0] = '\0';
	error = store_each(keys->store, collect_rule, keys);
	return error && !reason->text[0] ? target_store_failed(error, reason) : error;
}

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
	if (predecessor)
		keys->is_carried = malloc(carried_words(keys) * sizeof(__u64));
	if (keys->entry && (keys->is_carried || !predecessor))
		return 0;
	return reason_set(reason, -ENOMEM, "no memory to fill the table");
}

void target_keys_close(struct target_keys *keys)
{
	free(keys->entry);
	free(keys->shortcut);
	free(keys->carried);
	free(keys->is_carried);
	*keys = (struct target_keys){};
}
