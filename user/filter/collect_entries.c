// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From the rules of a store to the entries of a table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "filter/hints.h"
#include "filter/internal.h"

/* When the entry ends. -ENOENT where it belongs to another rule, which brings it itself. */
static int key_timeout(struct target_keys *keys, const struct rule_key *key, bool is_shared, __s64 *timeout_ms)
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

static int build(struct target_keys *keys)
{
	const size_t count = keys->is_building ? keys->count : 0;

	keys->count -= count;
	return table_build(&keys->target->table, keys->entry, count);
}

static int put_key(struct target_keys *keys, const struct rule_key *key, __s64 timeout_ms)
{
	struct target *target = keys->target;
	struct table_entry *entry = &keys->entry[keys->count];
	__u32 tick = 0;
	__u64 hint;
	int error = target_hint(target, &key->shape, &hint);

	if (error)
		return error;
	*entry = (struct table_entry){ .key = rule_hash(key, &target_own(target)->secret) };
	if (target->filter.options.is_exact && timeout_ms)
		error = target_tick(keys->store, timeout_ms, &tick, keys->reason);
	if (error)
		return error;
	entry->end = target_end(target, tick);
	hints_mark(keys->hints, key, hint);
	keys->count++;
	keys->collected++;
	if (hints_can_shorten(&key->shape) && !tick)
		error = note_shortcut(keys, key);
	return !error && keys->count == keys->room ? build(keys) : error;
}

void target_keys_shorten(const struct target_keys *keys)
{
	for (size_t i = 0; i < keys->shortcuts; i++)
		hints_set_shortcuts(target_hints(keys->target), &keys->shortcut[i]);
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
	if (keys->collected == keys->expected)
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

	keys->count = keys->collected = keys->shortcuts = 0;
	keys->reason = reason;
	reason->text[0] = '\0';
	error = store_each(keys->store, collect_rule, keys);
	if (!error)
		error = build(keys);
	if (error == -ENOSPC)
		return reason_set(reason, error, "cannot fill a new table: %s", strerror(-error));
	return error && !reason->text[0] ? target_store_failed(error, reason) : error;
}

/* ---- counts that go on ---- */

struct carrying {
	struct target_keys *keys;
	__u64 *counted, counted_bits; /* of the old table's keys, those whose heirs are searched: see note_counted() */
	__u32 *narrowest; /* of the rules that have the key in a new slot, under a new plan: counted as `rule` is */
	__u32 rule;       /* the one under way: the first of the store is 1 */
};

static __u64 counted_bit(const struct carrying *carrying, __u64 tag)
{
	return (tag >> ABI_END_BITS) & (carrying->counted_bits - 1);
}

/*
 * Most keys have no count, and are not looked up: a bit by their tags, which others may share, tells those that have
 * one, and were not there when heirs were searched before. Returns whether there are any.
 */
static bool note_counted(struct carrying *carrying)
{
	const struct target_keys *keys = carrying->keys;
	const struct table *old = &keys->predecessor->table;
	const __u32 mark = ~keys->searches, slots = table_slots(old);
	bool has_any = false;

	for (__u64 slot = 0; slot < slots; slot++) {
		__u64 bit;

		if (!old->memory.counter[slot].packets || (keys->heir[slot] && keys->heir[slot] != mark))
			continue;
		bit = counted_bit(carrying, old->memory.record[slot]);
		keys->heir[slot] = mark;
		carrying->counted[bit / 64] |= 1ULL << bit % 64;
		has_any = true;
	}
	return has_any;
}

static bool is_counted(const struct carrying *carrying, const struct rule_key *key)
{
	const struct hash_value value = rule_hash(key, &target_own(carrying->keys->predecessor)->secret);
	const __u64 bit = counted_bit(carrying, value.tag);

	return carrying->counted[bit / 64] >> bit % 64 & 1;
}

static bool find_slot(const struct target *target, const struct rule_key *key, __u32 *slot)
{
	const struct hash_value value = rule_hash(key, &target_own(target)->secret);

	return table_find(&target->table, &value, slot);
}

/* Whether all that the key expands to is in the table: no more look-ups than the table has keys. */
static bool is_expanded(const struct target *target, const struct rule_key *key, const struct rule_shape *to)
{
	const unsigned int bits = rule_expansion_bits(&key->shape, to);
	__u32 slot;

	if (bits >= 64 || 1ULL << bits > target->table.used)
		return false;
	for (__u64 i = 0; i < 1ULL << bits; i++) {
		const struct rule_key expanded = rule_expand(key, to, i);

		if (!find_slot(target, &expanded, &slot))
			return false;
	}
	return true;
}

/* Nothing kept tells which target a shape had under the old plan. The table tells, by what it has of the key. */
static bool find_old_target(const struct target *old, const struct rule_key *key, struct rule_shape *target)
{
	const struct abi_shape_list *list = abi_shapes(target_own(old), key->shape.family);
	__u32 slot;

	*target = key->shape;
	if (find_slot(old, key, &slot))
		return true;
	for (__u32 i = 0; i < list->count; i++) {
		*target = rule_shape_of_tag(abi_shape_at(list, i)->tag, key->shape.family);
		if (rule_can_expand(&key->shape, target) && is_expanded(old, key, target))
			return true;
	}
	return false;
}

/*
 * A slot of the new table that goes on with all that the key of the rule under way was counted in: rather one that
 * no narrower rule has, which would show packets that it does not match. From the last: lists name first networks more.
 */
static bool find_heir(const struct carrying *carrying, const struct rule_key *key, const struct rule_shape *target,
		      __u32 *heir)
{
	const __u64 last = (1ULL << rule_expansion_bits(&key->shape, target)) - 1;
	__u32 slot;

	for (__u64 i = 0; i <= last; i++) {
		const struct rule_key expanded = rule_expand(key, target, last - i);

		if (!find_slot(carrying->keys->target, &expanded, &slot))
			return false;
		if (!i || carrying->narrowest[slot] == carrying->rule)
			*heir = slot;
		if (carrying->narrowest[slot] == carrying->rule)
			break;
	}
	return true;
}

static void carry_key(const struct carrying *carrying, const struct rule_key *key)
{
	const struct target_keys *keys = carrying->keys;
	const struct rule_shape *target = &shape_list_find(&keys->shapes, &key->shape)->probed_as;
	struct rule_shape old_target = *target;
	__u32 old_slot, heir;
	bool is_same;

	if (keys->is_replanned && !find_old_target(keys->predecessor, key, &old_target))
		return;
	is_same = !memcmp(&old_target, target, sizeof(old_target));
	if (!is_same && !find_heir(carrying, key, target, &heir))
		return;
	for (__u64 i = 0; i < 1ULL << rule_expansion_bits(&key->shape, &old_target); i++) {
		const struct rule_key old = rule_expand(key, &old_target, i);

		if (is_counted(carrying, &old) && find_slot(keys->predecessor, &old, &old_slot) &&
		    (!is_same || find_slot(keys->target, &old, &heir)))
			keys->heir[old_slot] = heir + 1;
	}
}

/* The store has wider rules before the narrower ones in them: the narrowest that had a key goes on with its count. */
static int carry_rule(const struct rule *rule, void *context)
{
	struct carrying *carrying = context;
	struct rule_key own[RULE_KEYS_MAX];
	const size_t count = rule_keys(rule, own);

	carrying->rule++;
	for (size_t i = 0; i < count; i++)
		carry_key(carrying, &own[i]);
	return 0;
}

static int note_key(const struct rule_key *key, bool is_shared, void *context)
{
	const struct carrying *carrying = context;
	__u32 slot;

	(void)is_shared;
	if (find_slot(carrying->keys->target, key, &slot))
		carrying->narrowest[slot] = carrying->rule;
	return 0;
}

static int note_rule(const struct rule *rule, void *context)
{
	struct carrying *carrying = context;

	carrying->rule++;
	return keys_each(&carrying->keys->shapes, rule, note_key, carrying);
}

static int carry_all(struct carrying *carrying)
{
	struct store *store = carrying->keys->store;
	int error = 0;

	if (!note_counted(carrying))
		return 0;
	if (carrying->keys->is_replanned) {
		carrying->narrowest = calloc(table_slots(&carrying->keys->target->table), sizeof(*carrying->narrowest));
		error = carrying->narrowest ? store_each(store, note_rule, carrying) : -ENOMEM;
	}
	carrying->rule = 0;
	return error ? error : store_each(store, carry_rule, carrying);
}

int target_keys_carry(struct target_keys *keys, struct reason *reason)
{
	struct carrying carrying = { .keys = keys, .counted_bits = 64 };
	int error;

	if (!keys->predecessor)
		return 0;
	while (carrying.counted_bits < 2 * table_slots(&keys->predecessor->table))
		carrying.counted_bits *= 2;
	carrying.counted = calloc(carrying.counted_bits / 64, sizeof(*carrying.counted));
	if (!keys->heir)
		keys->heir = calloc(table_slots(&keys->predecessor->table), sizeof(*keys->heir));
	error = keys->heir && carrying.counted ? carry_all(&carrying) : -ENOMEM;
	keys->searches++;
	free(carrying.counted);
	free(carrying.narrowest);
	if (error == -ENOMEM)
		return reason_set(reason, error, "no memory to carry counts over");
	return error ? target_store_failed(error, reason) : 0;
}

/* ---- opening ---- */

int target_keys_open(struct target_keys *keys, struct target *target, struct store *store,
		     const struct target *predecessor, bool is_building, struct reason *reason)
{
	struct store_info info;
	int error = store_info(store, &info);

	*keys = (struct target_keys){
		.target = target, .store = store, .hints = target_hints(target), .predecessor = predecessor
	};
	if (!error)
		error = store_shapes(store, &keys->shapes);
	if (error)
		return target_store_failed(error, reason);
	keys->is_replanned = predecessor && target_own(predecessor)->plan != info.plan;
	keys->is_building = is_building;
	keys->expected = info.keys;
	keys->room = is_building && info.keys > TARGET_KEYS_AT_ONCE ? TARGET_KEYS_AT_ONCE : info.keys;
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
