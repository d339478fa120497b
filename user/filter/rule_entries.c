// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "filter/rule_entries.h"

#include <errno.h>
#include <string.h>

static int expand(const struct shape_list_entry *entry, const struct rule_key *key,
		  int (*visit)(const struct rule_key *key, bool is_shared, void *context), void *context)
{
	const __u64 count = 1ULL << rule_expansion_bits(&entry->shape, &entry->probed_as);
	int result = 0;

	for (__u64 i = 0; i < count && !result; i++) {
		const struct rule_key expanded = rule_expand(key, &entry->probed_as, i);

		result = visit(&expanded, entry->is_shared, context);
	}
	return result;
}

int keys_each(const struct shape_list *list, const struct rule *rule,
	      int (*visit)(const struct rule_key *key, bool is_shared, void *context), void *context)
{
	struct rule_key keys[RULE_KEYS_MAX];
	const size_t count = rule_keys(rule, keys);
	int result = 0;

	for (size_t i = 0; i < count && !result; i++) {
		const struct shape_list_entry *entry = shape_list_find(list, &keys[i].shape);

		if (!entry || rule_expansion_bits(&entry->shape, &entry->probed_as) >= 64)
			return -EBADMSG;
		result = expand(entry, &keys[i], visit, context);
	}
	return result;
}

static void add_rule(struct keys_state *state, const struct rule *rule)
{
	if (!state->rules++) {
		state->owner = *rule;
		state->timeout_ms = rule->timeout_ms;
	} else if (!rule->timeout_ms || (state->timeout_ms && rule->timeout_ms > state->timeout_ms)) {
		state->timeout_ms = rule->timeout_ms;
	}
}

static int add_shape(struct store *store, const struct rule *query, const struct rule_shape *shape,
		     struct keys_state *state)
{
	struct rule rules[RULE_KEYS_MAX];
	const size_t count = rule_generalise(query, shape, rules);
	int error = 0;

	for (size_t i = 0; i < count && !error; i++) {
		error = store_get(store, &rules[i]);
		if (!error)
			add_rule(state, &rules[i]);
		error = error == -ENOENT ? 0 : error;
	}
	return error;
}

int keys_state(struct store *store, const struct shape_list *list, const struct rule_key *key, struct keys_state *state)
{
	const struct rule query = rule_of_key(key);
	int error = 0;

	state->rules = 0;
	state->timeout_ms = 0;
	for (size_t i = 0; i < list->count && !error; i++)
		if (!memcmp(&list->entry[i].probed_as, &key->shape, sizeof(key->shape)))
			error = add_shape(store, &query, &list->entry[i].shape, state);
	if (error)
		return error;
	return state->rules ? 0 : -ENOENT;
}

bool keys_same_rule(const struct rule *a, const struct rule *b)
{
	__u8 bytes[2][RULE_ENCODED_BYTES];
	const size_t length = rule_encode(a, bytes[0]);

	return rule_encode(b, bytes[1]) == length && !memcmp(bytes[0], bytes[1], length);
}
