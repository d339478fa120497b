// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A set returns its rules in the order of the store. Of equal rules it keeps the last. */
#include "unit/list_fixture.h"

#define RULES 20000

static int compare_encoded(const struct rule *a, const struct rule *b)
{
	__u8 left[RULE_ENCODED_BYTES], right[RULE_ENCODED_BYTES];
	const size_t left_length = rule_encode(a, left), right_length = rule_encode(b, right);
	int order = memcmp(left, right, left_length < right_length ? left_length : right_length);

	return order ? order : (left_length > right_length) - (left_length < right_length);
}

static struct rule rule_of(const char *text)
{
	struct reason reason;
	struct rule rule;

	if (rule_parse(text, &rule, &reason))
		fail_msg("%s", reason.text);
	return rule;
}

TEST(test_what_goes_in_comes_out)
{
	struct rule *rules = calloc(RULES, sizeof(*rules)), rule;
	uint64_t seed = seed_of_run();
	struct rule_set set = {};

	for (size_t i = 0; i < RULES; i++) {
		rules[i] = random_rule(&seed);
		assert_int_equal(rule_set_add(&set, &rules[i]), 0);
	}
	assert_int_equal(set.count, RULES);
	for (size_t i = 0; i < RULES; i++) {
		rule_set_get(&set, i, &rule);
		assert_memory_equal(&rule, &rules[i], offsetof(struct rule, comment));
		assert_string_equal(rule.comment, rules[i].comment);
		assert_int_equal(rule_set_compare(&set, i, &rules[i]), 0);
		assert_true((rule_set_compare(&set, i, &rules[0]) < 0) == (compare_encoded(&rules[i], &rules[0]) < 0));
	}
	rule_set_close(&set);
	free(rules);
}

/* Each added rule is in the set once, and the set is sorted. */
static void check_sorted(const struct rule_set *set, const struct rule *rules, size_t count)
{
	struct rule rule, previous;
	bool *is_found = calloc(set->count + 1, sizeof(bool));
	size_t found = 0;

	for (size_t i = 0; i < set->count; i++) {
		rule_set_get(set, i, &rule);
		if (i)
			assert_true(compare_encoded(&previous, &rule) < 0);
		previous = rule;
	}
	for (size_t i = 0; i < count; i++) {
		size_t low = 0, high = set->count;

		while (low < high) {
			const size_t middle = (low + high) / 2;

			if (rule_set_compare(set, middle, &rules[i]) < 0)
				low = middle + 1;
			else
				high = middle;
		}
		assert_true(low < set->count && !rule_set_compare(set, low, &rules[i]));
		found += !is_found[low];
		is_found[low] = true;
	}
	assert_int_equal(found, set->count);
	free(is_found);
}

TEST(test_sorting)
{
	struct rule *rules = calloc(RULES, sizeof(*rules));
	uint64_t seed = seed_of_run();

	/* Few rules, many rules, and many that differ only in the tail. */
	for (int round = 0; round < 12; round++) {
		const size_t count = round % 4 == 3 ? RULES : 1 + random_below(&seed, 600);
		struct rule_set set = {};

		for (size_t i = 0; i < count; i++) {
			rules[i] = random_rule(&seed);
			if (round >= 4)
				rules[i].src = rules[i].dst = (union flow_addr){};
			if (round >= 8)
				rules[i].src_len = rules[i].dst_len = rules[i].fields = 0;
			rule_set_add(&set, &rules[i]);
		}
		rule_set_sort(&set);
		check_sorted(&set, rules, count);
		rule_set_close(&set);
	}
	free(rules);
}

TEST(test_the_last_of_equals_stays)
{
	static const char *const texts[] = { "192.0.2.9", "192.0.2.1 timeout 1h comment old", "192.0.2.1 action pass",
					     "192.0.2.1 timeout 2h", "192.0.2.1 comment new" };
	struct rule_set set = {};
	char text[RULE_TEXT_BYTES];
	struct rule rule;

	for (size_t i = 0; i < COUNT(texts); i++) {
		rule = rule_of(texts[i]);
		rule_set_add(&set, &rule);
	}
	rule_set_sort(&set);
	assert_int_equal(set.count, 3);
	rule_set_get(&set, 0, &rule);
	assert_string_equal(rule_format(&rule, text), "src 192.0.2.1 comment \"new\"");
	rule_set_get(&set, 1, &rule);
	assert_string_equal(rule_format(&rule, text), "src 192.0.2.1 action pass");
	rule_set_get(&set, 2, &rule);
	assert_string_equal(rule_format(&rule, text), "src 192.0.2.9");
	rule_set_close(&set);
}

/* All other rules are in order. */
TEST(test_equals_in_a_row)
{
	static const char *const texts[] = { "192.0.2.1", "192.0.2.1 timeout 1h", "192.0.2.2", "192.0.2.2" };
	struct rule_set set = {};
	struct rule rule;

	for (size_t i = 0; i < COUNT(texts); i++) {
		rule = rule_of(texts[i]);
		rule_set_add(&set, &rule);
	}
	rule_set_sort(&set);
	assert_int_equal(set.count, 2);
	rule_set_get(&set, 0, &rule);
	assert_int_equal(rule.timeout_ms, 3600000);
	rule_set_close(&set);
}

TEST(test_memory_is_as_promised)
{
	struct rule_set set = {};
	struct rule rule = rule_of("192.0.2.1");

	for (__u32 i = 0; i < 1000; i++) {
		rule.src.v4 = htonl(i << 12);
		rule_set_add(&set, &rule);
	}
	assert_int_equal(set.bytes_used + set.count * sizeof(*set.entries), 16 * 1000);
	assert_false(set.is_unsorted);
	rule_set_close(&set);
	rule = rule_of("proto tcp src 2001:db8::1 sport 1 dst 2001:db8::2 dport 2 action pass");
	rule_set_add(&set, &rule);
	assert_true(set.bytes_used + sizeof(*set.entries) <= 52);
	rule_set_close(&set);
}

TEST_MAIN(NULL, NULL)
