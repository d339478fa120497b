// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Applying a difference makes both sets equal, with no needless change. */
#include "unit/list_fixture.h"
#include "change/change.h"

#define RULES 400
#define ROUNDS 200

#define BY_HAND 1ULL
#define LIST 2ULL /* whose rules change */
#define OTHER 4ULL

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

/* Draws from few rules, so that many are in both sets. Timeouts and comments differ sometimes. */
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
		if (rule.rate)
			rule.rate = 1 + random_below(seed, 3);
		rule_set_add(&set, &rule);
	}
	rule_set_sort(&set);
	return set;
}

/* Computes the expected difference rule by rule. */
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
		else if (rule_same_value(&other, &rule))
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
 * Applies a difference as a store does: deletes first, then adds. An existing rule keeps its comment, and
 * stays permanent if it was. Every deleted rule must exist. Ended rules that are not wanted stay.
 */
static void check_applied(const struct rule_diff *diff, const struct rule_set *present, const struct rule_set *wanted)
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
			stored.rate = other.rate;
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

static struct rule_owners by_hand(const struct rule *rule)
{
	return rule->timeout_ms ? (struct rule_owners){ 0, BY_HAND, rule->timeout_ms } :
				  (struct rule_owners){ BY_HAND, 0, 0 };
}

TEST(test_random_differences)
{
	uint64_t seed = seed_of_run();

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
		rule_diff_begin(&diff, &wanted, BY_HAND, true);
		for (size_t i = 0; i < present.count; i++) {
			rule_set_get(&present, i, &rule);
			rule.owners = by_hand(&rule);
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

/* ---- several owners ---- */

/*
 * Each of three owners has a rule not at all, permanently, or with a timeout. The timeout is the same for
 * all.
 */
static struct rule_owners random_owners(uint64_t *seed)
{
	struct rule_owners owners = {};

	while (!(owners.permanent | owners.timed)) {
		owners.permanent = random_below(seed, 2 * OTHER);
		owners.timed = random_below(seed, 2 * OTHER) & ~owners.permanent;
	}
	owners.timed_ms = owners.timed ? 1000 * (__s64)(random_below(seed, 4) - 1) : 0;
	if (owners.timed && !owners.timed_ms)
		owners.timed_ms = -1;
	return owners;
}

/* Stored rules with their owners; a rule_set does not keep owners. */
struct present {
	size_t count;
	struct rule rules[RULES];
};

static void draw_present(uint64_t *seed, struct present *present)
{
	struct rule_set set = random_rules(seed, false);

	present->count = set.count;
	for (size_t i = 0; i < set.count; i++) {
		struct rule *rule = &present->rules[i];

		rule_set_get(&set, i, rule);
		rule->owners = random_owners(seed);
		rule->timeout_ms = rule->owners.permanent ? 0 : rule->owners.timed_ms;
	}
	rule_set_close(&set);
}

static bool is_as_wanted(const struct rule *present, const struct rule *wanted)
{
	const struct rule_owners *owners = &present->owners;
	const bool is_own = !(rule_owners_now(present) & ~LIST); /* others whose time is over count for nothing */

	if (present->timeout_ms < 0 || wanted->rate < present->rate ||
	    (is_own && (strcmp(present->comment, wanted->comment) || wanted->rate != present->rate)))
		return false;
	return wanted->timeout_ms ? owners->timed & LIST && owners->timed_ms == wanted->timeout_ms :
				    owners->permanent & LIST;
}

/* The list must give up a rule that it no longer has, or wants in another way. */
static void check_present(const struct rule_diff *diff, const struct rule *present, const struct rule_set *wanted)
{
	const __u64 all = present->owners.permanent | present->owners.timed;
	struct rule rule, other;

	if (!find(wanted, present, &rule)) {
		assert_int_equal(find(&diff->obsolete, present, &other), (all & LIST) != 0);
		return;
	}
	assert_int_equal(find(diff->wanted, present, &other), !is_as_wanted(present, &rule));
	if (is_as_wanted(present, &rule) || !(all & LIST))
		assert_false(find(&diff->obsolete, present, &other));
	/* Else the rule would stay permanent. */
	else if (present->owners.permanent & LIST)
		assert_true(find(&diff->obsolete, present, &other));
}

static void check_counts(const struct rule_diff *diff, const struct present *present, const struct rule_set *wanted)
{
	__u64 removed = 0, left = 0, kept = 0;
	struct rule rule;

	for (size_t i = 0; i < present->count; i++) {
		const struct rule *there = &present->rules[i];
		const __u64 others = rule_owners_now(there) & ~LIST;
		const bool is_given_up = (there->owners.permanent | there->owners.timed) & LIST &&
					 there->timeout_ms >= 0;

		if (find(wanted, there, &rule)) {
			kept += is_as_wanted(there, &rule);
			continue;
		}
		removed += is_given_up && !others;
		left += is_given_up && others;
	}
	assert_int_equal(diff->removed, removed);
	assert_int_equal(diff->left, left);
	assert_int_equal(diff->kept, kept);
	assert_int_equal(diff->added + diff->updated + diff->kept, wanted->count);
	assert_int_equal(diff->wanted->count, diff->added + diff->updated);
}

TEST(test_random_differences_of_a_list)
{
	struct present *present = calloc(1, sizeof(*present));
	uint64_t seed = seed_of_run();

	for (int round = 0; round < ROUNDS; round++) {
		struct rule_set wanted = random_rules(&seed, false), before = {};
		struct rule_diff diff;
		struct rule rule;

		draw_present(&seed, present);
		for (size_t i = 0; i < wanted.count; i++) {
			rule_set_get(&wanted, i, &rule);
			rule_set_add(&before, &rule);
		}
		rule_diff_begin(&diff, &wanted, LIST, false);
		for (size_t i = 0; i < present->count; i++)
			assert_int_equal(rule_diff_visit(&present->rules[i], &diff), 0);
		rule_diff_end(&diff);
		for (size_t i = 0; i < present->count; i++)
			check_present(&diff, &present->rules[i], &before);
		check_counts(&diff, present, &before);
		rule_diff_close(&diff);
		rule_set_close(&wanted);
		rule_set_close(&before);
	}
	free(present);
}

TEST_MAIN(NULL, NULL)
