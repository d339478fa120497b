// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a reader tells of a log that goes on, has a gap, has forked, is older or is gone; by a real redis-server. */
#include "unit/broker_fixture.h"

#include <sys/socket.h>

#include "fleet/follow_internal.h"

#define EPOCH "1000"
#define TELLS 40 /* messages, until the awaited one must have come */

/* The test is the applier of a reader in a process of its own. */
struct reading {
	struct test_broker *broker;
	struct log_reader_start start;
	struct follow_message message; /* the last one */
	char text[FOLLOW_BYTES_MAX + 1];
	pid_t pid;
	int fd;
	__s64 refused; /* the next answer */
};

static void start_reader(struct reading *reading)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	reading->pid = fork();
	if (!reading->pid) {
		close(fds[0]);
		log_reader_run(&reading->start, fds[1]);
		_exit(0);
	}
	close(fds[1]);
	reading->fd = fds[0];
}

static void stop_reader(struct reading *reading)
{
	close(reading->fd);
	kill(reading->pid, SIGKILL);
	waitpid(reading->pid, NULL, 0);
}


static struct reading *open_reading(const char *at)
{
	struct reading *reading = calloc(1, sizeof(*reading));

	reading->broker = test_broker_open();
	test_broker_init(reading->broker, 10000);
	reading->start = (struct log_reader_start){
		.options = &reading->broker->options,
		.fleet = "f",
		.lists = { { .name = "bad" } },
		.count = 1,
		.is_once = true, /* no pauses */
	};
	assert_int_equal(fleet_position_parse(at, &reading->start.lists[0].at), 0);
	return reading;
}

static void close_reading(struct reading *reading)
{
	stop_reader(reading);
	test_broker_close(reading->broker);
	free(reading);
}

/* Answers until a message of this kind comes; with `number`, of this number. */
static void await(struct reading *reading, enum follow_kind kind, __s64 number)
{
	const struct follow_message done = { .kind = FOLLOW_DONE, .number = reading->refused };

	for (int i = 0; i < TELLS * 10; i++) {
		assert_int_equal(follow_receive(reading->fd, &reading->message, reading->text, UNPRIVILEGED_NO_DEADLINE), 0);
		if (reading->message.kind == FOLLOW_FLUSH)
			assert_int_equal(unprivileged_send(reading->fd, &done, sizeof(done), "", 0, UNPRIVILEGED_NO_DEADLINE), 0);
		if (reading->message.kind == kind && (number < 0 || reading->message.number == number))
			return;
	}
	fail_msg("message %d did not come", kind);
}

static void assert_at(const struct reading *reading, const char *expected)
{
	char text[FLEET_POSITION_BYTES];

	assert_string_equal(fleet_position_format(reading->message.at, text), expected);
}

/* Sets the list's log and meta by hand, as a broker with this history has them. */
static void add_entry(struct reading *reading, const char *id, const char *field, const char *value)
{
	const char *dash = strchr(id, '-');

	test_broker_do(reading->broker, "XADD xc:f:L:bad:log %s %s '%s'", id, field, value);
	test_broker_do(reading->broker, "HSET xc:f:L:bad:meta epoch %.*s seq %s buckets 1 rules 1", (int)(dash - id),
		       id, dash + 1);
}

TEST(test_a_new_host_reads_the_state_then_the_log)
{
	struct reading *reading;

	skip_without_redis();
	reading = open_reading("0-0");
	add_entry(reading, EPOCH "-0", "base", "0-0");
	add_entry(reading, EPOCH "-1", "rules", "+ 0 src 192.0.2.1");
	test_broker_do(reading->broker, "HSET xc:f:L:bad:b:0 'src 192.0.2.1' '0 comment \"a b\"'");
	start_reader(reading);
	await(reading, FOLLOW_HELLO, FLEET_FORMAT);
	await(reading, FOLLOW_PANIC, 0);
	await(reading, FOLLOW_SNAPSHOT, -1);
	assert_string_equal(reading->text, "new");
	await(reading, FOLLOW_LINES, -1);
	assert_string_equal(reading->text, "+ 0 src 192.0.2.1 comment \"a b\"\n");
	await(reading, FOLLOW_END, -1);
	assert_at(reading, EPOCH "-1");
	await(reading, FOLLOW_STATE, FOLLOW_LEVEL);
	add_entry(reading, EPOCH "-2", "rules", "- src 192.0.2.1");
	await(reading, FOLLOW_ENTRY, -1);
	assert_at(reading, EPOCH "-2");
	assert_string_equal(reading->text, "- src 192.0.2.1");
	/* A new epoch that goes on from here. */
	add_entry(reading, "2000-0", "base", EPOCH "-2");
	await(reading, FOLLOW_ENTRY, -1);
	assert_at(reading, "2000-0");
	test_broker_do(reading->broker, "FCALL xc_panic 2 xc:f:meta xc:f:ctl on");
	await(reading, FOLLOW_PANIC, 1);
	close_reading(reading);
}

TEST(test_a_list_that_begins_later_is_read_from_its_log)
{
	struct reading *reading;

	skip_without_redis();
	reading = open_reading("0-0");
	start_reader(reading);
	await(reading, FOLLOW_STATE, FOLLOW_LEVEL);
	add_entry(reading, EPOCH "-0", "base", "0-0");
	await(reading, FOLLOW_FLUSH, -1);
	await(reading, FOLLOW_FLUSH, -1);
	stop_reader(reading);
	reading->pid = 0;
	test_broker_close(reading->broker);
	free(reading);
}

/* The host is at 1000-5. The log is what it is, and so is what the reader does. */
static void assert_resync(const char *const *log, const char *why, const char *now_at)
{
	struct reading *reading = open_reading(EPOCH "-5");

	for (; *log; log += 3)
		add_entry(reading, log[0], log[1], log[2]);
	start_reader(reading);
	await(reading, FOLLOW_SNAPSHOT, -1);
	assert_string_equal(reading->text, why);
	await(reading, FOLLOW_END, -1);
	assert_at(reading, now_at);
	await(reading, FOLLOW_STATE, FOLLOW_LEVEL);
	close_reading(reading);
}

TEST(test_missing_entries_are_a_gap)
{
	skip_without_redis();
	assert_resync((const char *const[]){ EPOCH "-8", "rules", "- a", EPOCH "-9", "rules", "- a", NULL }, "gap",
		      EPOCH "-9");
	assert_resync((const char *const[]){ "2000-0", "base", EPOCH "-7", NULL }, "gap", "2000-0");
}

TEST(test_a_lost_tail_is_diverged)
{
	skip_without_redis();
	assert_resync((const char *const[]){ EPOCH "-4", "rules", "- a", "2000-0", "base", EPOCH "-4", NULL },
		      "diverged", "2000-0");
}

TEST(test_an_older_state_is_restored)
{
	skip_without_redis();
	assert_resync((const char *const[]){ "900-0", "base", "0-0", NULL }, "restored", "900-0");
	assert_resync((const char *const[]){ EPOCH "-4", "rules", "- a", NULL }, "restored", EPOCH "-4");
}

TEST(test_an_emptied_log_is_a_gap)
{
	struct reading *reading;

	skip_without_redis();
	reading = open_reading(EPOCH "-5");
	add_entry(reading, EPOCH "-9", "rules", "- a");
	test_broker_do(reading->broker, "DEL xc:f:L:bad:log");
	start_reader(reading);
	await(reading, FOLLOW_SNAPSHOT, -1);
	assert_string_equal(reading->text, "gap");
	/* Its buckets are read, and the log is needed only if it has gone on meanwhile. */
	await(reading, FOLLOW_END, -1);
	assert_at(reading, EPOCH "-9");
	close_reading(reading);
}

TEST(test_a_list_that_is_gone_stays_as_it_is)
{
	struct reading *reading;

	skip_without_redis();
	reading = open_reading(EPOCH "-5");
	start_reader(reading);
	for (int i = 0; i < 5; i++) {
		await(reading, FOLLOW_STATE, -1);
		assert_int_equal(reading->message.number, FOLLOW_WIPED);
	}
	stop_reader(reading);
	reading->start.is_accepted = true;
	start_reader(reading);
	await(reading, FOLLOW_SNAPSHOT, -1);
	await(reading, FOLLOW_END, -1);
	assert_at(reading, "0-0");
	close_reading(reading);
}

/* What the applier could not apply is sent again. */
TEST(test_what_is_not_applied_is_read_again)
{
	struct reading *reading;

	skip_without_redis();
	reading = open_reading(EPOCH "-5");
	add_entry(reading, EPOCH "-5", "rules", "- a");
	start_reader(reading);
	await(reading, FOLLOW_STATE, FOLLOW_LEVEL);
	add_entry(reading, EPOCH "-6", "rules", "- b");
	await(reading, FOLLOW_ENTRY, -1);
	reading->refused = 1;
	await(reading, FOLLOW_FLUSH, -1);
	reading->refused = 0;
	await(reading, FOLLOW_ENTRY, -1);
	assert_string_equal(reading->text, "- b");
	close_reading(reading);
}

/* Waits until the whole list is sent, and does not take it. Returns how long that was, in ms. */
static __s64 refuse_list(struct reading *reading)
{
	const __s64 since_ms = fleet_now_ms();

	await(reading, FOLLOW_SNAPSHOT, -1);
	reading->refused = 1;
	await(reading, FOLLOW_FLUSH, -1);
	reading->refused = 0;
	return fleet_now_ms() - since_ms;
}

TEST(test_a_refused_list_is_read_more_and_more_rarely)
{
	struct reading *reading;

	skip_without_redis();
	reading = open_reading("0-0");
	add_entry(reading, EPOCH "-1", "rules", "+ 0 src 192.0.2.1");
	start_reader(reading);
	for (int i = 0; i < 4; i++)
		refuse_list(reading);
	assert_true(refuse_list(reading) >= 400);
	/* It has changed at the broker. */
	add_entry(reading, EPOCH "-2", "rules", "+ 0 src 192.0.2.2");
	assert_true(refuse_list(reading) < 800);
	await(reading, FOLLOW_END, -1);
	await(reading, FOLLOW_STATE, FOLLOW_LEVEL);
	close_reading(reading);
}

/* ---- one bad list ---- */

/* A second list, which nobody sabotages. */
static struct reading *open_two_lists(void)
{
	struct reading *reading = open_reading(EPOCH "-1");

	strcpy(reading->start.lists[1].name, "good");
	reading->start.count = 2;
	reading->start.lists[1].at = reading->start.lists[0].at;
	reading->start.is_once = false; /* a list that pauses, pauses for seconds */
	add_entry(reading, EPOCH "-1", "rules", "- a");
	test_broker_do(reading->broker, "XADD xc:f:L:good:log " EPOCH "-1 rules '- a'");
	test_broker_do(reading->broker, "HSET xc:f:L:good:meta epoch " EPOCH " seq 1 buckets 1 rules 1");
	return reading;
}

/* Awaits an entry of the good list, and then that `state` was told about the other one, in any order. */
static bool good_goes_on(struct reading *reading, enum follow_state state, const char *why)
{
	const struct follow_message done = { .kind = FOLLOW_DONE };
	bool has_entry = false, has_state = false;

	test_broker_do(reading->broker, "XADD xc:f:L:good:log " EPOCH "-2 rules '- b'");
	test_broker_do(reading->broker, "HSET xc:f:L:good:meta seq 2");
	for (int i = 0; i < TELLS && !(has_entry && has_state); i++) {
		assert_int_equal(follow_receive(reading->fd, &reading->message, reading->text, UNPRIVILEGED_NO_DEADLINE), 0);
		if (reading->message.kind == FOLLOW_FLUSH)
			assert_int_equal(unprivileged_send(reading->fd, &done, sizeof(done), "", 0, UNPRIVILEGED_NO_DEADLINE), 0);
		has_entry |= reading->message.kind == FOLLOW_ENTRY && reading->message.list == 1;
		if (reading->message.kind == FOLLOW_STATE && reading->message.list == 0 &&
		    reading->message.number == state && (!*why || strstr(reading->text, why)))
			has_state = true;
	}
	return has_entry && has_state;
}

TEST(test_an_error_of_one_list_is_its_own)
{
	static const struct {
		bool is_new; /* the host has nothing of it yet, and must read the whole list */
		const char *sabotage;
		enum follow_state state;
		const char *why;
	} rows[] = {
		{ false, "XADD xc:f:L:bad:log " EPOCH "-2 base junk", FOLLOW_GAP,
		  EPOCH "-2 of its log is not that of a fleet" },
		{ false, "XADD xc:f:L:bad:log 18446744073709551615-18446744073709551615 x y", FOLLOW_GAP, "" },
		{ false,
		  "EVAL \"redis.call('XADD', KEYS[1], '" EPOCH "-2', 'rules', string.rep('x', 140000))\" 1 "
		  "xc:f:L:bad:log",
		  FOLLOW_GAP, "" },
		{ false, "SET xc:f:L:bad:log x", FOLLOW_BROKEN, "WRONGTYPE" },
		{ false, "SET xc:f:L:bad:meta x", FOLLOW_BROKEN, "WRONGTYPE" },
		{ false, "HSET xc:f:L:bad:meta buckets 1000000000000000000", FOLLOW_BROKEN,
		  "numbers that no list has" },
		{ false, "HSET xc:f:L:bad:meta buckets 9000000", FOLLOW_BROKEN, "numbers that no list has" },
		{ false, "HSET xc:f:L:bad:meta epoch -1", FOLLOW_BROKEN, "numbers that no list has" },
		{ false, "HSET xc:f:L:bad:meta seq 1e3", FOLLOW_BROKEN, "numbers that no list has" },
		{ false, "HSET xc:f:L:bad:meta rules ''", FOLLOW_BROKEN, "numbers that no list has" },
		{ true, "SET xc:f:L:bad:b:0 x", FOLLOW_BROKEN, "WRONGTYPE" },
		{ true, "HSET xc:f:L:bad:meta buckets 200", FOLLOW_LEVEL, "" },
		{ true, "HSET xc:f:L:bad:meta buckets 0", FOLLOW_LEVEL, "" },
		/* Longer than the reader takes: the connection is lost, and made again. */
		{ false,
		  "EVAL \"for i = 1, 5 do redis.call('XADD', KEYS[1], '" EPOCH "-' .. (1 + i), 'rules', "
		  "string.rep('x', 5000000)) end\" 1 xc:f:L:bad:log",
		  FOLLOW_BROKEN, "16 MB" },
		{ true, "EVAL \"for i = 1, 70000 do redis.call('HSET', KEYS[1], i, 0) end\" 1 xc:f:L:bad:b:0",
		  FOLLOW_BROKEN, "elements" },
	};

	struct reading *reading[COUNT(rows)];

	skip_without_redis();
	for (size_t i = 0; i < COUNT(rows); i++) {
		reading[i] = open_two_lists();
		/* What comes right after a pause, comes soon. */
		reading[i]->start.is_once = rows[i].state == FOLLOW_LEVEL;
		if (rows[i].is_new)
			reading[i]->start.lists[0].at = (struct fleet_position){};
		if (strncmp(rows[i].sabotage, "HSET", 4) && !strncmp(strrchr(rows[i].sabotage, ':'), ":meta", 5))
			test_broker_do(reading[i]->broker, "DEL xc:f:L:bad:meta");
		test_broker_do(reading[i]->broker, "%s", rows[i].sabotage);
	}
	/* All wait at once: a list that is broken pauses. */
	for (size_t i = 0; i < COUNT(rows); i++)
		start_reader(reading[i]);
	for (size_t i = 0; i < COUNT(rows); i++) {
		if (!good_goes_on(reading[i], rows[i].state, rows[i].why))
			fail_msg("%s: the other list stops, or nothing was said", rows[i].sabotage);
		close_reading(reading[i]);
	}
}

/* Lines that are no rules come as such, whatever bucket and log have. */
TEST(test_a_line_that_is_too_long_is_one_bad_line)
{
	struct reading *reading;

	skip_without_redis();
	reading = open_reading("0-0");
	add_entry(reading, EPOCH "-1", "rules", "- a");
	test_broker_do(reading->broker, "HSET xc:f:L:bad:b:0 'src 192.0.2.1' 0 'a\nb' 0 'src 192.0.2.2' junk");
	test_broker_do(reading->broker,
		       "EVAL \"redis.call('HSET', KEYS[1], string.rep('x', 600), '0')\" 1 xc:f:L:bad:b:0");
	start_reader(reading);
	await(reading, FOLLOW_LINES, -1);
	assert_non_null(strstr(reading->text, "? a rule of 601 bytes\n"));
	assert_non_null(strstr(reading->text, "+ 0 src 192.0.2.1\n"));
	assert_non_null(strstr(reading->text, "? a rule of 4 bytes\n"));
	assert_non_null(strstr(reading->text, "+  src 192.0.2.2junk\n"));
	await(reading, FOLLOW_END, -1);
	close_reading(reading);
}

/* After an entry that is none, a new epoch goes on from what the host has. */
TEST(test_a_strange_entry_costs_one_reading)
{
	struct reading *reading;

	skip_without_redis();
	reading = open_reading(EPOCH "-5");
	add_entry(reading, EPOCH "-5", "rules", "- a");
	test_broker_do(reading->broker, "XADD xc:f:L:bad:log " EPOCH "-9 base junk");
	start_reader(reading);
	await(reading, FOLLOW_SNAPSHOT, -1);
	assert_string_equal(reading->text, "gap");
	await(reading, FOLLOW_STATE, FOLLOW_LEVEL);
	add_entry(reading, "2000-0", "base", EPOCH "-5");
	add_entry(reading, "2000-1", "rules", "- b");
	for (int i = 0; i < 2; i++) {
		await(reading, FOLLOW_ENTRY, -1);
		assert_at(reading, i ? "2000-1" : "2000-0");
	}
	close_reading(reading);
}

/* No entry can come after the largest id. When the log is made anew, the reader goes on with its first entry. */
TEST(test_an_id_at_the_end_of_all_ids)
{
	static const char *const ids[] = { "18446744073709551615-18446744073709551614", "18446744073709551615-0",
					   "8796093022207-7" };

	skip_without_redis();
	for (size_t i = 0; i < COUNT(ids); i++) {
		struct reading *reading = open_reading(EPOCH "-5");

		add_entry(reading, EPOCH "-5", "rules", "- a");
		test_broker_do(reading->broker, "XADD xc:f:L:bad:log %s base " EPOCH "-5", ids[i]);
		start_reader(reading);
		await(reading, FOLLOW_SNAPSHOT, -1);
		await(reading, FOLLOW_END, -1);
		assert_at(reading, EPOCH "-5");
		await(reading, FOLLOW_STATE, FOLLOW_LEVEL);
		test_broker_do(reading->broker, "DEL xc:f:L:bad:log");
		add_entry(reading, EPOCH "-6", "rules", "- b");
		await(reading, FOLLOW_ENTRY, -1);
		assert_at(reading, EPOCH "-6");
		add_entry(reading, EPOCH "-7", "rules", "- c");
		await(reading, FOLLOW_ENTRY, -1);
		assert_at(reading, EPOCH "-7");
		close_reading(reading);
	}
}

/* An endless state: the reader stops in time. */
TEST(test_more_rules_than_the_host_takes)
{
	struct reading *reading;
	size_t lines = 0;

	skip_without_redis();
	reading = open_reading("0-0");
	reading->broker->options.rules_max = 1000;
	add_entry(reading, EPOCH "-1", "rules", "- a");
	test_broker_do(reading->broker,
		       "EVAL \"for i = 0, 399999 do redis.call('HSET', KEYS[1] .. math.floor(i / 200), i, 0) end\" 1 "
		       "xc:f:L:bad:b:");
	test_broker_do(reading->broker, "HSET xc:f:L:bad:meta buckets 2000");
	start_reader(reading);
	await(reading, FOLLOW_SNAPSHOT, -1);
	do {
		const struct follow_message done = { .kind = FOLLOW_DONE };

		assert_int_equal(follow_receive(reading->fd, &reading->message, reading->text, UNPRIVILEGED_NO_DEADLINE), 0);
		assert_int_not_equal(reading->message.kind, FOLLOW_END);
		if (reading->message.kind == FOLLOW_FLUSH)
			assert_int_equal(unprivileged_send(reading->fd, &done, sizeof(done), "", 0, UNPRIVILEGED_NO_DEADLINE), 0);
		for (const char *end = reading->text;
		     reading->message.kind == FOLLOW_LINES && (end = strchr(end, '\n')); end++)
			lines++;
	} while (reading->message.kind != FOLLOW_STATE || reading->message.number != FOLLOW_BROKEN);
	assert_non_null(strstr(reading->text, "over 1000 rules, the max-rules of this host"));
	assert_true(lines <= 1000 + FOLLOW_LINES_MORE);
	close_reading(reading);
}

/* A broker that takes connections but cannot be followed is asked more and more rarely. */
TEST(test_connections_that_are_of_no_use_become_rare)
{
	struct reading *reading;
	__s64 since_ms;

	skip_without_redis();
	reading = open_reading("0-0");
	reading->start.is_once = false;
	test_broker_do(reading->broker, "DEL xc:f:ctl");
	test_broker_do(reading->broker, "SET xc:f:ctl x");
	start_reader(reading);
	since_ms = fleet_now_ms();
	for (int i = 0; i < 5; i++)
		await(reading, FOLLOW_LOST, -1);
	/* At least half of 100, 200, 400 and 800 ms. */
	assert_true(fleet_now_ms() - since_ms >= 750);
	close_reading(reading);
}

TEST(test_a_killed_broker_is_found_again)
{
	struct reading *reading;

	skip_without_redis();
	reading = open_reading("0-0");
	start_reader(reading);
	await(reading, FOLLOW_CONNECTED, -1);
	await(reading, FOLLOW_FLUSH, -1);
	test_broker_stop(reading->broker);
	await(reading, FOLLOW_LOST, -1);
	test_broker_start(reading->broker);
	await(reading, FOLLOW_CONNECTED, -1);
	await(reading, FOLLOW_HELLO, -1);
	close_reading(reading);
}

TEST_MAIN(NULL, NULL)
