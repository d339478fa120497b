// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Lists of a store: which owners a rule has until when, what stays when one gives it up, and the undo of
 * all.
 */
#include "unit/lists_fixture.h"
#include "unit/lmdb_fixture.h"

#define BIT(number) (1ULL << (number))
#define HAND BIT(STORE_BY_HAND)
#define LIST_VALUE_BYTES 24 /* before the source */

static unsigned int number_of(struct fixture *f, const char *name)
{
	const struct store_lists lists = lists_of(f);

	return store_lists_find(&lists, name);
}

static __u64 rules_of(struct fixture *f, const char *name)
{
	return lists_of(f).list[number_of(f, name)].rules;
}

static int put_as(struct fixture *f, const char *text, __s64 timeout_ms, unsigned int owner)
{
	struct rule rule = rule_of(text);

	rule.timeout_ms = timeout_ms;
	return put_rule_for(f->store, &rule, owner);
}

static int give_up(struct fixture *f, const char *text, unsigned int owner)
{
	const struct rule rule = rule_of(text);

	return give_up_rule(f->store, &rule, owner);
}

static void is_of(struct fixture *f, const char *text, __u64 owners, __s64 timeout_ms)
{
	const struct rule rule = get(f, text);

	assert_int_equal(rule_owners_now(&rule), owners);
	assert_int_equal(rule.timeout_ms, timeout_ms);
}

/* ---- the lists ---- */

TIME_TEST(test_lists_are_kept)
{
	struct store_lists lists;
	unsigned int a, b;

	assert_int_equal(number_of(f, "a"), 0);
	begin(f);
	a = open_list(f, "a");
	b = open_list(f, "b");
	assert_int_not_equal(a, b);
	assert_int_equal(open_list(f, "a"), a);
	assert_int_equal(put_as(f, "192.0.2.1", 0, a), 0);
	assert_int_equal(put_as(f, "192.0.2.2", 0, a), 0);
	assert_int_equal(put_as(f, "192.0.2.2", 0, b), STORE_NEW_OWNER);
	end(f);
	for (enum store_mode mode = STORE_READ; mode <= STORE_WRITE; mode++) {
		reopen(f, mode);
		lists = lists_of(f);
		assert_int_equal(store_lists_find(&lists, "a"), a);
		assert_string_equal(lists.list[a].source, "a");
		assert_true(lists.list[a].imported_s > 0);
		assert_int_equal(rules_of(f, "a"), 2);
		assert_int_equal(rules_of(f, "b"), 1);
		assert_string_equal(lists.list[STORE_BY_HAND].name, "");
		is_of(f, "192.0.2.2", BIT(a) | BIT(b), 0);
	}
	begin(f);
	assert_int_equal(store_list_delete(f->store, a), -ENOTEMPTY);
	assert_int_equal(give_up(f, "192.0.2.2", b), STORE_STILL_WANTED);
	assert_int_equal(store_list_delete(f->store, b), 0);
	end(f);
	assert_int_equal(number_of(f, "b"), 0);
	begin(f);
	assert_int_equal(open_list(f, "c"), b); /* numbers are used again */
	assert_int_equal(store_clear(f->store), 0);
	end(f);
	assert_int_equal(rules_of(f, "a"), 0);
}

/* A list that is fed rule by rule is no import, and does not change the time of one. */
TIME_TEST(test_a_list_without_an_import)
{
	struct store_lists before;
	unsigned int number;

	begin(f);
	assert_int_equal(store_list_open(f->store, "bans", NULL, &number), 0);
	assert_int_equal(put_as(f, "192.0.2.1", 0, number), 0);
	open_list(f, "feed");
	end(f);
	before = lists_of(f);
	assert_int_equal(before.list[number].imported_s, 0);
	assert_string_equal(before.list[number].source, "");
	begin(f);
	assert_int_equal(store_list_open(f->store, "feed", NULL, &number), 0);
	end(f);
	assert_int_equal(lists_of(f).list[number].imported_s, before.list[number].imported_s);
	assert_string_equal(lists_of(f).list[number].source, "feed");
	assert_true(before.list[number].imported_s > 0);
}

static struct store_feed feed_of(struct fixture *f, const char *list)
{
	struct store_feed feed;

	store_feed(f->store, list, &feed);
	return feed;
}

/* What is known of fetches comes back with the undo of a change, unless somebody has fetched since; and what to expect. */
TIME_TEST(test_feeds_are_undone)
{
	const struct store_feed feed = { .tried_s = 1, .wait_until_s = 2, .why = "503" }, later = { .tried_s = 3 };
	unsigned int a, b, c, d;

	begin(f);
	a = open_list(f, "a");
	b = open_list(f, "b");
	c = open_list(f, "c");
	assert_int_equal(store_feed_put(f->store, "a", &feed), 0);
	assert_int_equal(store_feed_put(f->store, "b", &feed), 0);
	end(f);
	begin(f);
	assert_int_equal(store_set_pending(f->store, 10000), 0);
	assert_int_equal(store_list_delete(f->store, a), 0);
	assert_int_equal(store_list_delete(f->store, b), 0);
	open_list(f, "c");
	assert_int_equal(store_feed_put(f->store, "c", &feed), 0);
	d = open_list(f, "d");
	store_list_expect(f->store, d, 86400);
	assert_int_equal(store_feed_put(f->store, "d", &feed), 0);
	end(f);
	assert_int_equal(feed_of(f, "a").tried_s, 0);
	begin(f);
	assert_int_equal(store_feed_put(f->store, "b", &later), 0);
	assert_int_equal(put_as(f, "192.0.2.1", 0, d), STORE_ADDED);
	end(f);
	undo(f);
	assert_string_equal(feed_of(f, "a").why, "503");
	assert_int_equal(feed_of(f, "a").wait_until_s, 2);
	assert_int_equal(feed_of(f, "b").tried_s, 3);
	assert_int_equal(feed_of(f, "c").tried_s, 0);
	assert_int_equal(feed_of(f, "d").tried_s, 0);
	assert_int_equal(lists_of(f).list[d].stale_s, 0);
	/* A confirmed deletion stays. */
	begin(f);
	assert_int_equal(store_set_pending(f->store, 10000), 0);
	assert_int_equal(store_list_delete(f->store, a), 0);
	assert_int_equal(store_feed_put(f->store, "c", &feed), 0);
	end(f);
	begin(f);
	assert_int_equal(store_forget_pending(f->store), 0);
	end(f);
	begin(f);
	assert_int_equal(store_set_pending(f->store, 10000), 0);
	assert_int_equal(store_list_delete(f->store, c), 0);
	end(f);
	undo(f);
	assert_int_equal(feed_of(f, "a").tried_s, 0);
	assert_string_equal(feed_of(f, "c").why, "503");
}

TIME_TEST(test_feeds_of_all_lists)
{
	const struct store_feed feed = { .tried_s = 1 }, damaged = { .tried_s = 1, .why = "\n" };
	struct store_lists lists;
	struct store_feeds feeds;
	unsigned int b;

	begin(f);
	open_list(f, "a");
	b = open_list(f, "b");
	end(f);
	lists = lists_of(f);
	for (int fed = 0; fed < 3; fed++) {
		begin(f);
		if (fed)
			assert_int_equal(store_feed_put(f->store, "b", fed == 1 ? &feed : &damaged), 0);
		end(f);
		assert_int_equal(store_feeds(f->store, &lists, &feeds), 0);
		assert_int_equal(feeds.is_any, fed == 1);
		assert_int_equal(feeds.feed[b].tried_s, fed == 1);
	}
}

/* A time far ahead is from a wrong clock: the source counts as silent. */
TEST(test_silent_sources)
{
	const struct {
		__s64 stale_s, imported_s, fetched_s, least_s, most_s;
	} rows[] = { { 0, 1000, 0, 0, 0 },        { 100, 50, 0, 0, 0 },    { 100, 500, 150, 150, 160 },
		     { 100, 150, 500, 150, 160 }, { 100, -50, 500, 0, 0 }, { 100, -500, 500, 101, 101 } };

	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct store_list list = { .stale_s = rows[i].stale_s,
						 .imported_s = time(NULL) - rows[i].imported_s };
		const struct store_feed feed = { .fetched_s = rows[i].fetched_s ? time(NULL) - rows[i].fetched_s : 0 };

		assert_in_range(store_list_silent_s(&list, &feed), rows[i].least_s, rows[i].most_s);
	}
}

TEST(test_times_that_no_feed_has)
{
	struct store_feed feed = {};

	assert_true(store_feed_is_sound(&feed));
	feed.next_s = -1;
	assert_false(store_feed_is_sound(&feed));
	feed.next_s = INT64_MAX;
	assert_false(store_feed_is_sound(&feed));
}

/* An import of an equal list changes no rules: no table is filled again for it. */
TIME_TEST(test_the_time_of_an_import_is_no_change_of_rules)
{
	add(f, "192.0.2.1");
	begin(f);
	open_list(f, "a");
	assert_false(store_is_changed(f->store));
	end(f);
	assert_int_equal(info_of(f).generation, 1);
	assert_int_not_equal(number_of(f, "a"), 0);
}

TIME_TEST(test_there_can_be_63_lists)
{
	enum store_added added;
	struct rule whole;
	unsigned int number;
	char name[16];

	begin(f);
	for (int i = 1; i <= STORE_LISTS_MAX; i++) {
		snprintf(name, sizeof(name), "list-%d", i);
		number = open_list(f, name);
		assert_int_equal(put_as(f, "192.0.2.1", 0, number), i == 1 ? 0 : STORE_NEW_OWNER);
	}
	assert_int_equal(store_list_open(f->store, "another", "", &number), -EUSERS);
	end(f);
	is_of(f, "192.0.2.1", ~HAND, 0);
	begin(f);
	assert_int_equal(put(f, "192.0.2.1"), STORE_NEW_OWNER);
	end(f);
	is_of(f, "192.0.2.1", ~0ULL, 0);
	whole = get(f, "192.0.2.1");
	begin(f);
	assert_int_equal(del(f, "192.0.2.1"), 0);
	assert_int_equal(store_put_back(f->store, &whole, &added), 0);
	end(f);
	is_of(f, "192.0.2.1", ~0ULL, 0);
}

/* ---- who has a rule until when ---- */

TIME_TEST(test_a_rule_goes_with_its_last_owner)
{
	unsigned int a, b;

	begin(f);
	a = open_list(f, "a");
	b = open_list(f, "b");
	assert_int_equal(put_as(f, "192.0.2.1 comment first", 0, a), 0);
	assert_int_equal(put_as(f, "192.0.2.1 comment second", 0, a), STORE_UNCHANGED);
	assert_int_equal(put_as(f, "192.0.2.1 comment third", 0, b), STORE_NEW_OWNER);
	assert_int_equal(put(f, "192.0.2.1"), STORE_NEW_OWNER);
	assert_int_equal(put(f, "192.0.2.1"), STORE_UNCHANGED);
	is_as(f, "192.0.2.1", 0, "first");
	assert_int_equal(give_up(f, "192.0.2.1", a), STORE_STILL_WANTED);
	assert_int_equal(give_up(f, "192.0.2.1", a), STORE_NO_SUCH_RULE);
	assert_int_equal(give_up(f, "192.0.2.1", STORE_BY_HAND), STORE_STILL_WANTED);
	is_of(f, "192.0.2.1", BIT(b), 0);
	assert_int_equal(give_up(f, "192.0.2.1", b), 0);
	assert_false(has(f, "192.0.2.1"));
	assert_int_equal(give_up(f, "192.0.2.1", b), STORE_NO_SUCH_RULE);

	/* Of any owner. */
	assert_int_equal(put_as(f, "192.0.2.1", 0, a), 0);
	assert_int_equal(put_as(f, "192.0.2.1", 0, b), STORE_NEW_OWNER);
	assert_int_equal(del(f, "192.0.2.1"), 0);
	end(f);
	assert_false(has(f, "192.0.2.1"));
	assert_int_equal(rules_of(f, "a") + rules_of(f, "b"), 0);
}

/* A timed ban on a rule that a list wants permanently still ends in time after the list has given it up. */
TIME_TEST(test_a_timeout_beside_a_list)
{
	unsigned int a;

	begin(f);
	a = open_list(f, "a");
	assert_int_equal(put_as(f, "192.0.2.1", 0, a), 0);
	assert_int_equal(put_as(f, "192.0.2.2", 0, a), 0);
	assert_int_equal(put_as(f, "192.0.2.3", 0, a), 0);
	assert_int_equal(put_for(f, "192.0.2.1", CLOCK_HOUR), STORE_NEW_OWNER);
	assert_int_equal(put_for(f, "192.0.2.2", CLOCK_SECOND), STORE_NEW_OWNER);
	is_of(f, "192.0.2.1", HAND | BIT(a), 0);
	assert_int_equal(info_of(f).timed, 0);
	end(f);
	clock_advance(2 * CLOCK_SECOND);
	begin(f);
	is_of(f, "192.0.2.2", BIT(a), 0);
	assert_int_equal(give_up(f, "192.0.2.1", a), STORE_STILL_WANTED);
	assert_int_equal(give_up(f, "192.0.2.2", a), 0);
	is_of(f, "192.0.2.1", HAND, CLOCK_HOUR - 2 * CLOCK_SECOND);
	assert_false(has(f, "192.0.2.2"));
	assert_int_equal(info_of(f).timed, 1);
	end(f);
}

/* The other order: a rule that was added by hand stays permanent, whatever timeout a list gives it. */
TIME_TEST(test_a_list_with_a_timeout)
{
	unsigned int a, b;

	add(f, "192.0.2.1");
	begin(f);
	a = open_list(f, "a");
	b = open_list(f, "b");
	assert_int_equal(put_as(f, "192.0.2.1", CLOCK_SECOND, a), STORE_NEW_OWNER);
	is_of(f, "192.0.2.1", HAND | BIT(a), 0);

	/* Of two deadlines the later one counts; a single owner has its last one. */
	assert_int_equal(put_as(f, "192.0.2.2", CLOCK_DAY, a), 0);
	assert_int_equal(put_as(f, "192.0.2.2", CLOCK_HOUR, b), STORE_NEW_END);
	is_of(f, "192.0.2.2", BIT(a) | BIT(b), CLOCK_DAY);
	assert_int_equal(give_up(f, "192.0.2.2", a), STORE_STILL_WANTED);
	assert_int_equal(put_as(f, "192.0.2.2", CLOCK_HOUR, b), STORE_NEW_END);
	is_of(f, "192.0.2.2", BIT(b), CLOCK_HOUR);
	end(f);

	/* After the rule has ended, whoever adds it is its only owner. */
	clock_advance(2 * CLOCK_HOUR);
	begin(f);
	assert_int_equal(put_as(f, "192.0.2.2", CLOCK_HOUR, a), STORE_NEW_END);
	is_of(f, "192.0.2.2", BIT(a), CLOCK_HOUR);
	is_of(f, "192.0.2.1", HAND, 0);
	end(f);
	assert_int_equal(rules_of(f, "b"), 0);
}

/* Changes that are no import of the list, and are not the end of a rule. */
TIME_TEST(test_an_edited_list)
{
	unsigned int a, b;

	begin(f);
	a = open_list(f, "a");
	b = open_list(f, "b");
	assert_int_equal(put_as(f, "192.0.2.1", 0, a), 0);
	assert_int_equal(put_as(f, "192.0.2.1", 0, b), STORE_NEW_OWNER);
	assert_int_equal(put_as(f, "192.0.2.2", CLOCK_SECOND, b), 0);
	end(f);
	assert_false(lists_of(f).list[a].is_edited || lists_of(f).list[b].is_edited);
	clock_advance(CLOCK_HOUR);
	begin(f);
	assert_int_equal(store_each_expired(f->store, del_ended, f->store), 0);
	assert_int_equal(give_up(f, "192.0.2.1", a), STORE_STILL_WANTED);
	end(f);
	assert_true(lists_of(f).list[a].is_edited);
	assert_false(lists_of(f).list[b].is_edited);
	reopen(f, STORE_WRITE);
	begin(f);
	assert_int_equal(open_list(f, "a"), a);
	assert_int_equal(store_clear(f->store), 0);
	end(f);
	assert_false(lists_of(f).list[a].is_edited);
	assert_true(lists_of(f).list[b].is_edited);
}

/* A rule has ended for one list and is still stored; another list adds it, or somebody deletes it. */
TIME_TEST(test_an_ended_rule_is_no_edit)
{
	unsigned int a, b;

	begin(f);
	a = open_list(f, "a");
	b = open_list(f, "b");
	assert_int_equal(put_as(f, "192.0.2.1", CLOCK_SECOND, a), 0);
	assert_int_equal(put_as(f, "192.0.2.2", CLOCK_SECOND, a), 0);
	assert_int_equal(put_as(f, "192.0.2.3", CLOCK_HOUR, a), 0);
	end(f);
	clock_advance(CLOCK_SECOND);
	begin(f);
	assert_int_equal(put_as(f, "192.0.2.1", 0, b), STORE_NEW_END);
	assert_int_equal(del(f, "192.0.2.2"), STORE_DELETED);
	end(f);
	assert_false(lists_of(f).list[a].is_edited);
	assert_true(lists_of(f).list[b].is_edited);
	begin(f);
	assert_int_equal(del(f, "192.0.2.3"), STORE_DELETED);
	end(f);
	assert_true(lists_of(f).list[a].is_edited);
}

/* A list has a rule for a time that somebody else has for good: the rule stays, and the list loses it. */
TIME_TEST(test_an_owner_ends)
{
	struct store_info info;
	struct store_lists lists;
	unsigned int a, b;

	add(f, "192.0.2.1");
	begin(f);
	a = open_list(f, "a");
	b = open_list(f, "b");
	assert_int_equal(put_as(f, "192.0.2.1", CLOCK_SECOND, a), STORE_NEW_OWNER);
	assert_int_equal(put_as(f, "192.0.2.2", 0, a), STORE_ADDED);
	assert_int_equal(put_as(f, "192.0.2.2", CLOCK_SECOND, b), STORE_NEW_OWNER);
	assert_int_equal(give_up(f, "192.0.2.2", a), STORE_STILL_WANTED);
	end(f);
	assert_int_equal(info_of(f).timed, 1);
	clock_advance(2 * CLOCK_SECOND);
	reopen(f, STORE_WRITE);
	assert_int_equal(rules_of(f, "a"), 1);
	assert_int_equal(store_in_force(f->store, &info, &lists), 0);
	assert_int_equal(info.rules, 1);
	assert_int_equal(info.timed, 0);
	assert_int_equal(lists.list[a].rules, 0);
	begin(f);
	assert_int_equal(store_each_expired(f->store, del_ended, f->store), 0);
	end(f);
	assert_int_equal(rules_of(f, "a"), 0);
	assert_int_equal(rules_of(f, "b"), 0);
	assert_false(lists_of(f).list[a].is_edited);
	is_of(f, "192.0.2.1", HAND, 0);
	assert_false(has(f, "192.0.2.2"));
	assert_int_equal(store_each_expired(f->store, del_ended, f->store), 0);
}

/* ---- undone ---- */

TIME_TEST(test_lists_are_undone)
{
	struct store_lists before, after;
	unsigned int a, b, c;

	begin(f);
	a = open_list(f, "a");
	b = open_list(f, "b");
	assert_int_equal(put_as(f, "192.0.2.1", 0, a), 0);
	assert_int_equal(put_as(f, "192.0.2.1", CLOCK_HOUR, b), STORE_NEW_OWNER);
	assert_int_equal(put_as(f, "192.0.2.2", 0, a), 0);
	end(f);
	before = lists_of(f);

	begin_pending(f, CLOCK_HOUR);
	assert_int_equal(give_up(f, "192.0.2.1", a), STORE_STILL_WANTED);
	assert_int_equal(give_up(f, "192.0.2.2", a), 0);
	assert_int_equal(store_list_delete(f->store, a), 0);
	c = open_list(f, "c");
	assert_int_equal(put_as(f, "192.0.2.3", 0, c), 0);
	end(f);
	assert_int_equal(number_of(f, "a"), 0);
	assert_int_not_equal(c, a); /* its number is in use while an undo can restore it */
	is_of(f, "192.0.2.1", BIT(b), CLOCK_HOUR);

	reopen(f, STORE_WRITE);
	undo(f);
	after = lists_of(f);
	assert_memory_equal(&before, &after, sizeof(before));
	is_of(f, "192.0.2.1", BIT(a) | BIT(b), 0);
	is_of(f, "192.0.2.2", BIT(a), 0);
	assert_false(has(f, "192.0.2.3"));
}

static void is_list(struct fixture *f, const char *name, __u64 rules, bool is_edited)
{
	const struct store_list list = lists_of(f).list[number_of(f, name)];

	assert_string_equal(list.source, name);
	assert_int_not_equal(list.imported_s, 0);
	assert_int_equal(list.rules, rules);
	assert_int_equal(list.is_edited, is_edited);
}

static unsigned int add_to_list(struct fixture *f, const char *name, const char *text)
{
	unsigned int number;

	assert_int_equal(store_list_open(f->store, name, NULL, &number), 0);
	assert_int_equal(put_as(f, text, 0, number), 0);
	return number;
}

/* What the pending change edits is not edited after its undo; what somebody edits meanwhile is. */
TIME_TEST(test_an_undo_and_who_edited_a_list)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f" };
	unsigned int number[6];

	begin(f);
	for (int i = 0; i < 6; i++) {
		number[i] = open_list(f, names[i]);
		assert_int_equal(put_as(f, "192.0.2.1", 0, number[i]), i ? STORE_NEW_OWNER : 0);
	}
	end(f);
	begin_pending(f, CLOCK_HOUR);
	add_to_list(f, "a", "192.0.2.2");
	add_to_list(f, "b", "192.0.2.3");
	open_list(f, "c"); /* an import */
	give_up(f, "192.0.2.1", number[3]);
	assert_int_equal(store_list_delete(f->store, number[3]), 0);
	open_list(f, "e");
	give_up(f, "192.0.2.1", number[4]);
	give_up(f, "192.0.2.1", number[5]);
	end(f);
	begin(f);
	add_to_list(f, "b", "192.0.2.4");
	give_up(f, "192.0.2.1", number[2]);
	assert_int_equal(add_to_list(f, "d", "192.0.2.5"), number[3]);
	/* The list gives up a rule that only the undo would bring back. */
	assert_int_equal(give_up(f, "192.0.2.1", number[4]), STORE_NO_SUCH_RULE);
	end(f);
	is_list(f, "e", 0, false);
	undo(f);
	is_list(f, "a", 1, false);
	is_list(f, "b", 2, true);
	is_list(f, "c", 0, true);
	is_list(f, "d", 2, true);
	is_list(f, "e", 0, true);
	is_list(f, "f", 1, false);
	/* All rules go while a change waits. */
	begin_pending(f, CLOCK_HOUR);
	open_list(f, "f");
	end(f);
	begin(f);
	assert_int_equal(store_clear(f->store), 0);
	end(f);
	undo(f);
	is_list(f, "f", 0, true);
	/* Again, where the pending change has taken them all already. */
	begin(f);
	assert_int_equal(put_as(f, "192.0.2.1", 0, open_list(f, "f")), 0);
	end(f);
	begin_pending(f, CLOCK_HOUR);
	assert_int_equal(store_clear(f->store), 0);
	end(f);
	is_list(f, "f", 0, true);
	begin(f);
	assert_int_equal(store_clear(f->store), 0);
	end(f);
	undo(f);
	is_list(f, "f", 0, true);
}

/* A list gives up a rule that only the pending change gave it: what the undo brings back is not edited. */
TIME_TEST(test_an_edit_of_what_is_undone)
{
	unsigned int a;

	begin(f);
	a = open_list(f, "a");
	end(f);
	begin_pending(f, CLOCK_HOUR);
	add_to_list(f, "a", "192.0.2.1");
	end(f);
	begin(f);
	assert_int_equal(give_up(f, "192.0.2.1", a), STORE_DELETED);
	end(f);
	is_list(f, "a", 0, true);
	undo(f);
	is_list(f, "a", 0, false);
}

/* A rule is set: its owner wants it so, whatever it wanted before; others keep it, unless the owner is alone. */
TIME_TEST(test_a_rule_is_set)
{
	struct rule rule = rule_of("192.0.2.1 comment new");
	enum store_added added;
	unsigned int a;

	begin(f);
	a = open_list(f, "a");
	assert_int_equal(put_as(f, "192.0.2.1 comment old", 0, a), 0);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(store_put(f->store, &rule, a, BIT(a), &added), 0);
		assert_int_equal(added, again ? STORE_UNCHANGED : STORE_NEW_OWNER);
		is_as(f, "192.0.2.1", 0, "new");
	}
	rule.timeout_ms = CLOCK_HOUR;
	assert_int_equal(store_put(f->store, &rule, a, BIT(a), &added), 0);
	assert_int_equal(added, STORE_NEW_END);
	is_as(f, "192.0.2.1", CLOCK_HOUR, "new");
	assert_int_equal(put(f, "192.0.2.1"), STORE_NEW_END);
	assert_int_equal(store_put(f->store, &rule, a, BIT(a), &added), 0);
	is_of(f, "192.0.2.1", HAND | BIT(a), 0);
	assert_int_equal(store_put(f->store, &rule, a, STORE_ALL_OWNERS, &added), 0);
	assert_int_equal(added, STORE_NEW_END);
	is_of(f, "192.0.2.1", BIT(a), CLOCK_HOUR);
	end(f);
	assert_int_equal(rules_of(f, "a"), 1);
}

/* Who has ended counts for nothing: not for the rate, nor for the comment. */
TIME_TEST(test_an_owner_who_has_ended)
{
	unsigned int a;

	for (int pending = 0; pending < 2; pending++) {
		const char *rated = pending ? "198.51.100.1 rate 10/s" : "192.0.2.1 rate 10/s";
		const char *named = pending ? "198.51.100.2 comment old" : "192.0.2.2 comment old";

		begin(f);
		a = open_list(f, "a");
		assert_int_equal(put_as(f, rated, CLOCK_SECOND, a), 0);
		assert_int_equal(put_as(f, named, CLOCK_SECOND, a), 0);
		end(f);
		if (pending) {
			begin_pending(f, CLOCK_HOUR);
			assert_int_equal(store_clear(f->store), 0);
			end(f);
		}
		clock_advance(CLOCK_SECOND);
		begin(f);
		put(f, pending ? "198.51.100.1 rate 99/s" : "192.0.2.1 rate 99/s");
		put(f, pending ? "198.51.100.2" : "192.0.2.2");
		end(f);
		if (pending)
			undo(f);
		assert_int_equal(get(f, rated).rate, 99);
		assert_string_equal(get(f, named).comment, "");
	}
}

/* An undo does not bring rules back to a list deleted meanwhile, nor delete a list that got rules since. */
TIME_TEST(test_an_undo_keeps_changes_to_other_lists)
{
	unsigned int a, b, c;

	begin(f);
	a = open_list(f, "a");
	b = open_list(f, "b");
	assert_int_equal(put_as(f, "192.0.2.1", 0, a), 0);
	assert_int_equal(put_as(f, "192.0.2.1", 0, b), STORE_NEW_OWNER);
	assert_int_equal(put_as(f, "192.0.2.2", 0, b), 0);
	end(f);
	begin_pending(f, CLOCK_HOUR);
	assert_int_equal(give_up(f, "192.0.2.1", a), STORE_STILL_WANTED);
	assert_int_equal(give_up(f, "192.0.2.2", b), 0);
	c = open_list(f, "c");
	assert_int_equal(put_as(f, "192.0.2.3", 0, c), 0);
	end(f);

	begin(f);
	assert_int_equal(give_up(f, "192.0.2.1", b), 0);
	assert_int_equal(store_list_delete(f->store, b), 0);
	assert_int_equal(put_as(f, "192.0.2.4", 0, c), 0);
	assert_int_not_equal(open_list(f, "d"), b);
	end(f);
	undo(f);
	is_of(f, "192.0.2.1", BIT(a), 0);
	assert_false(has(f, "192.0.2.2"));
	assert_false(has(f, "192.0.2.3"));
	is_of(f, "192.0.2.4", BIT(c), 0);
	assert_int_equal(number_of(f, "c"), c);
	assert_int_equal(number_of(f, "b"), 0);
	begin(f);
	assert_int_equal(open_list(f, "e"), b);
	end(f);
}

/* An undo does not undo what others do to the lists of the change. */
TIME_TEST(test_an_undo_keeps_changes_to_its_own_lists)
{
	struct store_lists lists;
	unsigned int a, b, c;

	begin(f);
	a = open_list(f, "a");
	b = open_list(f, "b");
	end(f);
	begin_pending(f, CLOCK_HOUR);
	open_list(f, "a");
	assert_int_equal(store_list_delete(f->store, b), 0);
	c = open_list(f, "c");
	end(f);

	clock_advance(CLOCK_DAY);
	begin(f);
	assert_int_equal(store_list_delete(f->store, a), 0);
	assert_int_equal(store_list_open(f->store, "b", "/later", &b), 0);
	assert_int_equal(open_list(f, "c"), c);
	end(f);
	undo(f);
	lists = lists_of(f);
	assert_int_equal(number_of(f, "a"), 0);
	assert_string_equal(lists.list[b].source, "/later");
	assert_int_equal(number_of(f, "c"), c);
}

TIME_TEST(test_a_deletion_is_confirmed)
{
	unsigned int a;

	begin(f);
	a = open_list(f, "a");
	end(f);
	begin_pending(f, CLOCK_HOUR);
	assert_int_equal(store_list_delete(f->store, a), 0);
	end(f);
	begin(f);
	assert_int_equal(store_forget_pending(f->store), 0);
	end(f);
	assert_int_equal(number_of(f, "a"), 0);
	begin(f);
	assert_int_equal(open_list(f, "b"), a);
	end(f);
}

/* ---- what others wrote ---- */

static void put_value(struct fixture *f, const void *value, size_t length)
{
	const struct rule rule = rule_of("192.0.2.1");
	__u8 bytes[RULE_ENCODED_BYTES];
	MDB_txn *txn = lmdb_begin(f);

	lmdb_put_in(txn, "rules", (MDB_val){ rule_encode(&rule, bytes), bytes }, (MDB_val){ length, (void *)value });
	lmdb_commit(txn);
}

TIME_TEST(test_damaged_values)
{
#define NUMBER(low) low, 0, 0, 0, 0, 0, 0, 0
	static const struct {
		size_t length;
		__u8 bytes[32];
	} rows[] = {
		{ 8, { 2, NUMBER(2) } },                        /* cut short */
		{ 9, { 2, NUMBER(1) } },                        /* permanent and by hand: such a value has no head */
		{ 9, { 2, NUMBER(0) } },                        /* nobody */
		{ 17, { 3, NUMBER(9), NUMBER(2) } },            /* cut short */
		{ 25, { 3, NUMBER(9), NUMBER(2), NUMBER(0) } }, /* a deadline without an owner */
		{ 25, { 3, NUMBER(9), NUMBER(2), NUMBER(3) } }, /* one owner both permanently and with a deadline */
		{ 25, { 3, NUMBER(0), NUMBER(2), NUMBER(4) } }, /* no deadline */
		{ 25, { 3, NUMBER(9), NUMBER(0), NUMBER(1) } }, /* timed and by hand: such a value has another head */
		{ 9, { 4, NUMBER(2) } },                        /* no comment starts like this */
	};
	struct rule rule = rule_of("192.0.2.1");

	for (size_t i = 0; i < COUNT(rows); i++) {
		close_store(f);
		put_value(f, rows[i].bytes, rows[i].length);
		open_store(f, STORE_WRITE);
		assert_int_equal(store_get(f->store, &rule), -EBADMSG);
		begin(f);
		assert_int_equal(store_get(f->store, &rule), -EBADMSG);
		assert_int_equal(del(f, "192.0.2.1"), -EBADMSG);
		store_abort(f->store);
	}
	/* No such list exists. */
	close_store(f);
	put_value(f, (__u8[]){ 2, NUMBER(6), 'x' }, 10);
	open_store(f, STORE_WRITE);
	is_of(f, "192.0.2.1", 6, 0);
	begin(f);
	assert_int_equal(store_get(f->store, &rule), -EBADMSG);
	assert_int_equal(give_up_rule(f->store, &rule, 1), -EBADMSG);
	store_abort(f->store);
}

static void list_is_refused(struct fixture *f, const char *name, const __u8 *value, size_t length)
{
	struct store_lists lists;

	lmdb_put(f, "lists", name, (MDB_val){ length, (void *)value });
	open_store(f, STORE_WRITE);
	assert_int_equal(store_lists(f->store, &lists), -EBADMSG);
	assert_int_equal(store_begin(f->store), -EBADMSG);
	close_store(f);
	lmdb_delete(f, "lists", (MDB_val){ strlen(name), (void *)name });
}

TIME_TEST(test_damaged_lists)
{
	static const __u8 row[] = { NUMBER(0), NUMBER(1), 2, 0, 0, 0, 0, 0, 0, 0, '/', 'x' };
	__u8 other[LIST_VALUE_BYTES + STORE_SOURCE_BYTES] = {};

	_Static_assert(sizeof(row) == LIST_VALUE_BYTES + 2, "a list of source /x");
	begin(f);
	open_list(f, "a");
	end(f);
	close_store(f);
	list_is_refused(f, "b", row, LIST_VALUE_BYTES - 1);
	list_is_refused(f, "a b", row, sizeof(row));
	list_is_refused(f, "0123456789012345678901234567890123456789", row, sizeof(row));
	for (size_t i = 0; i < 5; i++) {
		static const struct {
			size_t at;
			__u8 byte;
		} damages[] = { { 16, 1 }, { 16, 0 }, { 16, 64 }, { 17, 2 }, { 24, '\n' } };

		memcpy(other, row, sizeof(row));
		other[damages[i].at] = damages[i].byte;
		list_is_refused(f, "b", other, sizeof(row));
	}
	memcpy(other, row, sizeof(row));
	memset(other + LIST_VALUE_BYTES, 'x', STORE_SOURCE_BYTES);
	list_is_refused(f, "b", other, sizeof(other));
	lmdb_put(f, "lists", "b", (MDB_val){ sizeof(row), (void *)row });
	open_store(f, STORE_WRITE);
	assert_int_equal(number_of(f, "b"), 2);
}

/* What a program writes of its list, every program reads; so it reads what versions before have stored. */
TEST(test_sources)
{
	static const char *const texts[] = {
		"flowspec: 0 flows, 0 refused, 0 unreadable",
		"flowspec: 18446744073709551615 flows, 2 refused, 3 unreadable",
		"crowdsec: 3 decisions, 4 left out, 5 unreadable, 6 refused",
		"fleet edge-1 0123456789abcdef0123456789abcdef 1764300000000-12 refused 7"
	};
	static const char *const others[] = { "", "flowspec: 1 flows", "fleet edge-1", "/etc/fleet",
					      "crowdsec: 1 decisions" };
	char text[STORE_SOURCE_BYTES];
	struct store_source source;

	for (size_t i = 0; i < COUNT(texts); i++) {
		source = store_source_parse(texts[i]);
		store_source_format(&source, text);
		assert_string_equal(text, texts[i]);
	}
	assert_string_equal(source.fleet, "edge-1");
	assert_string_equal(source.position, "1764300000000-12");
	assert_int_equal(source.refused, 7);
	source = store_source_parse(texts[1]);
	assert_int_equal(source.kind, STORE_SOURCE_FLOWSPEC);
	assert_true(source.flows == ~0ULL && source.refused == 2 && source.unreadable == 3);
	for (size_t i = 0; i < COUNT(others); i++)
		assert_int_equal(store_source_parse(others[i]).kind, STORE_SOURCE_OTHER);
}

TEST_MAIN(seed, NULL)
