// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The packet path with hints: a missing hint, a hint that leaves shapes out, and shortcuts. */
#include "unit/packets_fixture.h"

/* A rule without its hint. With has_other there is also a shape without entries that needs no hint. */
static void check_missing_hint(struct scene *scene, size_t packet, const struct rule *rule, bool has_other)
{
	const struct rule_shape other = { .family = packets[packet].flow.family, .action = RULE_DROP, .dst_len = 5 };

	scene_set_up(scene);
	if (has_other)
		raw_filter_add_shape(&scene->filter, &other);
	scene_add(scene, rule);
	memset(scene->filter.map[RAW_FILTER_HINTS], 0, scene->filter.bytes[RAW_FILTER_HINTS]);
	scene->rules = rule->src_len ? 0 : 1;
	scene_check(scene, packet);
}

static void check_missing_hints(struct scene *scene, size_t packet, struct rule *rule)
{
	check_missing_hint(scene, packet, rule, false);
	check_missing_hint(scene, packet, rule, true);
}

/* Without its hint, a rule with a source matches no packet. A rule without a source needs no hint. */
SCENE_TEST(test_missing_hints)
{
	each_rule(scene, check_missing_hints);
}

/* The hint of this source leaves out the first shape, but not the second. */
SCENE_TEST(test_hints_leave_the_second_shape)
{
	struct rule rule, other;

	for (size_t i = 0; i < PACKETS; i++) {
		if (!rule_from_flow(&packets[i].flow, &rule_kind_src, RULE_DROP, &rule))
			continue;
		other = (struct rule){ .family = rule.family, .src_len = 31 };
		other.src = rule.src;
		other.src.byte[0] ^= 1;
		other.src = rule_network(&other.src, other.src_len);
		scene_set_up(scene);
		scene_add(scene, &other);
		scene_add(scene, &rule);
		scene_check_all(scene);
	}
}

/* Adds a rule without its key: only the shortcuts can drop its packets. */
static void add_shortcut(struct scene *scene, const struct rule *rule)
{
	struct rule_key keys[RULE_KEYS_MAX];

	assert_int_equal(rule_keys(rule, keys), 1);
	raw_filter_add_shape(&scene->filter, &keys[0].shape);
	hints_set_shortcuts(raw_filter_hints(&scene->filter), &keys[0]);
	scene->rule[scene->rules] = rule;
	scene->number[scene->rules++] = RAW_FILTER_NO_NUMBER;
}

/* Shortcuts alone, and together with a pass rule without a source and one with a source. */
SCENE_TEST(test_shortcuts)
{
	static const char *const pass[] = { NULL, "proto udp action pass", "src 10.0.0.0/9 action pass" };
	struct rule rule, passing;

	for (size_t i = 0; i < PACKETS; i++) {
		if (!is_first_of_flow(i) || packets[i].flow.family != FLOW_IPV4)
			continue;
		for (size_t p = 0; p < COUNT(pass); p++) {
			scene_set_up(scene);
			if (pass[p]) {
				passing = parse_rule(pass[p]);
				scene_add(scene, &passing);
			}
			rule = (struct rule){ .family = FLOW_IPV4, .src_len = 6 + i % 12 };
			rule.src = rule_network(&packets[i].flow.src, rule.src_len);
			add_shortcut(scene, &rule);
			scene_check_all(scene);
		}
	}
}

/*
 * A flood from networks with and without a shortcut: how many packets count for their rule. As many are counted as came,
 * on average, although few of them are looked up; and an exception behind the shortcut counts as well.
 */
SCENE_TEST(test_counts_behind_shortcuts)
{
	enum { FLOOD = 1 << 21 };
	static const char *const texts[] = { "src 192.0.0.0/17", "src 192.0.0.0/16 action pass" };
	struct rule rule[2] = { parse_rule(texts[0]), parse_rule(texts[1]) };
	struct rule_key keys[RULE_KEYS_MAX];
	size_t packet = 0;

	while (packet < PACKETS &&
	       !(packets[packet].flow.family == FLOW_IPV4 && rule_matches(&rule[0], &packets[packet].flow, PARSE_OK)))
		packet++;
	assert_true(packet < PACKETS);
	for (int variant = 0; variant < 3; variant++) {
		const struct abi_counter *counters = scene->filter.map[RAW_FILTER_COUNTS], *counter;
		LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frames[packet].byte,
			    .data_size_in = frames[packet].length, .repeat = FLOOD);
		__u64 before;

		scene_set_up(scene);
		scene_add(scene, &rule[0]);
		rule_keys(&rule[0], keys);
		if (variant)
			hints_set_shortcuts(raw_filter_hints(&scene->filter), &keys[0]);
		if (variant == 2)
			scene_add(scene, &rule[1]);
		counter = &counters[scene->filter.slot[variant == 2]];
		before = counter->packets;
		assert_int_equal(bpf_prog_test_run_opts(scene->filter.program[0], &options), 0);
		check(counter->packets - before > FLOOD * 0.85 && counter->packets - before < FLOOD * 1.15,
		      texts[variant == 2], "counted", counter->packets - before);
	}
}

static int open_filter(void **state)
{
	const int error = scene_open_exact(state);
	struct scene *scene = *state;

	scene->filter.reads_hints = true;
	return error;
}

int main(void)
{
	build_frames();
	return cmocka_run_group_tests(tests, open_filter, scene_close);
}
