// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The functions in the broker: whatever the keys of a list hold, its state and its log change together or not at all. */
#include "fleet/fleet.h"
#include "unit/broker_fixture.h"

#define PUBLISH "FCALL xc_publish 2 xc:f:L:bad:meta xc:f:L:bad:log me "

/* What redis-cli prints for these words; the answer of an earlier call is overwritten. */
__attribute__((format(printf, 2, 3))) static const char *ask(const struct test_broker *broker, const char *format, ...)
{
	static char answer[64 * 1024];
	char words[4096], command[4400];
	va_list arguments;
	size_t count;
	FILE *output;

	va_start(arguments, format);
	vsnprintf(words, sizeof(words), format, arguments);
	va_end(arguments);
	snprintf(command, sizeof(command), "redis-cli -s '%s' %s 2>&1", broker->socket, words);
	output = popen(command, "r");
	assert_non_null(output);
	count = fread(answer, 1, sizeof(answer) - 1, output);
	answer[count] = '\0';
	pclose(output);
	return answer;
}

static void assert_has(const char *answer, const char *expected)
{
	if (!strstr(answer, expected))
		fail_msg("'%s' is not in '%s'", expected, answer);
}

/* All that a host can read of the list. Valid until the next call but one. */
static const char *state_and_log(const struct test_broker *broker)
{
	static const char *const commands[] = { "HGETALL xc:f:L:bad:b:0",
						"HMGET xc:f:L:bad:meta epoch seq rules buckets",
						"XRANGE xc:f:L:bad:log - +" };
	static char text[2][1 << 16];
	static unsigned int turn;
	char *all = text[turn++ % 2];
	size_t used = 0;

	for (size_t i = 0; i < COUNT(commands); i++) {
		used += snprintf(all + used, sizeof(text[0]) - used, "%s", ask(broker, commands[i]));
		assert_true(used < sizeof(text[0]));
	}
	return all;
}

static struct test_broker *open_list(void)
{
	struct test_broker *broker = test_broker_open();

	test_broker_init(broker, 10000);
	assert_has(ask(broker, PUBLISH "1 '' '+ 0 src 192.0.2.1' '+ 0 src 192.0.2.2 comment \"a\"'"), "done");
	return broker;
}

TEST(test_what_changes_nothing_is_in_no_entry)
{
	struct test_broker *broker;

	skip_without_redis();
	broker = open_list();
	assert_has(ask(broker, PUBLISH "2 '' '+ 0 src 192.0.2.1' '- src 192.0.2.9'"), "done");
	assert_string_equal(ask(broker, "XLEN xc:f:L:bad:log"), "2\n");
	/* Each line is judged by what those before it make of its rule. */
	assert_has(ask(broker, PUBLISH "3 '' '- src 192.0.2.1' '+ 0 src 192.0.2.1' '+ 9999999999999 src 192.0.2.1' "
				       "'+ 9999999999999 src 192.0.2.1' '- src 192.0.2.2' '- src 192.0.2.2'"),
		   "done");
	assert_has(ask(broker, "XREVRANGE xc:f:L:bad:log + - COUNT 1"),
		   "\n- src 192.0.2.1\n+ 0 src 192.0.2.1\n+ 9999999999999 src 192.0.2.1\n- src 192.0.2.2\n");
	assert_string_equal(ask(broker, "HGETALL xc:f:L:bad:b:0"), "src 192.0.2.1\n9999999999999\n");
	assert_string_equal(ask(broker, "HGET xc:f:L:bad:meta rules"), "1\n");
	assert_string_equal(ask(broker, "ZCARD xc:f:L:bad:ends"), "1\n");
	assert_has(ask(broker, PUBLISH "4 '' '+ 0 src 192.0.2.1' '+ 1000 src 192.0.2.3'"), "done");
	/* What has ended is purged, without an entry. */
	assert_has(ask(broker, PUBLISH "5 '' '- src 192.0.2.9'"), "done");
	assert_string_equal(ask(broker, "ZCARD xc:f:L:bad:ends"), "0\n");
	assert_string_equal(ask(broker, "HGETALL xc:f:L:bad:b:0"), "src 192.0.2.1\n0\n");
	test_broker_close(broker);
}

/* Of rules with an end, the state alone says when; what a publisher wrote into "ends" neither deletes nor stays. */
TEST(test_ends_follow_the_state)
{
	struct test_broker *broker;

	skip_without_redis();
	broker = open_list();
	assert_has(ask(broker, PUBLISH "2 '' '+ 01000 src 192.0.2.1'"), "XCLINE");
	ask(broker, "HSET xc:f:L:bad:b:0 'src 192.0.2.1' 01000");
	ask(broker, "ZADD xc:f:L:bad:ends 1000 'src 192.0.2.1'");
	assert_has(ask(broker, PUBLISH "3 '' '+ 0 src 192.0.2.1' '+ 1000 src 192.0.2.3'"), "done");
	ask(broker, "ZADD xc:f:L:bad:ends -1 'src 192.0.2.1' 5 'src 192.0.2.2'");
	ask(broker, "EVAL 'for i = 1, 400 do redis.call(\"ZADD\", KEYS[1], i, \"orphan\" .. i) end' 1 xc:f:L:bad:ends");
	for (int i = 4; i < 8; i++)
		assert_has(ask(broker, PUBLISH "%d '' '- src 192.0.2.9'", i), "done");
	assert_string_equal(ask(broker, "ZCARD xc:f:L:bad:ends"), "0\n");
	assert_string_equal(ask(broker, "HGETALL xc:f:L:bad:b:0"),
			    "src 192.0.2.1\n0\nsrc 192.0.2.2\n0 comment \"a\"\n");
	assert_string_equal(ask(broker, "HGET xc:f:L:bad:meta rules"), "2\n");
	test_broker_close(broker);
}

TEST(test_a_line_has_a_bound)
{
	struct test_broker *broker;
	const char *before, *after;
	char rule[LOG_LINE_BYTES];
	const size_t most = LOG_LINE_BYTES - 1 - strlen("+ 0 ");

	skip_without_redis();
	broker = open_list();
	memset(rule, 'x', sizeof(rule));
	rule[most + 1] = '\0';
	before = state_and_log(broker);
	assert_has(ask(broker, PUBLISH "2 '' '+ 0 src 192.0.2.3' '+ 0 %s'", rule), "XCLINE a line has at most");
	after = state_and_log(broker);
	assert_string_equal(before, after);
	rule[most] = '\0';
	assert_has(ask(broker, PUBLISH "3 '' '+ 0 %s'", rule), "done");
	test_broker_close(broker);
}

/* A rule has one rate, whatever it was published with; the same flows without a rate are another rule. */
TEST(test_a_rate_is_no_part_of_the_name)
{
	struct test_broker *broker;

	skip_without_redis();
	broker = open_list();
	assert_has(ask(broker, PUBLISH "2 '' '- src 192.0.2.2' '+ 0 src 192.0.2.1 rate 9/s comment \" rate 1/s\"'"),
		   "done");
	assert_has(ask(broker, PUBLISH "3 '' '+ 0 src 192.0.2.1 rate 8/s action monitor'"), "done");
	assert_has(ask(broker, PUBLISH "4 '' '+ 0 src 192.0.2.1 rate 8/s' '+ 0 src 192.0.2.1 rate 8/s'"), "done");
	assert_string_equal(ask(broker, "HGETALL xc:f:L:bad:b:0"),
			    "src 192.0.2.1\n0\nsrc 192.0.2.1 rate\n0 8/s\nsrc 192.0.2.1 action monitor rate\n0 8/s\n");
	assert_string_equal(ask(broker, "HGET xc:f:L:bad:meta rules"), "3\n");
	assert_has(ask(broker, "XREVRANGE xc:f:L:bad:log + - COUNT 1"), "\nrules\n+ 0 src 192.0.2.1 rate 8/s\n");
	assert_has(ask(broker, PUBLISH "5 '' '- src 192.0.2.1 rate 7/s'"), "done");
	assert_string_equal(ask(broker, "HGETALL xc:f:L:bad:b:0"),
			    "src 192.0.2.1\n0\nsrc 192.0.2.1 action monitor rate\n0 8/s\n");
	test_broker_close(broker);
}

/* The log cannot take the entry, or the meta is not that of a list: nothing changes, and the publisher is told. */
TEST(test_an_error_changes_nothing)
{
	static const struct {
		const char *sabotage, *says;
	} rows[] = {
		{ "XADD xc:f:L:bad:log 18446744073709551615-1 base junk", "XCLOG" },
		{ "HSET xc:f:L:bad:meta buckets 1e18", "XCLOST" },
		{ "HSET xc:f:L:bad:meta buckets 0", "XCLOST" },
		{ "HSET xc:f:L:bad:meta buckets nan", "XCLOST" },
		{ "HSET xc:f:L:bad:meta rules -1", "XCLOST" },
		{ "HSET xc:f:L:bad:meta epoch inf", "XCLOST" },
		{ "HSET xc:f:L:bad:meta seq junk", "XCLOST" },
		{ "SET xc:f:L:bad:b:0 junk", "WRONGTYPE" },
		{ "SET xc:f:L:bad:log junk", "WRONGTYPE" },
		{ "SET xc:f:L:bad:ends junk", "WRONGTYPE" },
		{ "SET xc:f:L:bad:meta junk", "WRONGTYPE" },
	};

	skip_without_redis();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct test_broker *broker = open_list();
		const char *before, *after;

		ask(broker, "%s", rows[i].sabotage);
		before = state_and_log(broker);
		assert_has(ask(broker, PUBLISH "2 '' '+ 0 src 192.0.2.3' '- src 192.0.2.1'"), rows[i].says);
		after = state_and_log(broker);
		assert_string_equal(before, after);
		test_broker_close(broker);
	}
}

/* An entry that somebody wrote by hand: the next one begins a new epoch, so that hosts can go on. */
TEST(test_a_strange_entry_begins_an_epoch)
{
	static const char *const ids[] = { "'*'", "$(redis-cli -s %s HGET xc:f:L:bad:meta epoch)-99" };

	skip_without_redis();
	for (size_t i = 0; i < 2; i++) {
		struct test_broker *broker = open_list();
		char id[200], *last;

		snprintf(id, sizeof(id), ids[i], broker->socket);
		last = strdup(ask(broker, "HMGET xc:f:L:bad:meta epoch seq | paste -sd-"));
		ask(broker, "XADD xc:f:L:bad:log %s base junk", id);
		assert_has(ask(broker, PUBLISH "2 '' '+ 0 src 192.0.2.3'"), "done");
		assert_string_equal(ask(broker, "HGET xc:f:L:bad:meta seq"), "1\n");
		assert_has(ask(broker, "XREVRANGE xc:f:L:bad:log + - COUNT 1"), "-1\nrules\n+ 0 src 192.0.2.3\n");
		assert_has(ask(broker, "XREVRANGE xc:f:L:bad:log + - COUNT 2"), "-0\nbase\n");
		assert_has(ask(broker, "XREVRANGE xc:f:L:bad:log + - COUNT 2"), last);
		free(last);
		test_broker_close(broker);
	}
}

TEST_MAIN(NULL, NULL)
