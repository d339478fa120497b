// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Collects from the rules of a store all entries that a table must have. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "filter/hints.h"
#include "filter/internal.h"

int filter_entries_open(struct filter_entries *entries, struct filter *filter, struct store *store,
			const struct filter *predecessor, bool is_building, struct reason *reason)
{
	struct store_info info;
	int error = store_info(store, &info);

	*entries = (struct filter_entries){
		.filter = filter, .store = store, .hints = filter_hints(filter), .predecessor = predecessor
	};
	if (!error)
		error = store_shapes(store, &entries->shapes);
	if (error)
		return store_say_unread(error, reason);
	entries->is_replanned = predecessor && filter_own(predecessor)->plan != info.plan;
	entries->is_building = is_building;
	entries->expected = info.keys;
	entries->room = is_building && info.keys > FILTER_ENTRIES_AT_ONCE ? FILTER_ENTRIES_AT_ONCE : info.keys;
	entries->entry = malloc(entries->room * sizeof(*entries->entry) + 1);
	return entries->entry ? 0 : reason_set(reason, -ENOMEM, "no memory to fill the table");
}

void filter_entries_close(struct filter_entries *entries)
{
	free(entries->entry);
	free(entries->shortcut);
	free(entries->heir);
	*entries = (struct filter_entries){};
}

/* Puts the entries that have been collected so far into the table, if it is being built. */
static int build(struct filter_entries *entries)
{
	const size_t count = entries->is_building ? entries->count : 0;

	entries->count -= count;
	return table_build(&entries->filter->table, entries->entry, count);
}

static int put_key(struct filter_entries *entries, const struct rule_key *key, __s64 timeout_ms)
{
	struct filter *filter = entries->filter;
	struct table_entry *entry = &entries->entry[entries->count];
	__u32 tick = 0;
	__u64 hint;
	int error = filter_hint(filter, &key->shape, &hint);

	if (error)
		return error;
	*entry = (struct table_entry){ .key = rule_hash(key, &filter_own(filter)->secret) };
	if (filter->kernel.options.is_exact && timeout_ms)
		error = filter_tick(entries->store, timeout_ms, &tick, entries->reason);
	if (error)
		return error;
	entry->end = filter_end(filter, tick);
	hints_mark(entries->hints, key, hint);
	entries->count++;
	entries->collected++;
	if (hints_can_shorten(&key->shape) && !tick) {
		if (entries->shortcuts == entries->shortcuts_room) {
			const size_t room = 2 * entries->shortcuts_room + 64;
			struct rule_key *grown = realloc(entries->shortcut, room * sizeof(*grown));

			if (!grown)
				return -ENOMEM;
			entries->shortcut = grown;
			entries->shortcuts_room = room;
		}
		entries->shortcut[entries->shortcuts++] = *key;
	}
	return entries->count == entries->room ? build(entries) : 0;
}

static int collect_key(const struct rule_key *key, bool is_shared, void *context)
{
	struct filter_entries *entries = context;
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
	struct filter_entries *entries = context;

	entries->rule = rule;
	return keys_each(&entries->shapes, rule, collect_key, entries);
}

int filter_entries_collect(struct filter_entries *entries, struct reason *reason)
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
	return error && !reason->text[0] ? store_say_unread(error, reason) : error;
}

void filter_entries_set_shortcuts(const struct filter_entries *entries)
{
	for (size_t i = 0; i < entries->shortcuts; i++)
		hints_set_shortcuts(filter_hints(entries->filter), &entries->shortcut[i]);
}
