// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rules with a rate in the packet path: a packet pays once, wherever the place of its key is. */
#include <sched.h>

#include "unit/packets_fixture.h"

#include "rate.h"

#define TOKENS 10
#define TOKEN (1ULL << ABI_RATE_SHIFT)

static size_t udp_packet(void)
{
	size_t packet = 0;

	while (packets[packet].flow.proto != IPPROTO_UDP || packets[packet].flow.family != FLOW_IPV4 ||
	       packets[packet].result != PARSE_OK)
		packet++;
	return packet;
}

/* Adds a rule; returns the meter of its key. An even number has the quick place, another one that is searched. */
static struct abi_rate *add_meter(struct scene *scene, struct abi_rates *rates, const char *text, struct rule *rule,
				  __u32 number)
{
	struct rule_key keys[RULE_KEYS_MAX];
	struct abi_rate_line *line;
	__u64 hash;

	*rule = parse_rule(text);
	scene_add(scene, rule);
	rule_keys(rule, keys);
	hash = rule_hash(&keys[0], &scene->filter.config->table[0].secret).hash;
	line = &rates->line[abi_rate_line_of(hash, 0)];
	line->hash[number % 2 ? 3 : 0] = hash;
	line->number[number % 2 ? 3 : 0] = number;
	return &rates->rate[number];
}

/* Gives a rule about the source of the first packet a secret under which its key has the same line twice, or two lines. */
static __u64 add_rule(struct scene *scene, size_t packet, bool is_one_line, struct rule *rule)
{
	struct hash_secret *secret = &scene->filter.config->table[0].secret;
	struct rule_key keys[RULE_KEYS_MAX];
	uint64_t random = 3;
	__u64 hash;

	assert_true(rule_from_flow(&packets[packet].flow, &rule_kind_src, RULE_DROP, rule));
	rule->fields |= RULE_RATE;
	rule->rate = 1;
	assert_int_equal(rule_keys(rule, keys), 1);
	scene_set_up(scene);
	do {
		random_fill(&random, secret, sizeof(*secret));
		hash = rule_hash(&keys[0], secret).hash;
	} while ((abi_rate_line_of(hash, 0) == abi_rate_line_of(hash, 1)) != is_one_line);
	scene_add(scene, rule);
	return hash;
}

SCENE_TEST(test_a_packet_pays_once)
{
	static struct abi_rates rates;
	const int map = bpf_object__find_map_fd_by_name(scene->filter.object, ABI_RATES_MAP);
	const __u32 zero = 0;
	struct rule rule;
	size_t packet = 0;

	while (!rule_from_flow(&packets[packet].flow, &rule_kind_src, RULE_DROP, &rule))
		packet++;
	for (unsigned int i = 0; i < 2 * 2 * ABI_RATE_PLACES; i++) {
		const bool is_one_line = i % 2;
		const unsigned int which = i / 2 / ABI_RATE_PLACES, place = i / 2 % ABI_RATE_PLACES;
		const __u64 hash = add_rule(scene, packet, is_one_line, &rule);
		struct abi_rate_line *line = &rates.line[abi_rate_line_of(hash, which)];
		unsigned int passed = 0;

		memset(&rates, 0, sizeof(rates));
		line->hash[place] = hash;
		line->number[place] = i;
		rates.rate[i] = (struct abi_rate){ .burst = TOKENS << ABI_RATE_SHIFT,
						   .spent = -(TOKENS << ABI_RATE_SHIFT),
						   .each_packet = 1 << ABI_RATE_SHIFT };
		assert_int_equal(bpf_map_update_elem(map, &zero, &rates, BPF_ANY), 0);
		for (unsigned int k = 0; k < 2 * TOKENS; k++)
			passed +=
				raw_filter_run(&scene->filter, 0, frames[packet].byte, frames[packet].length).verdict ==
				VERDICT_PASS;
		check(passed == TOKENS, is_one_line ? "one line" : "two lines", "passed", passed);
	}
}

/*
 * What one meter drops costs no other one, in whatever order they are asked, also if both belong to one key, and in all
 * counts of packets and bytes. A monitor rule that counts a packet costs the drop rules their tokens, because the packet passes, but no
 * other monitor rule.
 */
SCENE_TEST(test_who_pays)
{
	enum { WIDE, NARROW, TRIAL, TRIAL_2, METERS };
	static const char *const texts[METERS] = { "src 192.0.2.0/24 rate 7/s", "src 192.0.2.1 rate 3/s",
						   "src 192.0.0.0/16 rate 5/s action monitor",
						   "proto udp rate 2/s action monitor" };
	static const __u64 tokens[][METERS] = { { 7, 3, 9, 9 }, { 3, 7, 9, 9 }, { 5, 5, 9, 9 },
						{ 9, 9, 2, 4 }, { 9, 9, 4, 2 }, { 9, 2, 1, 1 } };
	static struct abi_rates rates;
	const int map = bpf_object__find_map_fd_by_name(scene->filter.object, ABI_RATES_MAP);
	struct rule rule[METERS];
	const __u32 zero = 0;
	const size_t packet = udp_packet();

	for (size_t i = 0; i < COUNT(tokens); i++) {
		const __u64 *has = tokens[i], passes = has[WIDE] < has[NARROW] ? has[WIDE] : has[NARROW],
			    trials = has[TRIAL] < has[TRIAL_2] ? has[TRIAL] : has[TRIAL_2];

		scene_set_up(scene);
		memset(&rates, 0, sizeof(rates));
		for (size_t k = 0; k < METERS; k++)
			*add_meter(scene, &rates, texts[k], &rule[k], 100 + METERS * i + k) =
				(struct abi_rate){ .burst = has[k] << ABI_RATE_SHIFT,
						   .spent = -(has[k] << ABI_RATE_SHIFT),
						   .each_packet = TOKEN };
		assert_int_equal(bpf_map_update_elem(map, &zero, &rates, BPF_ANY), 0);
		for (__u64 n = 0; n < 20; n++) {
			const struct raw_filter_run run =
				raw_filter_run(&scene->filter, 0, frames[packet].byte, frames[packet].length);
			const enum abi_outcome wanted = n >= passes ? OUTCOME_DROP_RULE :
							n >= trials ? OUTCOME_MONITOR_RULE :
								      OUTCOME_NO_RULE;

			check(run.outcome == wanted, "outcome", "of row", i);
		}
		assert_int_equal(bpf_map_lookup_elem(map, &zero, &rates), 0);
		for (size_t k = 0; k < METERS; k++) {
			const struct abi_rate *rate = &rates.rate[100 + METERS * i + k];
			const __u64 paid = (rate->spent + rate->burst) >> ABI_RATE_SHIFT;
			const __u64 wanted = k < TRIAL || passes < trials ? passes : trials;

			check(paid == wanted, texts[k], "paid in row", i * 100 + paid);
		}
	}
}

/* Two rules have one key, which matches packets of both directions: each pays for what passes, and for nothing else. */
static void check_two_meters(struct scene *scene, size_t packet)
{
	static struct abi_rates rates;
	const int map = bpf_object__find_map_fd_by_name(scene->filter.object, ABI_RATES_MAP);
	const struct rule rule = parse_rule("src 0.0.0.0/0 proto udp rate 1/s");
	struct abi_rate_line *line;
	struct rule_key keys[RULE_KEYS_MAX];
	const __u32 zero = 0;
	__u64 hash, passed = 0;

	scene_set_up(scene);
	scene_add(scene, &rule);
	rule_keys(&rule, keys);
	hash = rule_hash(&keys[0], &scene->filter.config->table[0].secret).hash;
	memset(&rates, 0, sizeof(rates));
	line = &rates.line[abi_rate_line_of(hash, 0)];
	for (__u64 i = 0; i < 2; i++) {
		line->hash[i] = hash;
		line->number[i] = (9 + i) | ABI_RATE_SHARED;
		rates.rate[9 + i] = (struct abi_rate){ .burst = (7 - 4 * i) << ABI_RATE_SHIFT,
						       .spent = -((7 - 4 * i) << ABI_RATE_SHIFT),
						       .each_packet = 1 << ABI_RATE_SHIFT };
	}
	assert_int_equal(bpf_map_update_elem(map, &zero, &rates, BPF_ANY), 0);
	for (int n = 0; n < 20; n++)
		passed += raw_filter_run(&scene->filter, 0, frames[packet].byte, frames[packet].length).verdict ==
			  VERDICT_PASS;
	check(passed == 3, "two meters", "passed", passed);
	assert_int_equal(bpf_map_lookup_elem(map, &zero, &rates), 0);
	for (size_t i = 0; i < 2; i++) {
		const __u64 paid = (rates.rate[9 + i].spent + rates.rate[9 + i].burst) >> ABI_RATE_SHIFT;

		check(paid == 3, "two meters", "paid", paid);
	}
}

SCENE_TEST(test_two_meters_of_one_key)
{
	static struct scene sent;
	const size_t packet = udp_packet();

	check_two_meters(scene, packet);
	assert_int_equal(raw_filter_open(XDP_CUCKOO_BUILD "/xdp_cuckoo_tc.bpf.o", &scene->filter.options,
					 table_geometry(1024), &sent.filter),
			 0);
	check_two_meters(&sent, packet);
	raw_filter_close(&sent.filter);
}

/* The jiffy of the last drop on this processor: programs note when they find a meter empty. */
static __u64 last_drop(int credits, int cpu, __u32 meters)
{
	static struct abi_rate_credit credit[RAW_FILTER_CPUS_MAX];
	__u64 last = 0;

	for (__u32 number = 0; number < meters; number++) {
		assert_int_equal(bpf_map_lookup_elem(credits, &number, credit), 0);
		last = credit[cpu].empty_at > last ? credit[cpu].empty_at : last;
	}
	return last;
}

/*
 * Two meters on the kernel's own clock. At each drop the lower one is empty, so between two drops as much passes as it
 * earns in the jiffies between, however slowly packets come. Only what a pause of more than a burst earns is lost.
 */
SCENE_TEST(test_what_a_meter_gives)
{
	enum { METERS = 2, BURST_JIFFIES = 100, JUDGED_JIFFIES = 200 };
	static const char *const texts[METERS] = { "src 192.0.2.0/24 rate 7/s", "src 192.0.2.1 rate 3/s" };
	static struct abi_rates rates;
	const int map = bpf_object__find_map_fd_by_name(scene->filter.object, ABI_RATES_MAP),
		  credits = bpf_object__find_map_fd_by_name(scene->filter.object, ABI_RATE_CREDITS_MAP),
		  cpu = sched_getcpu();
	const size_t packet = udp_packet();
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frames[packet].byte, .data_size_in = frames[packet].length,
		    .repeat = 1);
	const __u32 zero = 0;
	struct rule rule[METERS];
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	for (__u32 low = 0; low < METERS; low++) {
		__u64 from = 0, last = 0, passed = 0, judged = 0;

		scene_set_up(scene);
		memset(&rates, 0, sizeof(rates));
		for (__u32 k = 0; k < METERS; k++)
			*add_meter(scene, &rates, texts[k], &rule[k], METERS * low + k) =
				(struct abi_rate){ .refill = TOKEN / 2 * (k == low ? 1 : 3),
						   .burst = TOKEN / 2 * BURST_JIFFIES,
						   .batch = TOKEN / 32,
						   .each_packet = TOKEN };
		assert_int_equal(bpf_map_update_elem(map, &zero, &rates, BPF_ANY), 0);
		while (judged < JUDGED_JIFFIES) {
			assert_int_equal(bpf_prog_test_run_opts(scene->filter.program[0], &run), 0);
			if (run.retval == XDP_PASS) {
				passed++;
				continue;
			}
			const __u64 now = last_drop(credits, cpu, METERS * METERS);

			if (!from || now - last >= BURST_JIFFIES) {
				from = now;
				passed = 0;
			} else {
				judged += now - last;
			}
			last = now;
			check(2 * passed <= now - from + 4, texts[low], "more than earned:", passed);
			check(2 * passed + 4 >= now - from, texts[low], "less than earned:", passed);
		}
	}
}

int main(void)
{
	build_frames();
	return cmocka_run_group_tests(tests, scene_open_exact, scene_close);
}
