// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which log entries a follower may apply, and which lines are rules. */

#include "unit/test.h"
#include "fleet/fleet.h"

#define NONE UINT64_MAX /* the entry has no base */

TEST(test_only_the_next_entry_is_next)
{
	static const struct {
		struct fleet_position at, entry, base;
		enum log_step step;
	} rows[] = {
		{ { 7, 3 }, { 7, 4 }, { NONE, 0 }, LOG_NEXT },  { { 7, 3 }, { 7, 5 }, { NONE, 0 }, LOG_GAP },
		{ { 7, 3 }, { 9, 0 }, { 7, 3 }, LOG_NEXT },     { { 7, 3 }, { 9, 0 }, { 7, 2 }, LOG_DIVERGED },
		{ { 7, 0 }, { 9, 0 }, { 5, 8 }, LOG_DIVERGED }, { { 7, 3 }, { 9, 0 }, { 7, 4 }, LOG_GAP },
		{ { 7, 3 }, { 9, 0 }, { 8, 0 }, LOG_GAP },      { { 7, 3 }, { 9, 1 }, { NONE, 0 }, LOG_GAP },
		{ { 7, 3 }, { 9, 1 }, { 7, 3 }, LOG_GAP },      { { 7, 3 }, { 9, 0 }, { NONE, 0 }, LOG_GAP },
		{ { 0, 0 }, { 7, 0 }, { 0, 0 }, LOG_NEXT },     { { 0, 0 }, { 7, 1 }, { NONE, 0 }, LOG_GAP },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct fleet_position *base = rows[i].base.epoch == NONE ? NULL : &rows[i].base;
		const enum log_step step = log_step(rows[i].at, rows[i].entry, base);

		if (step != rows[i].step)
			fail_msg("row %zu: expected %d, seen %d", i, rows[i].step, step);
	}
}

TEST(test_the_end_of_a_log_tells_what_the_broker_has_lost)
{
	static const struct {
		struct fleet_position at, last;
		bool is_master;
		enum log_head head;
	} rows[] = {
		{ { 7, 3 }, { 7, 3 }, true, LOG_LEVEL },    { { 7, 3 }, { 7, 9 }, true, LOG_BEHIND },
		{ { 7, 3 }, { 9, 0 }, false, LOG_BEHIND },  { { 7, 3 }, { 7, 2 }, false, LOG_LAGGING },
		{ { 7, 3 }, { 7, 2 }, true, LOG_RESTORED }, { { 7, 3 }, { 6, 9 }, false, LOG_RESTORED },
		{ { 7, 3 }, { 6, 9 }, true, LOG_RESTORED }, { { 7, 3 }, { 0, 0 }, true, LOG_WIPED },
		{ { 0, 0 }, { 0, 0 }, true, LOG_LEVEL },    { { 0, 0 }, { 7, 0 }, true, LOG_BEHIND },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const enum log_head head = log_head(rows[i].at, rows[i].last, rows[i].is_master);

		if (head != rows[i].head)
			fail_msg("row %zu: expected %d, seen %d", i, rows[i].head, head);
	}
}

TEST(test_a_line_is_what_was_written)
{
	char line[LOG_LINE_BYTES], text[RULE_TEXT_BYTES];
	struct rule rule, read;
	struct reason reason;
	bool is_added;

	assert_int_equal(rule_parse("192.0.2.1 timeout 1h comment \"a b\"", &rule, &reason), 0);
	assert_string_equal(log_line_format(&rule, true, 5000, line), "+ 3605000 src 192.0.2.1 comment \"a b\"");
	assert_int_equal(log_line_parse(line, 5000, &read, &is_added, &reason), 0);
	assert_true(is_added);
	assert_string_equal(rule_format(&read, text), "src 192.0.2.1 timeout 1h comment \"a b\"");
	assert_int_equal(log_line_parse(line, 3605000, &read, &is_added, &reason), 0);
	assert_true(read.timeout_ms < 0); /* it has ended */
	assert_string_equal(log_line_format(&rule, false, 5000, line), "- src 192.0.2.1 comment \"a b\"");
	assert_int_equal(log_line_parse("- src 192.0.2.1", 0, &read, &is_added, &reason), 0);
	assert_false(is_added);
}

TEST(test_other_lines_are_refused)
{
	static const struct {
		const char *line;
		int error;
	} rows[] = {
		{ "", -EOPNOTSUPP },
		{ "* 0 src 192.0.2.1", -EOPNOTSUPP },
		{ "+src 192.0.2.1", -EOPNOTSUPP },
		{ "+ src 192.0.2.1", -EINVAL },
		{ "+ 0", -EINVAL },
		{ "+ 0 ", -EINVAL },
		{ "+ -1 src 192.0.2.1", -EINVAL },
		{ "+ 9999999999999999999 src 192.0.2.1", -EINVAL },
		{ "+ 0 src 192.0.2.1 timeout 1h", -EINVAL },
		{ "+ 0 src 192.0.2.256", -EINVAL },
		{ "+ 0 src 192.0.2.1 colour red", -EINVAL },
		{ "- ", -EINVAL },
	};
	struct reason reason;
	struct rule rule;
	bool is_added;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const int error = log_line_parse(rows[i].line, 1000, &rule, &is_added, &reason);

		if (error != rows[i].error)
			fail_msg("'%s': expected %d, seen %d", rows[i].line, rows[i].error, error);
	}
}

TEST(test_a_position_is_its_text)
{
	char text[FLEET_POSITION_BYTES];
	struct fleet_position at;

	assert_int_equal(fleet_position_parse("1795399214330-12", &at), 0);
	assert_string_equal(fleet_position_format(at, text), "1795399214330-12");
	assert_int_equal(fleet_position_parse("18446744073709551615-18446744073709551615", &at), 0);
	assert_string_equal(fleet_position_format(at, text), "18446744073709551615-18446744073709551615");
	for (const char *const *bad = (const char *const[]){ "", "-", "1", "1-", "-1", "1-1 ", "1--1", "+1-1", "a-1",
							     "18446744073709551616-0", NULL };
	     *bad; bad++)
		assert_int_equal(fleet_position_parse(*bad, &at), -EINVAL);
}

TEST_MAIN(NULL, NULL)
