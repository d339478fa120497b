// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The functions of the library for lists, counts by rule and samples: what they do and what they refuse. */
#include "unit/library_fixture.h"

#include <fcntl.h>
#include <poll.h>

#define LISTS_MAX 63
#define MANY 5000

static int add_to(struct xdp_cuckoo_filter *filter, const char *list, const char *text)
{
	const struct xdp_cuckoo_rule rule = parsed(text);

	return xdp_cuckoo_list_add(filter, list, &rule);
}

static int del_from(struct xdp_cuckoo_filter *filter, const char *list, const char *text)
{
	const struct xdp_cuckoo_rule rule = parsed(text);

	return xdp_cuckoo_list_del(filter, list, &rule);
}

static unsigned int count_of(struct xdp_cuckoo_filter *filter, const char *list)
{
	unsigned int count = 0;

	is_told(filter, xdp_cuckoo_list_each(filter, list, count_one, &count), 0);
	return count;
}

/* Replaces a list by rules given as text. The change must be `added updated kept removed left`. */
static void replaces(struct xdp_cuckoo_filter *filter, const char *list, const char *const *texts, size_t count,
		     const uint64_t expected[5])
{
	struct xdp_cuckoo_rule rules[8];
	struct xdp_cuckoo_replaced replaced;

	for (size_t i = 0; i < count; i++)
		/* cppcheck-suppress arrayIndexOutOfBounds ; it counts the letters of a list of one text */
		rules[i] = parsed(texts[i]);
	is_told(filter, xdp_cuckoo_list_replace(filter, list, NULL, rules, count, &replaced), 0);
	assert_int_equal(replaced.added, expected[0]);
	assert_int_equal(replaced.updated, expected[1]);
	assert_int_equal(replaced.kept, expected[2]);
	assert_int_equal(replaced.removed, expected[3]);
	assert_int_equal(replaced.left, expected[4]);
}

#define REPLACES(filter, list, expected, ...) \
	do { \
		static const char *const texts[] = { __VA_ARGS__ }; \
		static const uint64_t numbers[5] = expected; \
		replaces(filter, list, texts, COUNT(texts), numbers); \
	} while (0)
#define CHANGES(...) \
	{ \
		__VA_ARGS__ \
	}

/* ---- rules of lists ---- */

LIBRARY_TEST(test_a_rule_stays_until_nobody_wants_it)
{
	struct xdp_cuckoo_filter *filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);

	is_told(filter, add_to(filter, "feed", "192.0.2.1"), 0);
	is_told(filter, add_to(filter, "feed", "192.0.2.1"), -EEXIST);
	is_told(filter, add_to(filter, "bans", "192.0.2.1"), 0);
	is_told(filter, add_to(filter, "bans", "192.0.2.2 timeout 1h"), 0);
	is_told(filter, add_text(filter, "192.0.2.1"), 0);
	is_told(filter, add_to(filter, XDP_CUCKOO_BY_HAND, "192.0.2.1"), -EEXIST);
	assert_int_equal(count_of(filter, "feed"), 1);
	assert_int_equal(count_of(filter, "bans"), 2);
	assert_int_equal(count_of(filter, XDP_CUCKOO_BY_HAND), 1);
	assert_int_equal(count_of(filter, NULL), 2);
	is_told(filter, del_from(filter, "bans", "192.0.2.1"), 0);
	is_told(filter, del_from(filter, "bans", "192.0.2.1"), -ENOENT);
	is_told(filter, del_from(filter, XDP_CUCKOO_BY_HAND, "192.0.2.1"), 0);
	assert_int_equal(ask(filter, "192.0.2.1"), XDP_CUCKOO_BLOCKED);
	is_told(filter, del_from(filter, "feed", "192.0.2.1"), 0);
	assert_int_equal(ask(filter, "192.0.2.1"), XDP_CUCKOO_NOT_BLOCKED);
	is_told(filter, add_to(filter, "feed", "192.0.2.3"), 0);
	is_told(filter, del_text(filter, "192.0.2.3"), 0);
	assert_int_equal(count_of(filter, "feed"), 0);
	xdp_cuckoo_close(filter);
}

LIBRARY_TEST(test_lists_that_are_refused)
{
	const struct xdp_cuckoo_rule rule = parsed("192.0.2.1");
	struct xdp_cuckoo_filter *filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	static const char *const names[] = { NULL, "-x", ".x", "a b", "a/b", "an-extraordinarily-long-name-of-32" };
	unsigned int count = 0;

	for (size_t i = 0; i < COUNT(names); i++) {
		is_told(filter, xdp_cuckoo_list_add(filter, names[i], &rule), -EINVAL);
		is_told(filter, xdp_cuckoo_list_del(filter, names[i], &rule), -EINVAL);
		is_told(filter, xdp_cuckoo_list_replace(filter, names[i], NULL, &rule, 1, NULL), -EINVAL);
		is_told(filter, xdp_cuckoo_list_delete(filter, names[i]), -EINVAL);
		assert_non_null(strstr(xdp_cuckoo_error(filter), "1 to 31 letters"));
		if (names[i])
			is_told(filter, xdp_cuckoo_list_each(filter, names[i], count_one, &count), -EINVAL);
	}
	is_told(filter, xdp_cuckoo_list_delete(filter, XDP_CUCKOO_BY_HAND), -EINVAL);
	is_told(filter, xdp_cuckoo_list_delete(filter, "feed"), -ENOENT);
	is_told(filter, xdp_cuckoo_list_del(filter, "feed", &rule), -ENOENT);
	is_told(filter, xdp_cuckoo_list_each(filter, "feed", count_one, &count), -ENOENT);
	assert_int_equal(count, 0);
	assert_int_equal(count_rules(filter), 0);
	xdp_cuckoo_close(filter);
	filter = open_filter(f, NULL, XDP_CUCKOO_READ);
	is_told(filter, xdp_cuckoo_list_add(filter, "feed", &rule), -EROFS);
	is_told(filter, xdp_cuckoo_list_del(filter, "feed", &rule), -EROFS);
	is_told(filter, xdp_cuckoo_list_replace(filter, "feed", NULL, &rule, 1, NULL), -EROFS);
	is_told(filter, xdp_cuckoo_list_delete(filter, "feed"), -EROFS);
	xdp_cuckoo_close(filter);
}

LIBRARY_TEST(test_more_lists_than_there_can_be)
{
	struct xdp_cuckoo_list lists[LISTS_MAX];
	struct xdp_cuckoo_filter *filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	char name[XDP_CUCKOO_NAME_BYTES];
	size_t count = 99;

	is_told(filter, xdp_cuckoo_begin(filter), 0);
	for (unsigned int i = 0; i < LISTS_MAX; i++) {
		snprintf(name, sizeof(name), "list-%u", i);
		is_told(filter, add_to(filter, name, "192.0.2.1"), 0);
	}
	is_told(filter, add_to(filter, "one-more", "192.0.2.1"), -EUSERS);
	is_told(filter, add_text(filter, "192.0.2.1"), 0);
	is_told(filter, xdp_cuckoo_commit(filter), 0);
	is_told(filter, xdp_cuckoo_lists(filter, lists, 2, &count), 0);
	assert_int_equal(count, LISTS_MAX);
	assert_string_equal(lists[1].name, "list-1");
	is_told(filter, xdp_cuckoo_list_delete(filter, "list-7"), 0);
	is_told(filter, add_to(filter, "one-more", "192.0.2.1"), 0);
	xdp_cuckoo_close(filter);
}

/* ---- whole lists ---- */

LIBRARY_TEST(test_a_list_is_replaced)
{
	struct xdp_cuckoo_filter *filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);

	is_told(filter, add_text(filter, "192.0.2.1"), 0);
	is_told(filter, add_text(filter, "192.0.2.9"), 0);
	REPLACES(filter, "feed", CHANGES(2, 1, 0, 0, 0), "192.0.2.1", "203.0.113.0/24", "192.0.2.2", "192.0.2.2");
	REPLACES(filter, "feed", CHANGES(1, 0, 1, 1, 1), "192.0.2.3", "192.0.2.2");
	assert_int_equal(count_of(filter, "feed"), 2);
	assert_int_equal(ask(filter, "203.0.113.1"), XDP_CUCKOO_NOT_BLOCKED);
	assert_int_equal(ask(filter, "192.0.2.1"), XDP_CUCKOO_BLOCKED);
	assert_int_equal(ask(filter, "192.0.2.9"), XDP_CUCKOO_BLOCKED);
	REPLACES(filter, XDP_CUCKOO_BY_HAND, CHANGES(1, 0, 0, 2, 0), "192.0.2.5");
	assert_int_equal(count_of(filter, XDP_CUCKOO_BY_HAND), 1);
	assert_int_equal(count_of(filter, "feed"), 2);
	is_told(filter, xdp_cuckoo_list_replace(filter, "feed", NULL, NULL, 0, NULL), 0);
	assert_int_equal(count_of(filter, "feed"), 0);
	xdp_cuckoo_close(filter);
}

LIBRARY_TEST(test_a_bad_rule_leaves_the_list_as_it_was)
{
	struct xdp_cuckoo_rule rules[] = { parsed("192.0.2.1"), parsed("192.0.2.2"), {} };
	struct xdp_cuckoo_filter *filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);

	is_told(filter, xdp_cuckoo_list_replace(filter, "feed", NULL, rules, 1, NULL), 0);
	is_told(filter, xdp_cuckoo_list_replace(filter, "feed", NULL, rules, 3, NULL), -EINVAL);
	assert_non_null(strstr(xdp_cuckoo_error(filter), "rule 2"));
	is_told(filter, xdp_cuckoo_begin(filter), 0);
	is_told(filter, xdp_cuckoo_list_replace(filter, "feed", NULL, rules, 3, NULL), -EINVAL);
	is_told(filter, xdp_cuckoo_commit(filter), 0);
	assert_int_equal(count_of(filter, "feed"), 1);
	rules[1] = parsed("dst " OWN_ADDRESS);
	is_told(filter, xdp_cuckoo_list_replace(filter, "feed", NULL, rules, 2, NULL), -ECANCELED);
	assert_int_equal(count_of(filter, "feed"), 1);
	xdp_cuckoo_close(filter);
}

LIBRARY_TEST(test_lists_change_together)
{
	const struct xdp_cuckoo_rule rules[] = { parsed("192.0.2.1"), parsed("192.0.2.2") };
	struct xdp_cuckoo_filter *filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	struct xdp_cuckoo_list lists[2];
	size_t count;

	is_told(filter, xdp_cuckoo_begin(filter), 0);
	is_told(filter, xdp_cuckoo_list_replace(filter, "a", "https://example.net/a", &rules[0], 2, NULL), 0);
	is_told(filter, xdp_cuckoo_list_replace(filter, "b", NULL, &rules[1], 1, NULL), 0);
	is_told(filter, add_text(filter, "192.0.2.3"), 0);
	assert_int_equal(count_of(filter, "a"), 2);
	is_told(filter, xdp_cuckoo_abort(filter), 0);
	is_told(filter, xdp_cuckoo_lists(filter, lists, 2, &count), 0);
	assert_int_equal(count, 0);
	is_told(filter, xdp_cuckoo_begin(filter), 0);
	is_told(filter, xdp_cuckoo_list_replace(filter, "a", "https://example.net/a", &rules[0], 2, NULL), 0);
	is_told(filter, xdp_cuckoo_list_replace(filter, "b", NULL, &rules[1], 1, NULL), 0);
	is_told(filter, add_text(filter, "192.0.2.3"), 0);
	is_told(filter, xdp_cuckoo_commit(filter), 0);
	/* The rule added last belongs to no list. */
	assert_int_equal(count_of(filter, XDP_CUCKOO_BY_HAND), 1);
	is_told(filter, xdp_cuckoo_lists(filter, lists, 2, &count), 0);
	assert_int_equal(count, 2);
	assert_string_equal(lists[0].name, "a");
	assert_string_equal(lists[0].source, "https://example.net/a");
	assert_int_equal(lists[0].rules, 2);
	assert_true(lists[0].replaced_s > 1600000000);
	assert_string_equal(lists[1].source, "libxdp-cuckoo");
	/* Adding a rule does not change what a feed says about itself. */
	is_told(filter, add_to(filter, "a", "192.0.2.4"), 0);
	is_told(filter, xdp_cuckoo_list_delete(filter, "b"), 0);
	is_told(filter, xdp_cuckoo_lists(filter, lists, 2, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(lists[0].rules, 3);
	assert_string_equal(lists[0].source, "https://example.net/a");
	assert_int_equal(ask(filter, "192.0.2.2"), XDP_CUCKOO_BLOCKED);
	xdp_cuckoo_close(filter);
}

LOADED_TEST(test_a_large_list_fills_the_running_filter)
{
	struct xdp_cuckoo_rule *rules = calloc(MANY, sizeof(*rules));
	struct xdp_cuckoo_filter *filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	struct xdp_cuckoo_info info;

	is_told(filter, xdp_cuckoo_load(filter, "va", XDP_CUCKOO_SKB), 0);
	for (unsigned int i = 0; i < MANY; i++)
		rules[i] = (struct xdp_cuckoo_rule){ .family = AF_INET, .src_bits = 32, .src = { 198, 18, i >> 8, i } };
	is_told(filter, xdp_cuckoo_list_replace(filter, "feed", NULL, rules, MANY, NULL), 0);
	is_told(filter, xdp_cuckoo_get_info(filter, &info), 0);
	assert_int_equal(info.used_slots, MANY);
	is_told(filter, xdp_cuckoo_list_replace(filter, "feed", NULL, rules, 10, NULL), 0);
	is_told(filter, xdp_cuckoo_get_info(filter, &info), 0);
	assert_int_equal(info.used_slots, 10);
	is_told(filter, xdp_cuckoo_list_delete(filter, "feed"), 0);
	is_told(filter, xdp_cuckoo_get_info(filter, &info), 0);
	assert_int_equal(info.used_slots + info.rules, 0);
	is_told(filter, xdp_cuckoo_unload(filter, NULL), 0);
	xdp_cuckoo_close(filter);
	free(rules);
}

/* ---- monitor rules ---- */

LIBRARY_TEST(test_a_monitor_rule_blocks_nothing)
{
	struct xdp_cuckoo_filter *filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	struct xdp_cuckoo_rule rule = parsed("192.0.2.0/24"), flow = parsed("192.0.2.7"), found;
	enum xdp_cuckoo_answer answer;

	rule.action = XDP_CUCKOO_MONITOR;
	is_told(filter, xdp_cuckoo_list_add(filter, "trial", &rule), 0);
	is_told(filter, xdp_cuckoo_test(filter, &flow, &answer, &found), 0);
	assert_int_equal(answer, XDP_CUCKOO_MONITORED);
	assert_int_equal(found.action, XDP_CUCKOO_MONITOR);
	assert_int_equal(found.src_bits, 24);
	is_told(filter, add_text(filter, "192.0.2.7"), 0);
	assert_int_equal(ask(filter, "192.0.2.7"), XDP_CUCKOO_BLOCKED);
	xdp_cuckoo_close(filter);
}

/* ---- samples: tests/namespace/test_library.sh has them with packets ---- */

static int see(const struct xdp_cuckoo_sample *sample, void *context)
{
	(void)sample, (void)context;
	return 0;
}

LOADED_TEST(test_one_listener_at_a_time)
{
	struct xdp_cuckoo_filter *filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE), *second;
	struct xdp_cuckoo_sampled sampled;
	struct pollfd file = { .events = POLLIN };
	int fd;

	is_told(filter, xdp_cuckoo_samples_open(filter, 0, 0, &fd), -ENODEV);
	assert_int_equal(fd, -1);
	is_told(filter, xdp_cuckoo_samples_read(filter, see, NULL), -EINVAL);
	is_told(filter, xdp_cuckoo_samples_counts(filter, &sampled), -EINVAL);
	is_told(filter, xdp_cuckoo_samples_close(filter), -EINVAL);
	is_told(filter, xdp_cuckoo_load(filter, "va", XDP_CUCKOO_SKB), 0);
	is_told(filter, xdp_cuckoo_samples_open(filter, 1, 1000001, &fd), -EINVAL);
	is_told(filter, xdp_cuckoo_samples_open(filter, 1, 1000000, &file.fd), 0);
	assert_int_equal(fcntl(file.fd, F_GETFD), FD_CLOEXEC);
	is_told(filter, xdp_cuckoo_samples_open(filter, 1, 1, &fd), -EBUSY);
	/* Its timer makes it readable, so that the lease is renewed; the other handle waits for the renewal to see it. */
	assert_int_equal(poll(&file, 1, 0), 0);
	assert_int_equal(poll(&file, 1, 5000), 1);
	is_told(filter, xdp_cuckoo_samples_read(filter, see, NULL), 0);
	assert_int_equal(poll(&file, 1, 0), 0);
	is_told(filter, xdp_cuckoo_samples_counts(filter, &sampled), 0);
	assert_int_equal(sampled.limited + sampled.lost, 0);
	is_told(filter, xdp_cuckoo_samples_close(filter), 0);
	assert_int_equal(fcntl(file.fd, F_GETFD), -1);
	second = open_filter(f, NULL, XDP_CUCKOO_READ);
	is_told(second, xdp_cuckoo_samples_open(second, 1, 1, &fd), 0);
	xdp_cuckoo_close(second);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	is_told(filter, xdp_cuckoo_unload(filter, NULL), 0);
	xdp_cuckoo_close(filter);
}

/* While it is not read for longer than its lease, another listener gets the samples; and then it again. */
LOADED_TEST(test_a_listener_that_does_not_read)
{
	struct xdp_cuckoo_filter *slow = open_filter(f, NULL, XDP_CUCKOO_CHANGE), *other;
	struct pollfd file = { .events = POLLIN };
	int fd;

	is_told(slow, xdp_cuckoo_load(slow, "va", XDP_CUCKOO_SKB), 0);
	is_told(slow, xdp_cuckoo_samples_open(slow, 1, 1, &file.fd), 0);
	other = open_filter(f, NULL, XDP_CUCKOO_READ);
	is_told(other, xdp_cuckoo_samples_open(other, 1, 1, &fd), 0);
	is_told(slow, xdp_cuckoo_samples_read(slow, see, NULL), -EBUSY);
	is_told(other, xdp_cuckoo_samples_close(other), 0);
	assert_int_equal(poll(&file, 1, 5000), 1);
	is_told(slow, xdp_cuckoo_samples_read(slow, see, NULL), 0);
	is_told(other, xdp_cuckoo_samples_open(other, 1, 1, &fd), 0);
	xdp_cuckoo_close(other);
	is_told(slow, xdp_cuckoo_unload(slow, NULL), 0);
	xdp_cuckoo_close(slow);
}

TEST_MAIN(set_up_host, NULL)
