// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The traffic that `bench` makes from a store: each rule is equally likely, each flow has the outcome that
 * the rules give it, and no flow is from a rule that ends too soon. The filter here has no table.
 */
#include <arpa/inet.h>
#include <endian.h>

#include "change/change.h"
#include "bench/bench.h"
#include "unit/store_fixture.h"

#define LASTS_MS 100000
#define DEVIATIONS 6 /* once in 10^9 */

struct lists {
	struct fixture *f;
	struct abi_config config;
	struct kernel_filter filter;
	struct bench_lists lists;
};

/* Puts the rules of `texts`, which ends with NULL, into the store in one change. */
static void open_lists(struct lists *lists, struct fixture *f, const char *const *texts, bool is_exact)
{
	struct reason reason = {};

	*lists = (struct lists){ .f = f, .filter.options.is_exact = is_exact };
	lists->filter.config = &lists->config;
	begin(lists->f);
	for (; *texts; texts++)
		assert_int_equal(put(lists->f, *texts), 0);
	end(lists->f);
	if (bench_lists_open(&lists->lists, lists->f->store, &lists->filter, LASTS_MS, &reason))
		fail_msg("%s", reason.text);
}

static void close_lists(struct lists *lists)
{
	bench_lists_close(&lists->lists);
	close_store(lists->f);
}

static bool about(__u64 count, double expected)
{
	const double off = count - expected;

	return off * off <= DEVIATIONS * DEVIATIONS * (expected + 1);
}

/* How many flows of a list have this source address, which only one rule names. */
static __u64 from(const struct bench_flow *list, const char *address)
{
	const __u32 source = inet_addr(address);
	__u64 count = 0;

	for (size_t i = 0; i < BENCH_FLOWS; i++)
		count += list[i].src.v4 == source;
	return count;
}

static __u64 outcomes(const struct bench_flow *list, enum abi_outcome outcome)
{
	__u64 count = 0;

	for (size_t i = 0; i < BENCH_FLOWS; i++)
		count += list[i].outcome == outcome;
	return count;
}

/* ---- which rules, and how often ---- */

STORE_TEST(test_every_rule_alike)
{
	static const char *const texts[] = { "192.0.2.1",         "192.0.2.2 proto udp", "192.0.2.3 action pass",
					     "192.0.2.4 dport 7", "2001:db8::1",         NULL };
	struct lists lists;

	open_lists(&lists, f, texts, true);
	for (int i = 1; i <= 4; i++) {
		char address[24];

		snprintf(address, sizeof(address), "192.0.2.%d", i);
		assert_true(about(from(lists.lists.hits[FLOW_IPV4], address), BENCH_FLOWS / 4.));
	}
	assert_int_equal(outcomes(lists.lists.hits[FLOW_IPV4], OUTCOME_PASS_RULE),
			 from(lists.lists.hits[FLOW_IPV4], "192.0.2.3"));
	assert_int_equal(outcomes(lists.lists.hits[FLOW_IPV6], OUTCOME_DROP_RULE), BENCH_FLOWS);
	close_lists(&lists);
}

/* If there are more rules than flows, each rule is equally likely, wherever it is in the store. */
STORE_TEST(test_a_sample_of_many_rules)
{
	const size_t count = 3 * BENCH_FLOWS, parts = 16;
	struct lists lists = { .f = f, .filter = { .options.is_exact = true, .config = &lists.config } };
	struct rule rule = rule_of("2001:db8::");
	const struct bench_flow *flow;
	__u64 part[16] = {}, in_order = 0;

	begin(lists.f);
	for (size_t i = 0; i < count; i++) {
		rule.src.word[1] = htobe64(i);
		assert_int_equal(put_rule(lists.f->store, &rule), 0);
	}
	end(lists.f);
	assert_int_equal(bench_lists_open(&lists.lists, lists.f->store, &lists.filter, LASTS_MS, &lists.f->reason), 0);
	flow = lists.lists.hits[FLOW_IPV6];
	for (size_t i = 0; i < BENCH_FLOWS; i++)
		part[be64toh(flow[i].src.word[1]) * parts / count]++;
	for (size_t i = 0; i < parts; i++)
		assert_true(about(part[i], BENCH_FLOWS / (double)parts));
	/* The flows are not in the order of the store either. */
	for (size_t i = 0; i < BENCH_FLOWS; i++)
		in_order += be64toh(flow[i].src.word[1]) == i;
	assert_in_range(in_order, 0, 100);
	close_lists(&lists);
}

STORE_TEST(test_rules_that_end)
{
	static const char *const texts[] = { "192.0.2.1 timeout 1h", "192.0.2.2 timeout 99s", "192.0.2.3", NULL };
	struct lists lists;

	open_lists(&lists, f, texts, true);
	assert_int_equal(from(lists.lists.hits[FLOW_IPV4], "192.0.2.2"), 0);
	close_lists(&lists);
}

/* A compact table still matches rules that have ended. */
STORE_TEST(test_rules_that_end_in_a_compact_table)
{
	static const char *const texts[] = { "192.0.2.1 timeout 1h", "192.0.2.2 timeout 1s", NULL };
	struct lists lists;

	open_lists(&lists, f, texts, false);
	assert_true(about(from(lists.lists.hits[FLOW_IPV4], "192.0.2.2"), BENCH_FLOWS / 2.));
	close_lists(&lists);
}

/* ---- what becomes of them ---- */

/*
 * A pass rule names half of the network. One that ends soon names a quarter; the list leaves that quarter
 * out.
 */
STORE_TEST(test_what_others_pass)
{
	static const char *const texts[] = { "192.0.2.0/24", "192.0.2.0/25 action pass",
					     "192.0.2.128/26 action pass timeout 50s", NULL };
	struct lists lists;
	__u64 passed = 0;

	open_lists(&lists, f, texts, true);
	for (size_t i = 0; i < BENCH_FLOWS; i++) {
		const struct bench_flow *flow = &lists.lists.hits[FLOW_IPV4][i];
		const __u32 source = ntohl(flow->src.v4);

		assert_int_equal(source >> 8, 0xc00002);
		assert_int_not_equal(source >> 6 & 3, 2);
		assert_int_equal(flow->outcome, source & 0x80 ? OUTCOME_DROP_RULE : OUTCOME_PASS_RULE);
		passed += flow->outcome == OUTCOME_PASS_RULE;
	}
	/* Each rule is tried equally often. Of the flows of the /24, half pass, and a quarter is left out. */
	assert_true(about(passed, BENCH_FLOWS * 6 / 7.));
	close_lists(&lists);
}

STORE_TEST(test_misses_match_no_rule)
{
	static const char *const texts[] = { "192.0.2.1", "2001:db8::/32", NULL };
	struct lists lists;

	open_lists(&lists, f, texts, true);
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		assert_int_equal(outcomes(lists.lists.misses[family], OUTCOME_NO_RULE), BENCH_FLOWS);
		for (size_t i = 0; i < 1000; i++) {
			const struct rule query = bench_flow_query(&lists.lists.misses[family][i], family);
			struct rule found;

			assert_int_equal(query_test(lists.f->store, &query, &found), -ENOENT);
		}
	}
	close_lists(&lists);
}

/* A table that lacks the rules for half of all addresses is not equal to the store. */
STORE_TEST(test_a_table_that_lacks_rules)
{
	struct lists lists = { .f = f, .filter = { .options.is_exact = true, .config = &lists.config } };

	add(lists.f, "128.0.0.0/1");
	assert_int_equal(bench_lists_open(&lists.lists, lists.f->store, &lists.filter, LASTS_MS, &lists.f->reason),
			 -EPROTO);
	assert_non_null(strstr(lists.f->reason.text, "lacks rules"));
	close_lists(&lists);
}

STORE_TEST(test_a_family_without_rules)
{
	static const char *const texts[] = { "192.0.2.1", NULL };
	struct lists lists;

	open_lists(&lists, f, texts, true);
	for (enum bench_traffic traffic = 0; traffic < BENCH_TRAFFICS; traffic++) {
		assert_true(bench_lists_has(&lists.lists, FLOW_IPV4, traffic));
		assert_int_equal(bench_lists_has(&lists.lists, FLOW_IPV6, traffic), traffic == BENCH_MISS);
	}
	close_lists(&lists);
}

/* ---- for the program ---- */

static void *write_list(const struct lists *lists, enum flow_family family, enum bench_traffic traffic,
			struct bench_expected *expected)
{
	void *to = malloc(BENCH_FLOWS * sizeof(struct bench_flow_ipv6));

	assert_non_null(to);
	bench_lists_write(&lists->lists, family, traffic, to, expected);
	return to;
}

STORE_TEST(test_half_is_half)
{
	static const char *const texts[] = { "192.0.2.1", NULL };
	struct bench_expected expected;
	struct bench_flow_ipv4 *written;
	struct lists lists;
	__u64 hits = 0;

	open_lists(&lists, f, texts, true);
	written = write_list(&lists, FLOW_IPV4, BENCH_HALF, &expected);
	for (size_t i = 0; i < BENCH_FLOWS; i++)
		hits += written[i].src == inet_addr("192.0.2.1");
	assert_int_equal(hits, expected.packets[OUTCOME_DROP_RULE]);
	assert_int_equal(BENCH_FLOWS - hits, expected.packets[OUTCOME_NO_RULE]);
	assert_true(about(hits, BENCH_FLOWS / 2.));
	free(written);
	close_lists(&lists);
}

STORE_TEST(test_what_is_written)
{
	static const char *const texts[] = { "2001:db8::/32 proto tcp", NULL };
	struct bench_expected expected;
	struct bench_flow_ipv6 *written;
	struct lists lists;

	open_lists(&lists, f, texts, true);
	written = write_list(&lists, FLOW_IPV6, BENCH_HIT, &expected);
	for (size_t i = 0; i < BENCH_FLOWS; i++) {
		const struct bench_flow *flow = &lists.lists.hits[FLOW_IPV6][i];

		assert_memory_equal(&written[i].src, &flow->src, sizeof(flow->src));
		assert_memory_equal(&written[i].dst, &flow->dst, sizeof(flow->dst));
		assert_memory_equal(written[i].ports, flow->ports, sizeof(flow->ports));
		assert_int_equal(written[i].proto, IPPROTO_TCP);
	}
	assert_int_equal(expected.packets[OUTCOME_DROP_RULE], BENCH_FLOWS);
	free(written);
	close_lists(&lists);
}

TEST_MAIN(seed, NULL)
