// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "filter/rule_entries.h"

#include <errno.h>
#include <string.h>

int keys_each(const struct shape_list *list, const struct rule *rule,
	      int (*visit)(const struct rule_key *key, bool is_shared, void *context), void *context)
{
	struct rule_key keys[RULE_KEYS_MAX];
	const size_t count = rule_keys(rule, keys);
	int result = 0;

	for (size_t i = 0; i < count && !result; i++) {
		const struct shape_list_entry *entry = shape_list_find(list, &keys[i].shape);
		const unsigned int bits = entry ? rule_expansion_bits(&entry->shape, &entry->probed_as) : 64;

		if (bits >= 64)
			return -EBADMSG;
		for (__u64 n = 0; n < 1ULL << bits && !result; n++) {
			const struct rule_key expanded = rule_expand(&keys[i], &entry->probed_as, n);

			result = visit(&expanded, entry->is_shared, context);
		}
	}
	return result;
}

/* Adds the rules of one shape that have the key `query`. */
static int add_shape(struct store *store, const struct rule *query, const struct rule_shape *shape,
		     struct keys_state *state)
{
	struct rule rules[RULE_KEYS_MAX];
	const size_t count = rule_generalise(query, shape, rules);
	int error;

	for (size_t i = 0; i < count; i++) {
		error = store_get(store, &rules[i]);
		if (error == -ENOENT)
			continue;
		if (error)
			return error;
		if (!state->rules++) {
			state->owner = rules[i];
			state->timeout_ms = rules[i].timeout_ms;
		} else if (!rules[i].timeout_ms || (state->timeout_ms && rules[i].timeout_ms > state->timeout_ms)) {
			state->timeout_ms = rules[i].timeout_ms;
		}
	}
	return 0;
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
