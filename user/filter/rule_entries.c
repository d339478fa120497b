// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The keys of a rule, and the rules of a key. */
#include <errno.h>
#include <string.h>

#include "filter/filter.h"

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

void keys_state_add(struct key_rules *state, const struct rule *rule)
{
	if (!state->rules)
		state->owner = *rule;
	if (!state->rules || !rule->timeout_ms || (state->timeout_ms && rule->timeout_ms > state->timeout_ms))
		state->timeout_ms = rule->timeout_ms;
	state->rules++;
}

int key_rules(struct store *store, const struct shape_list *list, const struct rule_key *key, struct key_rules *state)
{
	const struct rule query = rule_of_key(key);
	struct rule rules[RULE_KEYS_MAX];

	state->rules = 0;
	state->timeout_ms = 0;
	for (size_t i = 0; i < list->count; i++) {
		size_t count;

		if (memcmp(&list->entry[i].probed_as, &key->shape, sizeof(key->shape)))
			continue;
		count = rule_under_shape(&query, &list->entry[i].shape, rules);
		for (struct rule *rule = rules; rule < rules + count; rule++) {
			int error = store_get(store, rule);

			if (error == -ENOENT)
				continue;
			if (error)
				return error;
			keys_state_add(state, rule);
		}
	}
	return 0;
}

bool keys_same_rule(const struct rule *a, const struct rule *b)
{
	__u8 bytes[2][RULE_ENCODED_BYTES];
	const size_t length = rule_encode(a, bytes[0]);

	return rule_encode(b, bytes[1]) == length && !memcmp(bytes[0], bytes[1], length);
}
