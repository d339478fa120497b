// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Whatever publishers do to a list, a reader of its state finds exactly that; by a real redis-server. */
#include "unit/broker_fixture.h"

#include <arpa/inet.h>

#include "fleet/fleet.h"
#include "fleet/publisher.h"
#include "fleet/snapshot.h"
#include "rule/rule_set.h"

static struct publisher open_publisher(const struct test_broker *broker)
{
	struct publisher publisher;
	struct reason reason;

	if (publisher_open(&publisher, &broker->options, "f", "bad", broker->dir, &reason))
		fail_msg("%s", reason.text);
	return publisher;
}

static struct rule rule_number(unsigned int number)
{
	struct reason reason;
	struct rule rule;
	char text[64];

	snprintf(text, sizeof(text), "src 10.%u.%u.%u", number >> 16 & 255, number >> 8 & 255, number & 255);
	assert_int_equal(rule_parse(text, &rule, &reason), 0);
	return rule;
}

static void put(struct publisher *publisher, unsigned int number, bool is_added)
{
	const struct rule rule = rule_number(number);
	struct reason reason;

	if (publisher_put(publisher, &rule, is_added, &reason))
		fail_msg("%s", reason.text);
}

static void flush(struct publisher *publisher)
{
	struct reason reason;

	if (publisher_flush(publisher, &reason))
		fail_msg("%s", reason.text);
}

/* ---- the state, as a reader finds it ---- */

#define NUMBERS (1 << 16)

struct seen {
	bool has[NUMBERS];
	size_t count, repeated;
	struct fleet_position at;
};

static int see(char *line, size_t length, void *context)
{
	struct seen *seen = context;
	struct reason reason;
	unsigned int number;
	struct rule rule;
	bool is_added;

	(void)length;
	assert_int_equal(log_line_parse(line, 0, &rule, &is_added, &reason), 0);
	number = ntohl(rule.src.v4) & 0xffffff;
	assert_true(number < NUMBERS);
	seen->repeated += is_added && seen->has[number];
	seen->count += is_added - seen->has[number];
	seen->has[number] = is_added;
	return 0;
}

static struct seen *read_state(const struct test_broker *test)
{
	struct seen *seen = calloc(1, sizeof(*seen));
	struct broker broker;
	struct reason reason;

	if (broker_open(&broker, &test->options, BROKER_READ, &reason) ||
	    snapshot_read(&broker, "f", "bad", see, NULL, seen, &seen->at, &reason))
		fail_msg("%s", reason.text);
	broker_close(&broker);
	return seen;
}

/* ---- tests ---- */

TEST(test_state_is_what_was_published)
{
	struct publisher publisher;
	struct test_broker *test;
	struct seen *seen;

	skip_without_redis();
	test = test_broker_open();
	test_broker_init(test, 10000);
	publisher = open_publisher(test);
	for (unsigned int i = 0; i < 20000; i++)
		put(&publisher, i, true);
	flush(&publisher);
	assert_int_equal(publisher.changed, 20000);
	assert_int_equal(publisher.rules, 20000);
	for (unsigned int i = 0; i < 20000; i += 2)
		put(&publisher, i, false);
	put(&publisher, 50000, false);
	put(&publisher, 1, true);
	flush(&publisher);
	assert_int_equal(publisher.changed, 30000);
	seen = read_state(test);
	assert_int_equal(seen->count, 10000);
	assert_int_equal(seen->repeated, 0);
	assert_int_equal(fleet_position_compare(seen->at, publisher.last), 0);
	for (unsigned int i = 0; i < 20000; i++)
		assert_int_equal(seen->has[i], i % 2);
	assert_int_equal(publisher.outbox.count, 0);
	free(seen);
	publisher_close(&publisher);
	test_broker_close(test);
}

/* The child publishes without a pause; each state read meanwhile is one that the list had. */
TEST(test_states_are_whole_while_publishers_write)
{
	struct test_broker *test;
	pid_t child;

	skip_without_redis();
	test = test_broker_open();
	test_broker_init(test, 10000);
	child = fork();
	if (!child) {
		struct publisher publisher = open_publisher(test);

		/* Rule N is there with N + 1, or neither: so the number of rules is always even. */
		for (unsigned int round = 0; round < 60; round++) {
			for (unsigned int i = 0; i < 200; i++) {
				const unsigned int number = (round * 200 + i) * 2;

				put(&publisher, number, true);
				put(&publisher, number + 1, true);
				if (round) {
					put(&publisher, number - 400, false);
					put(&publisher, number - 399, false);
				}
			}
			flush(&publisher);
		}
		_exit(0);
	}
	for (int i = 0; i < 30; i++) {
		struct seen *seen = read_state(test);

		for (unsigned int number = 0; number < NUMBERS; number += 2)
			if (seen->has[number] != seen->has[number + 1])
				fail_msg("read %d: rule %u is there without the other", i, number);
		free(seen);
		usleep(1000);
	}
	waitpid(child, NULL, 0);
	test_broker_close(test);
}

TEST(test_a_resend_changes_nothing)
{
	struct publisher publisher;
	struct test_broker *test;
	struct reason reason;
	struct seen *seen;

	skip_without_redis();
	test = test_broker_open();
	test_broker_init(test, 10000);
	publisher = open_publisher(test);
	put(&publisher, 1, true);
	flush(&publisher);
	/* As if the process had been killed between the answer and its note: the outbox has the entry again. */
	assert_int_equal(outbox_add(&publisher.outbox, "- src 10.0.0.1", 14, NULL, &reason), 0);
	test_broker_do(test, "FCALL xc_publish 2 xc:f:L:bad:meta xc:f:L:bad:log %s 2 '' '- src 10.0.0.1'",
		       publisher.outbox.publisher);
	test_broker_do(test, "FCALL xc_publish 2 xc:f:L:bad:meta xc:f:L:bad:log other 1 '' '+ 0 src 10.0.0.1'");
	publisher_close(&publisher);
	publisher = open_publisher(test);
	assert_int_equal(publisher.resent, 1);
	assert_int_equal(publisher.outbox.count, 0);
	seen = read_state(test);
	assert_true(seen->has[1]); /* of the other publisher, which was later */
	free(seen);
	publisher_close(&publisher);
	test_broker_close(test);
}

TEST(test_a_change_for_another_last_entry_is_refused)
{
	const struct rule rule = rule_number(3);
	struct publisher publisher;
	struct test_broker *test;
	struct reason reason;
	struct seen *seen;

	skip_without_redis();
	test = test_broker_open();
	test_broker_init(test, 10000);
	publisher = open_publisher(test);
	put(&publisher, 1, true);
	flush(&publisher);
	publisher.has_expected = true;
	publisher.expected = publisher.last;
	put(&publisher, 2, true);
	flush(&publisher);
	publisher.has_expected = true; /* the position is old now */
	assert_int_equal(publisher_put(&publisher, &rule, true, &reason), 0);
	assert_int_equal(publisher_flush(&publisher, &reason), -ESTALE);
	assert_int_equal(publisher.outbox.count, 0);
	seen = read_state(test);
	assert_true(seen->has[2] && !seen->has[3]);
	free(seen);
	publisher_close(&publisher);
	test_broker_close(test);
}

/* kill -9 of the broker, which has an append-only file. The publisher connects again by itself. */
TEST(test_a_killed_broker_loses_nothing)
{
	struct fleet_position before;
	struct publisher publisher;
	struct test_broker *test;
	struct seen *seen;
	pid_t child;

	skip_without_redis();
	test = test_broker_open();
	test_broker_init(test, 10000);
	publisher = open_publisher(test);
	for (unsigned int i = 0; i < 100; i++) {
		put(&publisher, i, true);
		flush(&publisher);
	}
	before = publisher.last;
	test_broker_stop(test);
	child = fork();
	if (!child) {
		sleep(1);
		test_broker_exec(test);
	}
	put(&publisher, 100, true);
	flush(&publisher);
	test->pid = child;
	assert_true(publisher.last.epoch > before.epoch);
	assert_int_equal(publisher.last.seq, 1);
	seen = read_state(test);
	assert_int_equal(seen->count, 101);
	free(seen);
	publisher_close(&publisher);
	test_broker_close(test);
}

TEST(test_what_the_broker_refuses_leaves_the_outbox)
{
	struct publisher publisher;
	struct test_broker *test;
	const struct rule rule = rule_number(1);
	struct reason reason;

	skip_without_redis();
	test = test_broker_open();
	publisher = open_publisher(test);
	assert_int_equal(publisher_put(&publisher, &rule, true, &reason), 0);
	assert_int_equal(publisher_flush(&publisher, &reason), -EREMOTEIO); /* no function there */
	assert_int_equal(publisher.outbox.count, 0);
	test_broker_init(test, 10000);
	put(&publisher, 2, true);
	flush(&publisher);
	assert_int_equal(publisher.rules, 1);
	publisher_close(&publisher);
	test_broker_close(test);
}

TEST_MAIN(NULL, NULL)
