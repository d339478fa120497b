// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A list is made equal to a set, as a whole or by entries, with no needless change, and others keep what they want. */
#include "unit/lists_fixture.h"
#include "change/change.h"

#define RULES 60
#define ROUNDS 60

static struct rule random_rule_of_few(unsigned int number)
{
	struct rule rule = rule_of(number % 4 ? "10.0.0.0" : "10.0.0.0 rate 1/s");

	rule.src.byte[3] = number;
	rule.timeout_ms = below(4) ? 0 : (1 + below(3)) * CLOCK_HOUR;
	strcpy(rule.comment, below(4) ? "" : "x");
	rule.rate = rule.rate ? 1 + below(3) : 0;
	return rule;
}

static void assert_equal_text(const struct rule *expected, const struct rule *seen)
{
	char expected_text[RULE_TEXT_BYTES], seen_text[RULE_TEXT_BYTES];

	assert_string_equal(rule_format(seen, seen_text), rule_format(expected, expected_text));
}

/* Rules of three owners, of which some have ended. Returns the number of the list. */
static unsigned int draw_present(struct fixture *f)
{
	unsigned int owners[] = { STORE_BY_HAND, 0, 0 };

	begin(f);
	owners[1] = open_list(f, "other");
	owners[2] = open_list(f, "list");
	for (int i = 0; i < 2 * RULES; i++) {
		const struct rule rule = random_rule_of_few(below(RULES));

		assert_true(put_rule_for(f->store, &rule, owners[below(3)]) >= 0);
	}
	end(f);
	clock_advance(CLOCK_HOUR + below(2));
	return owners[2];
}

static bool is_as_wanted(const struct rule *present, const struct rule *wanted, __u64 list)
{
	const struct rule_owners *owners = &present->owners;
	const bool is_own = !(rule_owners_now(present) & ~list);

	if (present->timeout_ms < 0 || wanted->rate < present->rate ||
	    (is_own && (strcmp(present->comment, wanted->comment) || wanted->rate != present->rate)))
		return false;
	return wanted->timeout_ms ? owners->timed & list && owners->timed_ms == wanted->timeout_ms :
				    owners->permanent & list;
}

/* What is drawn of a rule, and what shall become of it. */
struct fate {
	struct rule present, wanted;
	bool is_there, is_wanted;
};

static void check(struct fixture *f, const struct fate *fate, bool is_alone, __u64 list)
{
	struct rule now = fate->wanted;
	const int error = store_get(f->store, &now);
	const __u64 others = fate->is_there && !is_alone ? rule_owners_now(&fate->present) & ~list : 0;

	assert_int_equal(!error && now.timeout_ms >= 0, fate->is_wanted || others);
	if (error)
		return;
	assert_int_equal(rule_owners_now(&now), others | (fate->is_wanted ? list : 0));
	if (fate->is_wanted && others)
		assert_int_equal((now.owners.permanent & list) != 0, !fate->wanted.timeout_ms);
	else if (fate->is_wanted)
		assert_equal_text(&fate->wanted, &now);
}

static void make_equal(struct fixture *f, unsigned int list, bool is_alone, bool is_entries)
{
	struct session session = { .name = SESSION_NAME_DEFAULT, .store = f->store, .owner = list };
	struct rule_set wanted = {};
	struct change_equal equal = { .wanted = &wanted, .is_alone = is_alone, .is_entries = is_entries };
	struct rule_diff expected = {}, *diff = &equal.diff;
	struct fate fates[RULES];

	assert_int_equal(change_begin(&session, &f->reason), 0);
	for (int i = 0; i < RULES; i++) {
		struct fate *fate = &fates[i];
		struct rule entry = fate->wanted = fate->present = random_rule_of_few(i);
		const bool is_there = fate->is_there = !store_get(f->store, &fate->present);
		const __u64 all = fate->present.owners.permanent | fate->present.owners.timed;
		const bool is_now = is_there && fate->present.timeout_ms >= 0;
		const bool is_shared = is_there && !is_alone && rule_owners_now(&fate->present) & ~(1ULL << list);
		const bool had = is_there && (is_alone || all & 1ULL << list);
		const bool is_same = is_there && (!is_alone || !(all & ~(1ULL << list))) &&
				     is_as_wanted(&fate->present, &fate->wanted, 1ULL << list);

		fate->is_wanted = below(2);
		expected.added += fate->is_wanted && !is_now;
		expected.kept += fate->is_wanted && is_same;
		expected.updated += fate->is_wanted && is_now && !is_same;
		expected.removed += !fate->is_wanted && had && is_now && !is_shared;
		expected.left += !fate->is_wanted && had && is_shared;
		entry.timeout_ms = fate->is_wanted ? entry.timeout_ms : -1;
		if (fate->is_wanted || is_entries)
			assert_int_equal(rule_set_add(&wanted, &entry), 0);
	}
	assert_int_equal(change_make_equal(&session, &equal, &f->reason), 0);
	assert_int_equal(change_end(&session, 0, &f->reason), 0);
	assert_int_equal(diff->added, expected.added);
	assert_int_equal(diff->updated, expected.updated);
	assert_int_equal(diff->kept, expected.kept);
	assert_int_equal(diff->removed, expected.removed);
	assert_int_equal(diff->left, expected.left);
	assert_int_equal(wanted.count, diff->added + diff->updated);
	for (int i = 0; i < RULES; i++)
		check(f, &fates[i], is_alone, 1ULL << list);
	change_equal_close(&equal);
	rule_set_close(&wanted);
}

TIME_TEST(test_random_sets)
{
	for (int round = 0; round < ROUNDS; round++) {
		const unsigned int list = draw_present(f);

		make_equal(f, list, round % 3 == 0, round % 3 == 1);
		begin(f);
		assert_int_equal(store_clear(f->store), 0);
		end(f);
	}
}

TEST_MAIN(seed, NULL)
