// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A pending change: what the store keeps of the rules that it touches, and for how long. */
#include "unit/lists_fixture.h"

#define RUNS 60
#define RULES 200 /* numbers that rules are drawn from */

static struct store_pending pending_of(struct fixture *f)
{
	struct store_pending pending;

	assert_int_equal(store_pending(f->store, &pending), 0);
	return pending;
}

static void nothing_pends(struct fixture *f)
{
	const struct store_pending pending = pending_of(f);

	assert_int_equal(pending.id, 0);
	assert_int_equal(pending.left_ms, 0);
	assert_int_equal(pending.rules, 0);
}

static int nothing_to_undo(const struct rule *rule, bool is_back, void *context)
{
	(void)rule, (void)is_back, (void)context;
	fail_msg("nothing is to be undone");
	return 0;
}

/* ---- what waits ---- */

TIME_TEST(test_one_pending_change_at_a_time)
{
	__u64 first, generation;

	nothing_pends(f);
	begin_pending(f, CLOCK_HOUR);
	first = pending_of(f).id;
	assert_int_not_equal(first, 0);
	assert_int_equal(store_set_pending(f->store, CLOCK_HOUR), -EBUSY);
	end(f);
	generation = info_of(f).generation;
	assert_int_equal(generation, 1);

	reopen(f, STORE_WRITE);
	begin(f);
	assert_int_equal(store_set_pending(f->store, CLOCK_DAY), -EBUSY);
	end(f);
	assert_int_equal(pending_of(f).id, first);
	assert_int_equal(pending_of(f).left_ms, CLOCK_HOUR);

	begin(f);
	assert_int_equal(store_forget_pending(f->store), 0);
	nothing_pends(f);
	assert_int_equal(store_forget_pending(f->store), -ENOENT);
	end(f);
	nothing_pends(f);
	assert_int_equal(info_of(f).generation, generation + 1);

	begin_pending(f, CLOCK_HOUR);
	end(f);
	assert_int_not_equal(pending_of(f).id, 0);
	assert_int_not_equal(pending_of(f).id, first);
}

TIME_TEST(test_abort_forgets_the_pending_change)
{
	add(f, "192.0.2.1");
	begin_pending(f, CLOCK_HOUR);
	assert_int_equal(del(f, "192.0.2.1"), 0);
	assert_int_equal(pending_of(f).rules, 1);
	store_abort(f->store);
	nothing_pends(f);

	/* Later changes are not part of the pending one. */
	add(f, "192.0.2.2");
	begin(f);
	assert_int_equal(store_undo_each(f->store, nothing_to_undo, NULL), 0);
	assert_int_equal(store_forget_pending(f->store), -ENOENT);
	end(f);
	holds(f, 2, 2, 2);
	begin_pending(f, CLOCK_HOUR);
	end(f);
	assert_int_equal(pending_of(f).rules, 0);
}

/* After an aborted undo the whole change is still pending. */
TIME_TEST(test_an_aborted_undo_keeps_the_pending_change)
{
	begin_pending(f, CLOCK_HOUR);
	assert_int_equal(put(f, "192.0.2.1"), 0);
	end(f);
	begin(f);
	assert_int_equal(del(f, "192.0.2.1"), 0);
	assert_int_equal(store_forget_pending(f->store), 0);
	store_abort(f->store);
	assert_int_equal(pending_of(f).rules, 1);
	assert_true(has(f, "192.0.2.1"));
}

static void is_left(struct fixture *f, __s64 left_ms)
{
	for (enum store_mode mode = STORE_READ; mode <= STORE_WRITE; mode++) {
		reopen(f, mode);
		assert_int_equal(pending_of(f).left_ms, left_ms);
	}
}

TIME_TEST(test_time_left)
{
	begin_pending(f, CLOCK_DAY);
	clock_advance(CLOCK_SECOND);
	assert_int_equal(pending_of(f).left_ms, CLOCK_DAY - CLOCK_SECOND);
	end(f);
	assert_int_equal(pending_of(f).left_ms, CLOCK_DAY - CLOCK_SECOND);
	clock_step(400 * CLOCK_DAY);
	is_left(f, CLOCK_DAY - CLOCK_SECOND);
	clock_step(-400 * CLOCK_DAY);
	clock_reboot(CLOCK_HOUR);
	is_left(f, CLOCK_DAY - CLOCK_SECOND - CLOCK_HOUR);
	clock_advance(2 * CLOCK_DAY);
	is_left(f, -CLOCK_DAY - CLOCK_SECOND - CLOCK_HOUR);
}

/* The new time counts from the call on, not from the last commit. */
TIME_TEST(test_the_deadline_can_be_pushed_out)
{
	begin(f);
	assert_int_equal(store_extend_deadline(f->store, CLOCK_HOUR), -ENOENT);
	assert_int_equal(store_set_pending(f->store, CLOCK_HOUR), 0);
	clock_advance(CLOCK_SECOND);
	assert_int_equal(store_extend_deadline(f->store, CLOCK_HOUR), 0);
	end(f);
	assert_int_equal(pending_of(f).left_ms, CLOCK_HOUR);
	assert_int_equal(info_of(f).generation, 1);

	clock_advance(CLOCK_SECOND);
	begin(f);
	assert_int_equal(store_extend_deadline(f->store, CLOCK_DAY), 0);
	end(f);
	is_left(f, CLOCK_DAY);
	assert_int_equal(info_of(f).generation, 1);
}

/* ---- what is kept ---- */

struct expected {
	const char *text; /* with the comment it had */
	bool existed;
	__s64 timeout_ms;
};

struct visits {
	const struct expected *expected;
	size_t count;
	unsigned long long deleted, put_back; /* a bit for each */
};

/* All rules are deleted before the first one is put back. */
static void see(struct visits *visits, size_t i, bool is_back)
{
	unsigned long long *seen = is_back ? &visits->put_back : &visits->deleted;

	assert_false(*seen & 1ULL << i);
	assert_true(!is_back || visits->expected[i].existed);
	assert_true(!is_back || visits->deleted == (1ULL << visits->count) - 1);
	*seen |= 1ULL << i;
}

static unsigned long long that_existed(const struct expected *expected, size_t count)
{
	unsigned long long bits = 0;

	for (size_t i = 0; i < count; i++)
		bits |= (unsigned long long)expected[i].existed << i;
	return bits;
}

static int expects(const struct rule *rule, bool is_back, void *context)
{
	struct visits *visits = context;
	char text[2][RULE_TEXT_BYTES];

	for (size_t i = 0; i < visits->count; i++) {
		struct rule other = rule_of(visits->expected[i].text);

		other.timeout_ms = visits->expected[i].timeout_ms;
		if (strcmp(rule_format(rule, text[0]), rule_format(&other, text[1])))
			continue;
		assert_int_equal(rule->timeout_ms, other.timeout_ms);
		see(visits, i, is_back);
		return 0;
	}
	fail_msg("not as it was before: %s", text[0]);
	return 0;
}

static void was_before(struct fixture *f, const struct expected *expected, size_t count)
{
	struct visits visits = { expected, count, 0, 0 };

	assert_int_equal(pending_of(f).rules, count);
	reopen(f, STORE_WRITE);
	begin(f);
	assert_int_equal(store_undo_each(f->store, expects, &visits), 0);
	assert_int_equal(visits.deleted, (1ULL << count) - 1);
	assert_int_equal(visits.put_back, that_existed(expected, count));
	store_abort(f->store);
	assert_int_equal(pending_of(f).rules, count);
}

static size_t rates_with_undo(struct fixture *f)
{
	size_t count;

	begin(f);
	assert_int_equal(store_rates(f->store, 0, &count), 0);
	store_abort(f->store);
	return count;
}

static int count_visits(const struct rule *rule, bool is_back, void *context)
{
	size_t *visits = context;

	(void)rule;
	visits[is_back]++;
	return 0;
}

/* There must be room for the rates that the undo would bring back, each counted once. */
TIME_TEST(test_rates_that_the_undo_would_bring_back)
{
	size_t visits[2] = {};

	add(f, "192.0.2.1 rate 1/s");
	add(f, "192.0.2.2 rate 1/s");
	add(f, "192.0.2.3");
	begin(f);
	assert_int_equal(store_set_pending(f->store, CLOCK_HOUR), 0);
	assert_int_equal(del(f, "192.0.2.1 rate 1/s"), 0);
	assert_int_equal(put(f, "192.0.2.2 rate 2/s"), STORE_NEW_END);
	assert_int_equal(del(f, "192.0.2.3"), 0);
	assert_int_equal(put(f, "192.0.2.4 rate 1/s"), 0);
	end(f);
	assert_int_equal(rates_with_undo(f), 3);
	begin(f);
	assert_int_equal(store_undo_each(f->store, count_visits, visits), 0);
	assert_int_equal(visits[false], 4);
	assert_int_equal(visits[true], 3);
	store_abort(f->store);
	add(f, "192.0.2.5 rate 1/s");
	add(f, "192.0.2.1 rate 1/s");
	assert_int_equal(rates_with_undo(f), 4);
}

/* The whole undo is read once in a transaction: what changes then is added, until there may be too much. */
TIME_TEST(test_the_undo_is_read_once_for_rates)
{
	size_t count;

	add(f, "192.0.2.1 rate 1/s");
	add(f, "192.0.2.2 rate 1/s");
	begin_pending(f, CLOCK_HOUR);
	assert_int_equal(store_clear(f->store), 0);
	end(f);
	begin(f);
	assert_int_equal(store_rates(f->store, 2, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(put(f, "192.0.2.1 rate 1/s"), 0);
	assert_int_equal(store_rates(f->store, SIZE_MAX, &count), 0);
	assert_int_equal(count, 3);
	assert_int_equal(store_rates(f->store, 2, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(del(f, "192.0.2.1 rate 1/s"), 0);
	assert_int_equal(store_rates(f->store, 1, &count), 0);
	assert_int_equal(count, 1);
	end(f);
}

static void is_added_by(struct fixture *f, const char *text, __u32 user)
{
	const struct rule rule = rule_of(text);
	struct store_addition addition;

	assert_int_equal(store_addition(f->store, &rule, &addition), user ? 0 : -ENOENT);
	if (user)
		assert_int_equal(addition.user, user);
}

static void add_by(struct fixture *f, const char *text, __u32 user)
{
	const struct rule rule = rule_of(text);

	put(f, text);
	assert_int_equal(store_addition_put(f->store, &rule, &(struct store_addition){ 1, user, 0 }), 0);
}

/* Rules 1 to 6 are by user 1; user 2 makes the change that waits; user 3 comes later; nobody is noted for an import. */
TIME_TEST(test_who_added_a_rule)
{
	const struct rule sixth = rule_of("192.0.2.6");

	for (int undoes = 0; undoes < 2; undoes++) {
		begin(f);
		assert_int_equal(store_clear(f->store), 0);
		for (char rule[] = "192.0.2.1"; rule[8] <= '6'; rule[8]++)
			add_by(f, rule, 1);
		end(f);
		begin_pending(f, CLOCK_HOUR);
		for (char rule[] = "192.0.2.1"; rule[8] <= '6'; rule[8]++)
			assert_int_equal(del(f, rule), 0);
		add_by(f, "192.0.2.2", 2);
		add_by(f, "192.0.2.9", 2);
		end(f);
		begin(f);
		add_by(f, "192.0.2.3", 3);
		assert_int_equal(del(f, "192.0.2.4"), STORE_NO_SUCH_RULE);
		put(f, "192.0.2.5");
		assert_int_equal(give_up_rule(f->store, &sixth, STORE_BY_HAND), STORE_NO_SUCH_RULE);
		put(f, "192.0.2.6");
		end(f);
		if (undoes) {
			undo(f);
		} else {
			begin(f);
			assert_int_equal(store_forget_pending(f->store), 0);
			end(f);
		}
		begin(f); /* an import, which keeps the rules that are there */
		for (char rule[] = "192.0.2.1"; rule[8] <= '9'; rule[8]++)
			put(f, rule);
		end(f);
		is_added_by(f, "192.0.2.1", undoes ? 1 : 0);
		is_added_by(f, "192.0.2.2", undoes ? 1 : 2);
		is_added_by(f, "192.0.2.3", 3);
		is_added_by(f, "192.0.2.4", 0);
		is_added_by(f, "192.0.2.5", undoes ? 1 : 0);
		is_added_by(f, "192.0.2.6", 0);
		is_added_by(f, "192.0.2.9", undoes ? 0 : 2);
	}
}

/* Settings that are set again while a change waits outlast its undo; others do not. */
TIME_TEST(test_settings_that_are_set_again)
{
	struct store_settings all, again = store_settings_kept;

	memset(&all, VERDICT_DROP, sizeof(all));
	begin_pending(f, CLOCK_HOUR);
	assert_int_equal(store_set_settings(f->store, &all), 0);
	end(f);
	again.policy[OUTCOME_MALFORMED] = VERDICT_DROP;
	again.is_monitor_only = true;
	for (int i = 0; i < 2; i++) {
		begin(f);
		assert_int_equal(store_set_settings(f->store, &again), 0);
		assert_int_equal(store_is_changed(f->store), !i);
		end(f);
	}
	undo(f);
	assert_int_equal(store_settings(f->store, &all), 0);
	for (size_t i = 0; i < OUTCOME_POLICIES; i++)
		assert_int_equal(all.policy[i] == VERDICT_DROP, i == OUTCOME_MALFORMED || i == OUTCOME_TOO_MANY_HEADERS);
	assert_true(all.is_monitor_only);
}

TIME_TEST(test_the_undo_knows_the_rules_before_the_change)
{
	static const struct expected expected[] = {
		{ "192.0.2.1 comment deleted", true, 0 },
		{ "192.0.2.2 comment \"deleted and added\"", true, 0 },
		{ "192.0.2.3 comment retimed", true, CLOCK_HOUR },
		{ "192.0.2.4 comment \"made to stay\"", true, CLOCK_HOUR },
		{ "192.0.2.5", true, CLOCK_HOUR },
		{ "192.0.2.11 rate 1000/s", true, 0 },
		{ "proto udp dport 53", false, 0 },
		{ "2001:db8::/32", false, 0 },
		{ "192.0.2.10", false, 0 },
	};

	begin(f);
	for (size_t i = 0; i < COUNT(expected); i++)
		if (expected[i].existed)
			assert_int_equal(put_for(f, expected[i].text, expected[i].timeout_ms), 0);
	assert_int_equal(put(f, "192.0.2.6 comment untouched"), 0);
	end(f);

	begin(f);
	assert_int_equal(put(f, "192.0.2.7 comment before"), 0);
	assert_int_equal(store_set_pending(f->store, CLOCK_HOUR), 0);
	assert_int_equal(del(f, "192.0.2.1"), 0);
	assert_int_equal(del(f, "192.0.2.2"), 0);
	assert_int_equal(put_for(f, "192.0.2.2 comment other", CLOCK_DAY), 0);
	assert_int_equal(put_for(f, "192.0.2.3 comment other", CLOCK_DAY), STORE_NEW_END);
	assert_int_equal(put_for(f, "192.0.2.3", CLOCK_SECOND), STORE_NEW_END);
	assert_int_equal(put(f, "192.0.2.4"), STORE_NEW_END);
	assert_int_equal(put_for(f, "192.0.2.5 comment other", CLOCK_DAY), STORE_NEW_END);
	assert_int_equal(del(f, "192.0.2.5"), 0);
	assert_int_equal(put(f, "192.0.2.11 rate 8Mbit/s"), STORE_NEW_END);
	assert_int_equal(put(f, "192.0.2.6 comment other"), STORE_UNCHANGED);
	assert_int_equal(del(f, "192.0.2.99"), STORE_NO_SUCH_RULE);
	assert_int_equal(put(f, "192.0.2.10 comment new"), 0);
	assert_int_equal(put(f, "proto udp dport 53"), 0);
	assert_int_equal(del(f, "proto udp dport 53"), 0);
	assert_int_equal(put_for(f, "2001:db8::/32", CLOCK_HOUR), 0);
	assert_int_equal(put_for(f, "2001:db8::/32", CLOCK_DAY), STORE_NEW_END);
	end(f);
	was_before(f, expected, COUNT(expected));

	/* An undo does not take back later changes. */
	add(f, "192.0.2.8");
	begin(f);
	assert_int_equal(del(f, "192.0.2.10"), 0);
	assert_int_equal(del(f, "192.0.2.6"), 0);
	end(f);
	was_before(f, expected, COUNT(expected) - 1);
}

/* What others do to the same rules survives the undo: see also store/test_store_owners.c. */
TIME_TEST(test_rules_changed_while_a_change_is_pending)
{
	static const struct expected expected[] = {
		{ "192.0.2.1 comment \"added later\"", true, 0 },
		{ "192.0.2.2 comment \"added later\"", true, 2 * CLOCK_HOUR },
		{ "192.0.2.3 comment \"timed before\"", true, 2 * CLOCK_HOUR },
		{ "192.0.2.4 comment \"there before\"", true, 0 },
	};

	add_for(f, "192.0.2.3 comment \"timed before\"", CLOCK_HOUR);
	add(f, "192.0.2.4 comment \"there before\"");
	add(f, "192.0.2.5");
	begin_pending(f, CLOCK_HOUR);
	assert_int_equal(put(f, "192.0.2.1"), 0);
	assert_int_equal(put_for(f, "192.0.2.2", CLOCK_SECOND), 0);
	assert_int_equal(del(f, "192.0.2.3"), 0);
	assert_int_equal(del(f, "192.0.2.4"), 0);
	assert_int_equal(del(f, "192.0.2.5"), 0);
	end(f);

	begin(f);
	assert_int_equal(put(f, "192.0.2.1 comment \"added later\""), STORE_UNCHANGED);
	assert_int_equal(put_for(f, "192.0.2.2 comment \"added later\"", 2 * CLOCK_HOUR), STORE_NEW_END);
	assert_int_equal(put_for(f, "192.0.2.3", 2 * CLOCK_HOUR), 0);
	assert_int_equal(put_for(f, "192.0.2.4 comment \"added later\"", CLOCK_HOUR), 0);
	assert_int_equal(del(f, "192.0.2.5"), STORE_NO_SUCH_RULE);
	end(f);
	was_before(f, expected, COUNT(expected));
}

/* The change made a rule end earlier; the undo takes that back, too. */
TIME_TEST(test_a_rule_ended_while_a_change_is_pending)
{
	struct expected expected[] = { { "192.0.2.1", true, CLOCK_HOUR } };

	add_for(f, "192.0.2.1", CLOCK_HOUR);
	begin_pending(f, CLOCK_HOUR);
	assert_int_equal(del(f, "192.0.2.1"), 0);
	assert_int_equal(put_for(f, "192.0.2.1", CLOCK_SECOND), 0);
	end(f);
	clock_advance(2 * CLOCK_SECOND);
	begin(f);
	assert_int_equal(store_each_expired(f->store, del_ended, f->store), 0);
	end(f);
	assert_false(has(f, "192.0.2.1"));
	expected->timeout_ms -= 2 * CLOCK_SECOND;
	was_before(f, expected, COUNT(expected));
}

TIME_TEST(test_a_clear_can_be_undone)
{
	struct expected expected[] = {
		{ "192.0.2.1 comment one", true, 0 },
		{ "192.0.2.2 comment two", true, CLOCK_HOUR },
		{ "proto udp dport 53", true, CLOCK_SECOND },
		{ "192.0.2.9", false, 0 },
	};

	for (size_t i = 0; i < 3; i++)
		add_for(f, expected[i].text, expected[i].timeout_ms);
	clock_advance(2 * CLOCK_SECOND);
	begin_pending(f, CLOCK_HOUR);
	assert_int_equal(put_for(f, "192.0.2.1", CLOCK_HOUR), STORE_UNCHANGED);
	assert_int_equal(put_for(f, "192.0.2.2 comment other", 2 * CLOCK_HOUR), STORE_NEW_END);
	assert_int_equal(put(f, "192.0.2.9"), 0);
	assert_int_equal(store_clear(f->store), 0);
	assert_int_equal(put(f, "192.0.2.1 comment new"), 0);
	end(f);
	holds(f, 4, 1, 1);

	/* A rule that had ended before the change is gone. */
	expected[1].timeout_ms -= 2 * CLOCK_SECOND;
	expected[2].timeout_ms -= 2 * CLOCK_SECOND;
	was_before(f, expected, COUNT(expected));
}

static int stop(const struct rule *rule, bool is_back, void *context)
{
	(void)rule, (void)is_back;
	return *(int *)context;
}

TIME_TEST(test_a_visit_ends_as_the_visitor_says)
{
	static int results[] = { 7, -EIO, -ENOENT };

	begin_pending(f, CLOCK_HOUR);
	assert_int_equal(put(f, "192.0.2.1"), 0);
	end(f);
	begin(f);
	for (size_t i = 0; i < COUNT(results); i++)
		assert_int_equal(store_undo_each(f->store, stop, &results[i]), results[i]);
	store_abort(f->store);
}

/* ---- random changes, undone ---- */

static struct rule random_rule(void)
{
	struct rule rule = rule_of("10.0.0.0");

	/* Three kinds of rules, so that shapes come and go. */
	rule.src.byte[3] = below(RULES);
	if (rule.src.byte[3] % 3 == 1) {
		rule.dst = rule.src;
		rule.dst_len = 32;
	}
	if (rule.src.byte[3] % 3 == 2)
		rule.action = RULE_PASS;
	if (below(2))
		rule.timeout_ms = CLOCK_SECOND * (1 + below(1000));
	snprintf(rule.comment, sizeof(rule.comment), "%0*d", (int)below(200), (int)below(10));
	return rule;
}

static void change_random(struct fixture *f)
{
	struct rule rule;

	for (int i = below(3 * RULES); i > 0; i--) {
		rule = random_rule();
		if (below(3))
			put_rule(f->store, &rule);
		else
			del_rule(f->store, &rule);
		if (!below(10 * RULES))
			assert_int_equal(store_clear(f->store), 0);
	}
}

struct copy {
	size_t count;
	struct rule rule[RULES];
};

static int copy_rule(const struct rule *rule, void *context)
{
	struct copy *copy = context;

	assert_true(copy->count < RULES);
	copy->rule[copy->count++] = *rule;
	return 0;
}

static void copy_all(struct fixture *f, struct copy *copy)
{
	copy->count = 0;
	assert_int_equal(store_each(f->store, copy_rule, copy), 0);
}

static void equal(const struct copy *a, const struct copy *b)
{
	char text[2][RULE_TEXT_BYTES];

	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++) {
		assert_string_equal(rule_format(&a->rule[i], text[0]), rule_format(&b->rule[i], text[1]));
		assert_int_equal(a->rule[i].timeout_ms, b->rule[i].timeout_ms);
	}
}

TIME_TEST(test_an_undo_restores_rules_and_counts)
{
	struct copy *before = calloc(2, sizeof(*before)), *after = before + 1;
	struct store_info info, again;

	for (int run = 0; run < RUNS; run++) {
		begin(f);
		change_random(f);
		end(f);
		copy_all(f, before);
		info = info_of(f);
		begin_pending(f, CLOCK_HOUR);
		change_random(f);
		end(f);

		undo(f);
		nothing_pends(f);
		copy_all(f, after);
		equal(before, after);
		again = info_of(f);
		assert_int_equal(again.rules, info.rules);
		assert_int_equal(again.timed, info.timed);
		assert_int_equal(again.keys, info.keys);
	}
	free(before);
}

TEST_MAIN(seed, NULL)
