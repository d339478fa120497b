// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sends every packet of tests/unit/packets.c through both BPF programs, whole and cut at every length, with many
 * configs and each kind of table. test_parse_packet.c tests the parser alone.
 */
#include "unit/packets_fixture.h"

#define JUMBO_BYTES 9000

/* A test that main() puts into one group or more. */
#define GROUP_TEST(name) TEST_FUNCTION(name, struct scene *scene, name##_body(scene_of(state)); end_checks())
#define ROW(name) cmocka_unit_test_setup(name, begin_checks)

/* ---- the configs ---- */

GROUP_TEST(test_not_set_up)
{
	scene->rules = 0;
	raw_filter_clear(&scene->filter);
	scene_check_all(scene);
}

GROUP_TEST(test_no_shapes)
{
	scene_set_up(scene);
	scene_check_all(scene);
}

/* The step to the next cut. In long frames it is 13, an odd number, so that each place in a header is cut. */
static size_t next_cut(const struct packet_frame *frame, size_t length)
{
	return length > 256 && length + 128 < frame->length ? 13 : 1;
}

/* A cut frame still matches rules about the fields that it has. */
GROUP_TEST(test_truncations)
{
	static const char *const texts[] = { "dport 53", "src 192.0.2.1", "src 2001:db8::/32", "proto udp" };
	struct rule rule;

	for (size_t set = 0; set <= COUNT(texts); set++) {
		scene_set_up(scene);
		if (set) {
			rule = parse_rule(texts[set - 1]);
			scene_add(scene, &rule);
		}
		for (size_t i = 0; i < PACKETS; i++)
			for (size_t n = RAW_FILTER_RUN_MIN; n <= frames[i].length; n += next_cut(&frames[i], n))
				scene_check_cut(scene, i, n);
	}
}

GROUP_TEST(test_policies)
{
	for (size_t outcome = 0; outcome < OUTCOME_POLICIES; outcome++) {
		scene_set_up(scene);
		scene->filter.config->table[0].drops = 1U << outcome;
		scene_check_all(scene);
	}
}

/* Each combination of run bits, with a rule and with policies that drop. */
GROUP_TEST(test_ways_to_run)
{
	static const __u32 confirm_by[] = { SCENE_PAST, SCENE_FUTURE };
	const __u32 all = ABI_RUN_SET_UP | ABI_RUN_MONITOR | ABI_RUN_PANIC | ABI_RUN_UNCONFIRMED;
	const struct rule rule = parse_rule("proto udp");

	for (__u32 run = 0; run <= all; run++)
		for (size_t i = 0; i < COUNT(confirm_by); i++) {
			scene_set_up(scene);
			scene_add(scene, &rule);
			scene->filter.config->table[0].drops = 1U << OUTCOME_LATER_FRAGMENT | 1U << OUTCOME_NOT_IP;
			scene->filter.config->run = run;
			scene->filter.config->confirm_by = confirm_by[i];
			scene_check_all(scene);
		}
}

static void check_rule(struct scene *scene, size_t packet, struct rule *rule)
{
	scene_set_up(scene);
	scene_add(scene, rule);
	assert_true(rule_matches(rule, &packets[packet].flow, packets[packet].result));
	scene_check_all(scene);
}

/* A rule drops the packets that match it and no others. */
GROUP_TEST(test_rules)
{
	each_rule(scene, check_rule);
}

/* Checked by the protocol of the row, not by rule_matches(). */
GROUP_TEST(test_dport_0_is_no_fragment)
{
	const struct rule rule = parse_rule("dport 0");

	scene_set_up(scene);
	raw_filter_add(&scene->filter, &rule);
	for (size_t i = 0; i < PACKETS; i++) {
		bool is_udp = packets[i].result == PARSE_OK && packets[i].flow.proto == IPPROTO_UDP;
		bool is_dropped = is_udp && packets[i].flow.dport == 0;
		struct raw_filter_run run;

		if (frames[i].length < RAW_FILTER_RUN_MIN)
			continue;
		run = raw_filter_run(&scene->filter, 0, frames[i].byte, frames[i].length);
		check(!run.error, packets[i].name, "error", -run.error);
		check((run.outcome == OUTCOME_DROP_RULE) == is_dropped, packets[i].name, "outcome", run.outcome);
	}
}

static void check_prefix(struct scene *scene, size_t packet, struct rule *rule)
{
	scene_set_up(scene);
	scene_add(scene, rule);
	scene_check(scene, packet);
}

/* Each prefix length, for source and destination, and the same prefix with its last bit wrong. */
static void check_prefixes(struct scene *scene, size_t packet)
{
	const struct flow *flow = &packets[packet].flow;
	unsigned int bits = rule_length(flow, WHOLE);

	for (unsigned int length = 1; length <= bits; length++) {
		struct rule_kind kind[] = { { .src_len = length }, { .dst_len = length } };
		__u8 last = 0x80 >> (length - 1) % 8;
		struct rule rule;

		rule_from_flow(flow, &kind[0], RULE_DROP, &rule);
		check_prefix(scene, packet, &rule);
		rule.src.byte[(length - 1) / 8] ^= last;
		check_prefix(scene, packet, &rule);
		rule_from_flow(flow, &kind[1], RULE_DROP, &rule);
		check_prefix(scene, packet, &rule);
		rule.dst.byte[(length - 1) / 8] ^= last;
		check_prefix(scene, packet, &rule);
	}
}

GROUP_TEST(test_prefixes)
{
	bool is_done[FLOW_FAMILIES + 1] = { [FLOW_NO_FAMILY] = true };

	for (size_t i = 0; i < PACKETS; i++) {
		if (!is_done[packets[i].flow.family])
			check_prefixes(scene, i);
		is_done[packets[i].flow.family] = true;
	}
}

/* A pass rule beats the drop rule of the same flow, a narrower drop rule, and policy. */
GROUP_TEST(test_pass_beats_drop)
{
	struct rule pass, drop, narrow;

	for (size_t i = 0; i < PACKETS; i++) {
		if (!rule_from_flow(&packets[i].flow, &rule_kind_src, RULE_PASS, &pass))
			continue;
		scene_set_up(scene);
		scene->filter.config->table[0].drops = ~0;
		rule_from_flow(&packets[i].flow, &rule_kind_src, RULE_DROP, &drop);
		scene_add(scene, &drop);
		if (rule_from_flow(&packets[i].flow, &rule_kind_5_tuple, RULE_DROP, &narrow))
			scene_add(scene, &narrow);
		scene_check(scene, i);
		scene_add(scene, &pass);
		scene_check(scene, i);
	}
}

/* A monitor rule drops nothing, and neither a pass rule nor a drop rule nor a policy takes notice of it. */
GROUP_TEST(test_monitor_decides_last)
{
	struct rule monitor, narrow, pass;

	for (size_t i = 0; i < PACKETS; i++) {
		if (!rule_from_flow(&packets[i].flow, &rule_kind_src, RULE_MONITOR, &monitor))
			continue;
		for (int has_policy = 0; has_policy < 2; has_policy++) {
			scene_set_up(scene);
			scene->filter.config->table[0].drops = -has_policy;
			scene_add(scene, &monitor);
			scene_check(scene, i);
			if (rule_from_flow(&packets[i].flow, &rule_kind_5_tuple, RULE_DROP, &narrow))
				scene_add(scene, &narrow);
			scene_check(scene, i);
			rule_from_flow(&packets[i].flow, &rule_kind_src, RULE_PASS, &pass);
			scene_add(scene, &pass);
			scene_check(scene, i);
		}
	}
}

/* Only the shapes of the active list count. */
GROUP_TEST(test_active_copies)
{
	struct rule rule;

	for (size_t i = 0; i < PACKETS; i++) {
		for (__u64 active = 0; active < 2; active++) {
			if (!rule_from_flow(&packets[i].flow, &rule_kind_src, RULE_DROP, &rule))
				continue;
			scene_set_up(scene);
			scene->filter.config->table[0].shapes_active[rule.family] = active;
			scene_add(scene, &rule);
			scene_check(scene, i);
			scene->filter.config->table[0].shapes_active[rule.family] = !active;
			scene->rules = 0;
			scene_check(scene, i);
		}
	}
}

/* While nothing moves, the value of the sequence does not matter. */
GROUP_TEST(test_still_sequence)
{
	static const __u64 values[] = { 1, 2, 3, 1ULL << 32, ~0ULL };
	struct rule rule;

	for (size_t v = 0; v < COUNT(values); v++) {
		scene_set_up(scene);
		scene->filter.config->table[0].sequence = values[v];
		rule_from_flow(&packets[PACKETS - 1].flow, &rule_kind_src, RULE_DROP, &rule);
		scene_add(scene, &rule);
		scene_check_all(scene);
	}
}

/* The most shapes, with an entry of the last one. A higher count changes nothing. */
GROUP_TEST(test_last_of_64_shapes)
{
	struct rule rule;

	for (size_t i = 0; i < PACKETS; i++) {
		if (!rule_from_flow(&packets[i].flow, &rule_kind_src, RULE_DROP, &rule))
			continue;
		scene_set_up(scene);
		for (__u8 n = 1; n < ABI_SHAPES_MAX; n++)
			raw_filter_add_shape(&scene->filter, &(struct rule_shape){ .family = rule.family,
										   .action = RULE_DROP,
										   .src_len = n < 32 ? n : 0,
										   .dst_len = n < 32 ? 0 : n - 31 });
		scene_check(scene, i);
		scene_add(scene, &rule);
		assert_int_equal(scene->filter.config->table[0].shapes[rule.family][0].count, ABI_SHAPES_MAX);
		scene_check(scene, i);
		scene->filter.config->table[0].shapes[rule.family][0].count = ~0U;
		scene_check(scene, i);
	}
}

/* An entry is found in each slot of both buckets. */
GROUP_TEST(test_places)
{
	struct rule rule;

	for (size_t i = 0; i < PACKETS; i++) {
		for (unsigned int place = 0; place < 2 * BUCKET_SLOTS; place++) {
			if (!rule_from_flow(&packets[i].flow, &rule_kind_src, RULE_DROP, &rule))
				continue;
			scene_set_up(scene);
			scene_add_at(scene, &rule,
				     (struct raw_filter_place){ place / BUCKET_SLOTS, place % BUCKET_SLOTS });
			scene_check(scene, i);
		}
	}
}

/* A shape of one family and an entry of the other match nothing. */
GROUP_TEST(test_families)
{
	static const struct rule rule = { .family = FLOW_NO_FAMILY, .fields = RULE_PROTO, .proto = IPPROTO_UDP };
	struct rule_key keys[RULE_KEYS_MAX];

	assert_int_equal(rule_keys(&rule, keys), FLOW_FAMILIES);
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		struct rule of_family = rule;

		scene_set_up(scene);
		raw_filter_add_shape(&scene->filter, &keys[family].shape);
		raw_filter_add_key(&scene->filter, &keys[!family], (struct raw_filter_place){ 0 });
		scene_check_all(scene);
		of_family.family = family;
		scene_add(scene, &of_family);
		scene_check_all(scene);
	}
}

/* A geometry larger than the map: no crash, and no match. */
GROUP_TEST(test_too_many_buckets)
{
	static const struct bucket_geometry geometries[] = {
		{ 1U << 28, 36 }, { 7U << 25, 39 }, { 1U << 31, 33 }, { ~0U, 32 }, { ~0U, 0 },
	};
	struct rule rule;

	for (size_t g = 0; g < COUNT(geometries); g++) {
		scene_set_up(scene);
		rule_from_flow(&packets[PACKETS - 1].flow, &rule_kind_src, RULE_DROP, &rule);
		raw_filter_add(&scene->filter, &rule);
		scene->filter.config->table[0].geometry = geometries[g];
		scene_check_all(scene);
	}
}

/* The program for frames in several buffers counts every byte of such a frame. */
GROUP_TEST(test_several_buffers)
{
	static __u8 frame[JUMBO_BYTES];

	scene_set_up(scene);
	for (size_t i = 0; i < PACKETS; i++) {
		struct raw_filter_run run;

		if (packets[i].result != PARSE_OK)
			continue;
		memset(frame, PACKET_FILLER, sizeof(frame));
		memcpy(frame, frames[i].byte, frames[i].length);
		run = raw_filter_run(&scene->filter, RAW_FILTER_FRAGS, frame, sizeof(frame));
		check(!run.error, packets[i].name, "error", -run.error);
		check(run.outcome == OUTCOME_NO_RULE, packets[i].name, "outcome", run.outcome);
	}
}

/* Headers so long that the ports are after the first buffer of BPF_PROG_TEST_RUN. */
GROUP_TEST(test_ports_in_the_second_buffer)
{
	static const struct packet_piece pieces[] = {
		{ .build = packet_ethernet, .bytes = 14 },
		{ .build = packet_ipv6, .number = ETH_P_IPV6, .version = 6 },
		{ .build = packet_extension, .number = IPPROTO_DSTOPTS, .bytes = 2048 },
		{ .number = IPPROTO_DSTOPTS },
	};
	static __u8 frame[JUMBO_BYTES];
	struct packet_frame start = {};
	struct raw_filter_run run;
	struct rule rule;
	size_t behind;

	for (size_t i = 0; i < 3; i++)
		pieces[i].build(&start, &pieces[i], pieces[i + 1].number);
	memcpy(frame, start.byte, start.length);
	behind = start.length + 2048;
	memcpy(frame + start.length, start.byte + start.length - 2048, 2048);
	frame[start.length] = IPPROTO_UDP;
	packet_put16(frame + behind, 1234);
	packet_put16(frame + behind + 2, 53);
	packet_put16(frame + start.ip_start + 4, sizeof(frame) - start.addresses_end);
	for (int is_53 = 0; is_53 < 2; is_53++) {
		scene_set_up(scene);
		rule = parse_rule(is_53 ? "proto udp dport 53" : "proto udp dport 54");
		scene_add(scene, &rule);
		run = raw_filter_run(&scene->filter, RAW_FILTER_FRAGS, frame, sizeof(frame));
		check(!run.error, "ports in the second buffer", "error", -run.error);
		check(run.outcome == (is_53 ? OUTCOME_DROP_RULE : OUTCOME_NO_RULE), "ports in the second buffer",
		      "outcome", run.outcome);
	}
}

/* Wherever the first buffer ends, the verdict is the same as for the whole frame in one buffer. */
static void check_splits(struct scene *scene, size_t packet)
{
	enum { STEP = 7, END = 140 };
	const struct packet_frame *frame = &frames[packet];
	struct raw_filter_run whole, run;

	if (frame->length < RAW_FILTER_RUN_MIN)
		return;
	whole = raw_filter_run(&scene->filter, 0, frame->byte, frame->length);
	for (size_t first = 1 + packet % STEP; first < frame->length && first < END; first += STEP) {
		run = raw_filter_run_split(&scene->filter, frame->byte, frame->length, first);
		check(!run.error, packets[packet].name, "error", -run.error);
		check(run.outcome == whole.outcome && run.verdict == whole.verdict && run.number == whole.number,
		      packets[packet].name, "outcome where the first buffer ends at", first);
	}
}

GROUP_TEST(test_short_first_buffer)
{
	static const char *const texts[] = { "dport 53", "src 192.0.2.1", "src 2001:db8::/32" };
	static const __u8 some[2 * RAW_FILTER_RUN_MIN];
	struct rule rule;

	scene_set_up(scene);
	if (raw_filter_run_split(&scene->filter, some, sizeof(some), RAW_FILTER_RUN_MIN).error == -EINVAL) {
		fprintf(stderr, "skipped: this kernel runs no program on so short a first buffer\n");
		skip();
	}
	for (size_t set = 0; set < COUNT(texts); set++) {
		scene_set_up(scene);
		rule = parse_rule(texts[set]);
		scene_add(scene, &rule);
		for (size_t i = 0; i < PACKETS; i++)
			check_splits(scene, i);
	}
}

/* ---- the kinds of table ---- */

static const struct kind {
	const char *name;
	struct abi_options options;
} kinds[] = {
	{ "packets, exact", { .format = BUCKET_16, .is_exact = 1, .has_counts = 1 } },
	{ "packets, exact, not counting", { .format = BUCKET_16, .is_exact = 1 } },
	{ "packets, 16 bits", { .format = BUCKET_16 } },
	{ "packets, 32 bits", { .format = BUCKET_32 } },
	{ "packets, 8 bits", { .format = BUCKET_8 } },
	{ "packets, 17 bits", { .format = BUCKET_17 } },
};

static const struct kind *kind; /* of the scene */

static int open_filter(void **state)
{
	static struct scene scene;

	*state = &scene;
	return scene_open(&scene, &kind->options, 1 << 16);
}

static int open_with_hints(void **state)
{
	int error = open_filter(state);
	struct scene *scene = *state;

	scene->filter.reads_hints = true;
	return error;
}

int main(void)
{
	/* The first two groups do not depend on the kind of table. */
	static const struct CMUnitTest parsing[] = {
		ROW(test_truncations),        ROW(test_policies),
		ROW(test_ways_to_run),        ROW(test_dport_0_is_no_fragment),
		ROW(test_several_buffers),    ROW(test_ports_in_the_second_buffer),
		ROW(test_short_first_buffer),
	};
	static const struct CMUnitTest by_hints[] = {
		ROW(test_rules),
		ROW(test_prefixes),
		ROW(test_pass_beats_drop),
		ROW(test_monitor_decides_last),
		ROW(test_last_of_64_shapes),
		ROW(test_families),
	};
	static const struct CMUnitTest every_kind[] = {
		ROW(test_not_set_up),    ROW(test_no_shapes),       ROW(test_rules),
		ROW(test_prefixes),      ROW(test_pass_beats_drop), ROW(test_monitor_decides_last),
		ROW(test_active_copies), ROW(test_still_sequence),  ROW(test_last_of_64_shapes),
		ROW(test_places),        ROW(test_families),        ROW(test_too_many_buckets),
	};
	int failed;

	build_frames();
	kind = kinds;
	failed = cmocka_run_group_tests_name("packets, bpf", parsing, open_filter, scene_close);
	failed += cmocka_run_group_tests_name("packets, by hints", by_hints, open_with_hints, scene_close);
	for (kind = kinds; kind < kinds + COUNT(kinds); kind++)
		failed += cmocka_run_group_tests_name(kind->name, every_kind, open_filter, scene_close);
	return failed;
}
