// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Collects from the rules of a store all entries that a table must have. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "filter/hints.h"
#include "filter/internal.h"

int target_entries_open(struct target_entries *entries, struct target *target, struct store *store,
			const struct target *predecessor, bool is_building, struct reason *reason)
{
	struct store_info info;
	int error = store_info(store, &info);

	*entries = (struct target_entries){
		.target = target, .store = store, .hints = target_hints(target), .predecessor = predecessor
	};
	if (!error)
		error = store_shapes(store, &entries->shapes);
	if (error)
		return target_say_store_unread(error, reason);
	entries->is_replanned = predecessor && target_own(predecessor)->plan != info.plan;
	entries->is_building = is_building;
	entries->expected = info.keys;
	entries->room = is_building && info.keys > TARGET_ENTRIES_AT_ONCE ? TARGET_ENTRIES_AT_ONCE : info.keys;
	entries->entry = malloc(entries->room * sizeof(*entries->entry) + 1);
	return entries->entry ? 0 : reason_set(reason, -ENOMEM, "no memory to fill the table");
}

void target_entries_close(struct target_entries *entries)
{
	free(entries->entry);
	free(entries->shortcut);
	free(entries->heir);
	*entries = (struct target_entries){};
}

static int note_shortcut(struct target_entries *entries, const struct rule_key *key)
{
	if (entries->shortcuts == entries->shortcuts_room) {
		const size_t room = 2 * entries->shortcuts_room + 64;
		struct rule_key *grown = realloc(entries->shortcut, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		entries->shortcut = grown;
		entries->shortcuts_room = room;
	}
	entries->shortcut[entries->shortcuts++] = *key;
	return 0;
}

/* Puts the entries that have been collected so far into the table, if it is being built. */
static int build(struct target_entries *entries)
{
	const size_t count = entries->is_building ? entries->count : 0;

	entries->count -= count;
	return table_build(&entries->target->table, entries->entry, count);
}

static int put_key(struct target_entries *entries, const struct rule_key *key, __s64 timeout_ms)
{
	struct target *target = entries->target;
	struct table_entry *entry = &entries->entry[entries->count];
	__u32 tick = 0;
	__u64 hint;
	int error = target_hint(target, &key->shape, &hint);

	if (error)
		return error;
	*entry = (struct table_entry){ .key = rule_hash(key, &target_own(target)->secret) };
	if (target->filter.options.is_exact && timeout_ms)
		error = target_tick(entries->store, timeout_ms, &tick, entries->reason);
	if (error)
		return error;
	entry->end = target_end(target, tick);
	hints_mark(entries->hints, key, hint);
	entries->count++;
	entries->collected++;
	if (hints_can_shorten(&key->shape) && !tick)
		error = note_shortcut(entries, key);
	return !error && entries->count == entries->room ? build(entries) : error;
}

static int collect_key(const struct rule_key *key, bool is_shared, void *context)
{
	struct target_entries *entries = context;
	__s64 timeout_ms = entries->rule->timeout_ms;

	if (is_shared) {
		struct keys_state state;
		int error = keys_state(entries->store, &entries->shapes, key, &state);

		/* The present rule has the key. So -ENOENT means that the store is damaged. */
		if (error)
			return error == -ENOENT ? -EBADMSG : error;
		/* The first rule that has the key brings the entry. */
		if (!keys_same_rule(&state.owner, entries->rule))
			return 0;
		timeout_ms = state.timeout_ms;
	}
	/* The store is locked. So more keys than its counts say mean that it is damaged. */
	if (entries->collected == entries->expected)
		return -EBADMSG;
	return put_key(entries, key, timeout_ms);
}

static int collect_rule(const struct rule *rule, void *context)
{
	struct target_entries *entries = context;

	entries->rule = rule;
	return keys_each(&entries->shapes, rule, collect_key, entries);
}

int target_entries_collect(struct target_entries *entries, struct reason *reason)
{
	int error;

	entries->count = entries->collected = entries->shortcuts = 0;
	entries->reason = reason;
	reason->text[0] = '\0';
	error = store_each(entries->store, collect_rule, entries);
	if (!error)
		error = build(entries);
	if (error == -ENOSPC)
		return reason_set(reason, error, "cannot fill a new table: %s", strerror(-error));
	return error && !reason->text[0] ? target_say_store_unread(error, reason) : error;
}

void target_entries_set_shortcuts(const struct target_entries *entries)
{
	for (size_t i = 0; i < entries->shortcuts; i++)
		hints_set_shortcuts(target_hints(entries->target), &entries->shortcut[i]);
}
