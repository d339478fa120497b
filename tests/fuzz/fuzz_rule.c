// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzzes the rule parser: input is a text. A rule that it makes has one text, the same bytes, and keys that
 * are rules again; a refusal says why in one line.
 */
#include "fuzz.h"

/* A key's rule is that of its family, without timeout and comment. */
static void check_keys(const struct rule *rule)
{
	struct rule_key keys[RULE_KEYS_MAX];
	const size_t count = rule_keys(rule, keys);

	fuzz_check(count == (rule->family == FLOW_NO_FAMILY ? 2 : 1), "%zu keys", count);
	for (size_t i = 0; i < count; i++) {
		struct rule back = rule_of_key(&keys[i]), expected = *rule, general[RULE_KEYS_MAX];
		struct abi_shape compiled;
		struct rule_shape shape;
		size_t generals;

		expected.family = keys[i].shape.family;
		fuzz_check(fuzz_same_flows(&back, &expected), "key %zu is another rule", i);
		rule_shape_compile(&keys[i].shape, &compiled);
		shape = rule_shape_of_compiled(&compiled, keys[i].shape.family);
		fuzz_check(!memcmp(&shape, &keys[i].shape, sizeof(shape)), "tag %llx",
			   (unsigned long long)compiled.id);
		/* A flow that names as much is matched by the rule itself. */
		generals = rule_under_shape(&expected, &shape, general);
		fuzz_check(generals > 0 && fuzz_same_flows(&general[0], &expected), "%zu", generals);
	}
}

static void check_time(const char *text)
{
	char again_text[RULE_TIME_BYTES];
	__s64 ms, again;

	if (rule_time_parse(text, &ms))
		return;
	fuzz_check(ms > 0 && ms <= RULE_TIMEOUT_MAX_S * 1000LL && ms % 1000 == 0, "%lld", (long long)ms);
	rule_time_format(ms, again_text);
	fuzz_check(!rule_time_parse(again_text, &again) && again == ms, "%s", again_text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), canonical[RULE_TEXT_BYTES];
	struct reason reason = { "" };
	struct rule rule, again;

	memcpy(text, data, size);
	text[size] = '\0';
	check_time(text);
	if (rule_parse(text, &rule, &reason)) {
		fuzz_check_reason(reason.text);
	} else {
		fuzz_check_rule(&rule);
		check_keys(&rule);
		rule_parse(rule_format(&rule, canonical), &again, &reason);
		fuzz_check(!memcmp(&rule, &again, sizeof(rule)), "not the same: %s", canonical);
	}
	free(text);
	return 0;
}
