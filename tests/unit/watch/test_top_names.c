// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The names that top remembers over several searches. The test writes the answers into the pipe. */
#include <fcntl.h>
#include <unistd.h>

#include "unit/test.h"
#include "watch/top.h"

#define WAITS_S 30 /* the child ends by itself, if a failed test leaves it */

/* Starts a search in a store of this generation, by a child that only waits. Returns where the child would write. */
static int begin_search(struct top_names *names, __u64 generation, double second)
{
	int ends[2];

	/* Fork before the pipe exists, or the child would hold it open. */
	names->child = fork();
	if (!names->child) {
		alarm(WAITS_S);
		pause();
		_exit(0);
	}
	assert_true(names->child > 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	names->answers = ends[0];
	names->asked_of = generation;
	names->started = second;
	names->searches++;
	return ends[1];
}

static void tell(int fd, __u32 tag)
{
	struct top_name name = { .tag = tag };

	snprintf(name.rule, sizeof(name.rule), "src 192.0.2.%u", tag);
	assert_int_equal(write(fd, &name, sizeof(name)), sizeof(name));
}

static void assert_known(const struct top_names *names, __u32 number)
{
	char rule[32];

	snprintf(rule, sizeof(rule), "src 192.0.2.%u", number);
	assert_non_null(top_names_find(names, number));
	assert_string_equal(top_names_find(names, number)->rule, rule);
}

TEST(test_answers_come_one_by_one)
{
	struct top_names names = {};
	const int fd = begin_search(&names, 1, 10);

	top_names_collect(&names, 10);
	assert_null(top_names_find(&names, 7));
	tell(fd, 7);
	top_names_collect(&names, 11);
	assert_known(&names, 7);
	assert_true(names.child > 0);
	tell(fd, 8);
	close(fd);
	top_names_collect(&names, 14);
	assert_known(&names, 7);
	assert_known(&names, 8);
	assert_int_equal(names.child, 0);
	/* The pause is five times the duration of the search. */
	assert_true(names.pause_end == 34);
	top_names_close(&names);
}

/* After a change of the store a key may belong to another rule; without one, names stay. */
TEST(test_what_is_forgotten)
{
	static const struct {
		__u64 generation;
		bool is_known;
	} cases[] = { { 1, true }, { 2, false } };

	for (size_t i = 0; i < 2; i++) {
		struct top_names names = {};
		int fd = begin_search(&names, 1, 0);

		tell(fd, 7);
		close(fd);
		top_names_collect(&names, 1);
		fd = begin_search(&names, cases[i].generation, 20);
		tell(fd, 8);
		assert_known(&names, 7);
		close(fd);
		top_names_collect(&names, 21);
		assert_known(&names, 8);
		assert_int_equal(top_names_find(&names, 7) != NULL, cases[i].is_known);
		top_names_close(&names);
	}
}

/* With more names than are remembered, the last ones stay. */
TEST(test_many)
{
	struct top_names names = {};
	const int fd = begin_search(&names, 1, 0);

	for (__u32 number = 0; number < 2 * TOP_NAMES; number++) {
		tell(fd, number);
		top_names_collect(&names, 1);
	}
	assert_known(&names, 2 * TOP_NAMES - 1);
	assert_known(&names, TOP_NAMES);
	assert_null(top_names_find(&names, 0));
	top_names_close(&names);
	close(fd);
	assert_null(top_names_find(&names, TOP_NAMES));
}

TEST_MAIN(NULL, NULL)
