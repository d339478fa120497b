// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What running filters have counted, by rule, list and outcome, also by the library; panic; and series of changes. */
#include "unit/test.h"

#ifndef __x86_64__
TEST(test_running)
{
	fprintf(stderr, "skipped: steps/changes.h needs x86-64\n");
	skip();
}

TEST_MAIN(NULL, NULL)
#else
#include "counters/counters.h"
#include "library/xdp-cuckoo.h"
#include "steps/changes.h"

#define UDP "proto udp dport 53 action pass"

static struct reason reason;
static struct session session;

static int put_count(const struct rule_key *key, bool is_shared, void *count)
{
	const struct kernel_filter *filter = &session.filters[0].kernel;
	struct filter_tables tables;
	__u32 slot;

	(void)is_shared;
	assert_int_equal(filter_open_tables(filter, &tables), 0);
	assert_true(filter_find(abi_active(filter->config), &tables, key, FILTER_ADDRESSES, &slot) ||
		    filter_find(abi_active(filter->config), &tables, key, FILTER_RECORDS, &slot));
	*filter_counter(&tables, slot) = *(const struct abi_counter *)count;
	filter_tables_close(&tables);
	return 0;
}

/* As if packets had met each key of the rule. */
static void meet(const char *text, __u64 packets, __u64 bytes)
{
	const struct rule rule = rule_of(text);
	struct abi_counter count = { packets, bytes };
	struct shape_list shapes;

	assert_int_equal(store_shapes(session.store, &shapes), 0);
	assert_int_equal(keys_each(&shapes, &rule, put_count, &count), 0);
}

static void count_is(const struct abi_counter *count, __u64 packets, __u64 bytes)
{
	assert_int_equal(count->packets, packets);
	assert_int_equal(count->bytes, bytes);
}

static int sum_up(const struct xdp_cuckoo_rule *rule, const struct xdp_cuckoo_matched *matched, void *sum)
{
	(void)rule;
	*(__u64 *)sum += matched->packets;
	return matched->packets == 12 ? 55 : 0;
}

static void ask_library(void)
{
	const struct abi_counter drops = { 3, 162 }, passes = { 9, 999 };
	struct xdp_cuckoo_rule rule;
	struct xdp_cuckoo_matched matched;
	struct xdp_cuckoo_count counts[OUTCOMES + 1];
	struct xdp_cuckoo_info info;
	struct xdp_cuckoo_filter *filter;
	size_t count, used;
	__u64 sum = 0;

	assert_int_equal(xdp_cuckoo_open(NAME, state_dir, XDP_CUCKOO_READ, &filter), 0);
	assert_int_equal(xdp_cuckoo_parse(NULL, UDP, &rule), 0);
	assert_int_equal(xdp_cuckoo_rule_counts(filter, &rule, &matched), 0);
	assert_true(matched.packets == 12 && matched.bytes == 788);
	assert_int_equal(xdp_cuckoo_parse(NULL, "10.77.0.129", &rule), 0); /* it has ended */
	assert_int_equal(xdp_cuckoo_rule_counts(filter, &rule, &matched), -ENOENT);
	assert_int_equal(xdp_cuckoo_each_counted(filter, "a", sum_up, &sum), 55);
	assert_in_range(sum, 12, 17);
	assert_int_equal(xdp_cuckoo_each_counted(filter, "none", sum_up, &sum), -ENOENT);
	/* Of each filter. */
	path_counters[OUTCOME_DROP_RULE * VERDICTS + VERDICT_DROP] = drops;
	path_counters[OUTCOME_NO_RULE * VERDICTS + VERDICT_PASS] = passes;
	assert_int_equal(xdp_cuckoo_counts(filter, counts, COUNT(counts), &count), 0);
	assert_int_equal(count, OUTCOMES + 1);
	assert_string_equal(counts[OUTCOME_DROP_RULE].outcome, "drop-rule");
	assert_true(counts[OUTCOME_DROP_RULE].dropped_packets == 6 && counts[OUTCOME_DROP_RULE].dropped_bytes == 324);
	assert_true(counts[OUTCOME_NO_RULE].passed_packets == 18 && counts[OUTCOME_NO_RULE].dropped_packets == 0);
	assert_true(counts[OUTCOMES].passed_bytes == 1998 && counts[OUTCOMES].dropped_packets == 6);
	assert_int_equal(xdp_cuckoo_get_info(filter, &info), 0);
	used = memory_path(0) ? path.config->used : 0;
	assert_true(info.rules == 4 && info.timed_rules == 1 && info.interfaces == 3 && info.used_slots > used &&
		    used);
	assert_true(info.slots > used && !info.is_panic && !info.is_monitor_only);
	xdp_cuckoo_close(filter);
}

TEST(test_counts)
{
	struct rule_counts counts = {};
	struct list_counts sums;
	unsigned int a;

	load(true, true, 0, 1, 2);
	plain_change(LINES("add 10.77.0.1", "list a", "add 10.77.0.1", "add 10.77.0.2", "add " UDP,
			   "add 10.77.0.129 timeout 1s"));
	load_second(); /* it does not count by rule */
	pass_time(4000);
	open_session(&session);
	meet("10.77.0.1", 3, 162);
	meet("10.77.0.2", 2, 108);
	meet("10.77.0.129", 9, 999);
	meet(UDP, 6, 394); /* of each family */
	assert_int_equal(change_find_list(&session, "a", &reason), 0);
	a = session.owner;
	assert_int_equal(rule_counts_open(&counts, NAME, &reason), 0);
	for (int counted = 1; counted >= 0; counted--) {
		assert_int_equal(list_counts_read(session.store, counted ? &counts : NULL, &sums), 0);
		assert_true(sums.of[0][RULE_DROP].rules == 1 && sums.of[0][RULE_DROP].only == 0);
		assert_true(sums.of[a][RULE_DROP].rules == 2 && sums.of[a][RULE_DROP].only == 1);
		assert_true(sums.of[a][RULE_PASS].rules == 1 && sums.of[a][RULE_PASS].only == 1);
		assert_int_equal(sums.of[0][RULE_DROP].hit + sums.of[a][RULE_DROP].hit, 3 * counted);
		count_is(&sums.of[0][RULE_DROP].count, 3 * counted, 162 * counted);
		count_is(&sums.of[a][RULE_DROP].count, 5 * counted, 270 * counted);
		count_is(&sums.of[a][RULE_PASS].count, 12 * counted, 788 * counted);
	}
	rule_counts_close(&counts);
	counts = (struct rule_counts){};
	assert_int_equal(rule_counts_open(&counts, "other", &reason), -ENOENT);
	rule_counts_close(&counts);
	session_close(&session);
	ask_library();
	counts = (struct rule_counts){};
	load(true, false, 0, 1, 1);
	assert_int_equal(rule_counts_open(&counts, NAME, &reason), -EOPNOTSUPP);
	rule_counts_close(&counts);
}

static void rule_has(const char *text, __u64 packets, __u64 bytes)
{
	const struct rule rule = rule_of(text);
	struct rule_counts counts = {};
	struct abi_counter count;

	assert_int_equal(rule_counts_open(&counts, NAME, &reason), 0);
	assert_int_equal(store_shapes(session.store, &counts.shapes), 0);
	count = rule_counts_of(&counts, &rule);
	rule_counts_close(&counts);
	count_is(&count, packets, bytes);
}

/* During a change, and after one that failed, a key is in both parts of a table. */
TEST(test_counts_of_a_key_in_both_parts)
{
	for (int is_filled_in_place = 0; is_filled_in_place < 2; is_filled_in_place++) {
		load(true, true, 1, 1, 1);
		plain_change(LINES("add 10.77.0.1 timeout 1h"));
		open_session(&session);
		meet("10.77.0.1", 3, 162);
		assert_int_equal(change_begin(&session, &reason), 0);
		assert_int_equal(do_line(&session, "add 10.77.0.1", &reason), 0);
		assert_int_equal(entries_insert(&session, &reason), 0);
		meet("10.77.0.1", 2, 108);
		rule_has("10.77.0.1", 5, 270);
		if (is_filled_in_place)
			assert_int_equal(filter_fill_in_place(&session.filters[0], session.store, NULL, &reason), 0);
		else
			assert_int_equal(change_end(&session, -EIO, &reason), -EIO);
		rule_has("10.77.0.1", 5, 270);
		session_close(&session);
	}
}

static size_t ranked(struct hits *hits, double second)
{
	struct filter_tables tables;

	assert_int_equal(filter_open_tables(&session.filters[0].kernel, &tables), 0);
	while (!hits_step(hits, &tables, second))
		;
	filter_tables_close(&tables);
	return hits->ranked_count;
}

TEST(test_a_count_that_changes_its_part_is_not_new)
{
	struct hits hits;

	load(true, true, 1, 1, 1);
	plain_change(LINES("add 10.77.0.1 timeout 1h"));
	open_session(&session);
	meet("10.77.0.1", 3, 162);
	assert_int_equal(hits_open(&hits, filter_slots(&session.filters[0].kernel)), 0);
	assert_int_equal(ranked(&hits, 1), 0);
	assert_int_equal(do_lines(&session, LINES("add 10.77.0.1"), &reason), 0);
	rule_has("10.77.0.1", 3, 162);
	assert_int_equal(ranked(&hits, 2), 0);
	hits_close(&hits);
	session_close(&session);
}

/* A part of a tally that is counted in twice, or not at all. */
TEST(test_tally)
{
	struct kernel_filter *filters = NULL;
	struct tally tally = {};
	size_t count = 0;

	load(true, true, 0, 1, 2);
	assert_int_equal(kernel_find_filters((struct kernel_wish){}, &filters, &count, &reason), 0);
	for (int i = 0; i < 2; i++) {
		strcpy(filters->attachments[i].interface, "a\n2345678901234");
		filters->attachments[i].ifindex = 3 + i * ABI_COUNTER_SENT; /* they share a row */
		filters->attachments[i].lost = 5 + i;
	}
	for (int i = 1; i <= 3; i++)
		assert_int_equal(tally_add(&tally, filters, &reason), 0);
	assert_true(tally.parts == 1 && tally.filters == 3 && tally.cpus == 1 && !tally.is_monitor_only);
	assert_string_equal(tally.interfaces[3], "a?2345678901234+a?2345678901234+a?2345678901234+a?2345678901...");
	assert_int_equal(tally.lost[3], 33);
	filters->config->run |= ABI_RUN_MONITOR;
	filters->attachments[0].mode = INTERFACE_TC_SENT;
	assert_int_equal(tally_add(&tally, filters, &reason), 0);
	assert_string_equal(tally.interfaces[3 + ABI_COUNTER_SENT], "a?2345678901234");
	assert_true(tally.is_monitor_only && tally.lost[3] == 39);
	tally_close(&tally);
	kernel_filters_free(filters, count);
}

/* ---- panic ---- */

static void panic(const char *name, enum panic_by by, bool is_on, size_t meant, bool is_changed, int error)
{
	size_t found;
	bool changed = false;

	assert_int_equal(filter_panic(name, by, is_on, &found, &changed, &reason), error);
	assert_int_equal(found, meant);
	assert_int_equal(changed, is_changed);
}

static void set_replacing(void)
{
	for (size_t i = 0; i < MEMORY_INTERFACES; i += 2)
		assert_true(memory_path(i) && (path.config->run |= ABI_RUN_REPLACING));
}

static void assert_runs(__u32 run, int fate)
{
	for (size_t i = 0; i < MEMORY_INTERFACES; i += 2) {
		assert_true(memory_path(i));
		assert_int_equal(path.config->run & (ABI_RUN_PANIC | ABI_RUN_FLEET | ABI_RUN_REPLACING), run);
		assert_int_equal(judge_frame(&panel[0]), fate);
	}
}

TEST(test_panic)
{
	enum { NONE = 0, P = ABI_RUN_PANIC, F = ABI_RUN_FLEET, PF = P | F, MORE = ABI_RUN_MONITOR };
	static const __u32 before[4] = { NONE, P, PF, F };
	static const __u32 next[2][2][4] = { [PANIC_BY_OPERATOR] = { { NONE, NONE, F, F }, { P, P, P, P } },
					     [PANIC_BY_FLEET] = { { NONE, P, NONE, NONE }, { PF, P, PF, F } } };

	for (int i = 0; i < 16; i++)
		assert_int_equal(panic_next(before[i % 4] | MORE, i / 8, i / 4 % 2),
				 next[i / 8][i / 4 % 2][i % 4] | MORE);
	fill_panel();
	load(true, true, 0, 1, 1);
	plain_change(LINES("add 10.77.0.1"));
	load_second();
	assert_true(memory_path(0) && judge_frame(&panel[0]) == 0);
	/* An operator's word is newer than what a replaced filter hands on, also if it is the same. */
	panic("other", PANIC_BY_OPERATOR, true, 0, false, 0);
	for (int again = 0; again < 2; again++) {
		set_replacing();
		panic(NAME, PANIC_BY_OPERATOR, true, 2, !again, 0);
		assert_runs(P, 2);
	}
	set_replacing();
	panic(NULL, PANIC_BY_FLEET, false, 2, false, 0);
	assert_runs(P | ABI_RUN_REPLACING, 2);
	memory.seen = KERNEL_NOT_ALLOWED;
	panic(NULL, PANIC_BY_OPERATOR, false, 2, true, -EPERM);
	memory.seen = 0;
	assert_true(memory_path(0) && !(path.config->run & P));
}

/* ---- series ---- */

#define ENTRIES 40

static struct series {
	bool is_bad[ENTRIES], tells, was_cut;
	unsigned int made[ENTRIES], failed[ENTRIES], changes;
} series;

static int make(void *context, size_t first, size_t *end, size_t *at, struct reason *why)
{
	(void)context, (void)why;
	series.changes++;
	if (*end > first + 16)
		*end = first + 16;
	for (size_t i = first; i < *end; i++)
		if (series.is_bad[i]) {
			*at = series.tells ? i : *end;
			return -EINVAL;
		}
	for (size_t i = first; i < *end; i++)
		series.made[i]++;
	return 0;
}

static void note_failure(void *context, size_t first, size_t end, int error, const struct reason *why)
{
	(void)context, (void)why;
	assert_int_equal(error, -EINVAL);
	for (size_t i = first; i < end; i++)
		series.failed[i]++;
}

static bool is_no_entry(void *context, int error)
{
	(void)context, (void)error;
	return false;
}

/* Each good entry is made once, and each bad one fails once; if it is the disk that fails, all of its change does. */
TEST(test_series)
{
	for (int kind = 0; kind < 3; kind++) {
		const struct change_series all = { NULL, make, kind == 2 ? is_no_entry : NULL, note_failure };

		series = (struct series){ .tells = kind == 1 };
		series.is_bad[3] = series.is_bad[4] = series.is_bad[ENTRIES - 1] = true;
		change_series(&all, 1, ENTRIES);
		for (size_t i = 0; i < ENTRIES; i++) {
			const bool fails = kind == 2 ? i && (i < 17 || i > 32) : series.is_bad[i];

			assert_int_equal(series.failed[i], fails);
			assert_int_equal(series.made[i], i && !fails);
		}
		assert_in_range(series.changes, 3, kind ? 12 : 25);
	}
}

TEST_MAIN(setup_all, teardown_all)
#endif
