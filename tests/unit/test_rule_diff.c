// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is done for a difference makes equal, and nothing more is done. */
#include "list_fixture.h"
#include "rule_diff.h"

#define RULES 400
#define ROUNDS 200

static void assert_equal_text(const char *what, const struct rule *expected, const struct rule *seen)
{
	char expected_text[RULE_TEXT_BYTES], seen_text[RULE_TEXT_BYTES];

	rule_format(expected, expected_text);
	rule_format(seen, seen_text);
	if (strcmp(expected_text, seen_text))
		fail_msg("%s: expected %s, seen %s", what, expected_text, seen_text);
}

static bool find(const struct rule_set *set, const struct rule *like, struct rule *found)
{
	for (size_t i = 0; i < set->count; i++) {
		if (!rule_set_compare(set, i, like)) {
			rule_set_get(set, i, found);
			return true;
		}
	}
	return false;
}

/*
 * Few different rules, so that many are in both; with timeouts and comments that differ now and
 * then.
 */
static struct rule_set random_rules(uint64_t *seed, bool may_have_ended)
{
	struct rule_set set = {};
	const size_t count = random_below(seed, RULES);

	for (size_t i = 0; i < count; i++) {
		uint64_t same = random_below(seed, RULES);
		struct rule rule = random_rule(&same);

		rule.timeout_ms = random_below(seed, 4) ? 0 : 1000 * (1 + random_below(seed, 3));
		if (may_have_ended && !random_below(seed, 5))
			rule.timeout_ms = -1000;
		strcpy(rule.comment, random_below(seed, 4) ? "" : "x");
		rule_set_add(&set, &rule);
	}
	rule_set_sort(&set);
	return set;
}

/* Rule by rule, what the difference should say of it. */
struct expected {
	__u64 added, updated, kept, removed;
};

static struct expected count(const struct rule_set *present, const struct rule_set *wanted)
{
	struct expected expected = {};
	struct rule rule, other;

	for (size_t i = 0; i < wanted->count; i++) {
		rule_set_get(wanted, i, &rule);
		if (!find(present, &rule, &other) || other.timeout_ms < 0)
			expected.added++;
		else if (other.timeout_ms == rule.timeout_ms && !strcmp(other.comment, rule.comment))
			expected.kept++;
		else
			expected.updated++;
	}
	for (size_t i = 0; i < present->count; i++) {
		rule_set_get(present, i, &rule);
		expected.removed += rule.timeout_ms >= 0 && !find(wanted, &rule, &other);
	}
	return expected;
}

/*
 * As a store does it: deletes first, then adds; one that is there keeps its comment, and its
 * timeout where it has none. Nothing is deleted that is not there. Rules that have ended and are
 * not wanted stay.
 */
static void check_applied(const struct rule_diff *diff, const struct rule_set *present,
			  const struct rule_set *wanted)
{
	struct rule rule, other;

	for (size_t i = 0; i < diff->obsolete.count; i++) {
		rule_set_get(&diff->obsolete, i, &rule);
		assert_true(find(present, &rule, &other));
	}
	for (size_t i = 0; i < wanted->count; i++) {
		struct rule stored;
		bool is_there;

		rule_set_get(wanted, i, &rule);
		is_there = find(present, &rule, &stored) && !find(&diff->obsolete, &rule, &other);
		if (find(diff->wanted, &rule, &other)) {
			if (!is_there)
				stored = other;
			else if (stored.timeout_ms)
				stored.timeout_ms = other.timeout_ms;
		} else {
			assert_true(is_there);
		}
		assert_equal_text("stored in the end", &rule, &stored);
	}
	for (size_t i = 0; i < present->count; i++) {
		rule_set_get(present, i, &rule);
		if (!find(wanted, &rule, &other))
			assert_true(find(&diff->obsolete, &rule, &other));
	}
}

static void test_random_differences(void **state)
{
	uint64_t seed = seed_of_run();

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct rule_set present = random_rules(&seed, true), wanted = random_rules(&seed, false);
		struct rule_set wanted_before = {};
		struct expected expected = count(&present, &wanted);
		struct rule_diff diff;
		struct rule rule;

		for (size_t i = 0; i < wanted.count; i++) {
			rule_set_get(&wanted, i, &rule);
			rule_set_add(&wanted_before, &rule);
		}
		rule_diff_begin(&diff, &wanted);
		for (size_t i = 0; i < present.count; i++) {
			rule_set_get(&present, i, &rule);
			assert_int_equal(rule_diff_visit(&rule, &diff), 0);
		}
		rule_diff_end(&diff);
		assert_int_equal(diff.added, expected.added);
		assert_int_equal(diff.updated, expected.updated);
		assert_int_equal(diff.kept, expected.kept);
		assert_int_equal(diff.removed, expected.removed);
		assert_int_equal(diff.wanted->count, expected.added + expected.updated);
		check_applied(&diff, &present, &wanted_before);
		rule_diff_close(&diff);
		rule_set_close(&present);
		rule_set_close(&wanted);
		rule_set_close(&wanted_before);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_differences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
