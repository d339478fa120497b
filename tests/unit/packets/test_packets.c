// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sends every packet of tests/packets.c through both BPF programs, whole and cut at every length, with many
 * configs and each kind of table. test_parse_packet.c tests the parser alone.
 */
#include "unit/packets_fixture.h"

#define JUMBO_BYTES 9000

/* ---- the configs ---- */

static void test_not_set_up(void **state)
{
	struct scene *scene = scene_of(state);

	scene->rules = 0;
	raw_filter_clear(&scene->filter);
	scene_check_all(scene);
	end_checks();
}

static void test_no_shapes(void **state)
{
	struct scene *scene = scene_of(state);

	scene_set_up(scene);
	scene_check_all(scene);
	end_checks();
}

/* The step to the next cut. In long frames it is 13, an odd number, so that each place in a header is cut. */
static size_t next_cut(const struct packet_frame *frame, size_t length)
{
	return length > 256 && length + 128 < frame->length ? 13 : 1;
}

/* A cut frame still matches rules about the fields that it has. */
static void test_truncations(void **state)
{
	static const char *const texts[] = { "dport 53", "src 192.0.2.1", "src 2001:db8::/32", "proto udp" };
	struct scene *scene = scene_of(state);
	struct rule rule;

	for (size_t set = 0; set <= sizeof(texts) / sizeof(texts[0]); set++) {
		scene_set_up(scene);
		if (set) {
			rule = parse_rule(texts[set - 1]);
			scene_add(scene, &rule);
		}
		for (size_t i = 0; i < PACKETS; i++)
			for (size_t n = RAW_FILTER_RUN_MIN; n <= frames[i].length; n += next_cut(&frames[i], n))
				scene_check_cut(scene, i, n);
	}
	end_checks();
}

static void test_policies(void **state)
{
	struct scene *scene = scene_of(state);

	for (size_t outcome = 0; outcome < OUTCOME_POLICIES; outcome++) {
		scene_set_up(scene);
		scene->filter.config->policy[outcome] = VERDICT_DROP;
		scene_check_all(scene);
	}
	end_checks();
}

/* Each combination of run bits, with a rule and with policies that drop. */
static void test_ways_to_run(void **state)
{
	static const __u32 confirm_by[] = { SCENE_PAST, SCENE_FUTURE };
	const __u32 all = ABI_RUN_SET_UP | ABI_RUN_MONITOR | ABI_RUN_PANIC | ABI_RUN_UNCONFIRMED;
	struct scene *scene = scene_of(state);
	const struct rule rule = parse_rule("proto udp");

	for (__u32 run = 0; run <= all; run++)
		for (size_t i = 0; i < sizeof(confirm_by) / sizeof(confirm_by[0]); i++) {
			scene_set_up(scene);
			scene_add(scene, &rule);
			scene->filter.config->policy[OUTCOME_LATER_FRAGMENT] = VERDICT_DROP;
			scene->filter.config->policy[OUTCOME_NOT_IP] = VERDICT_DROP;
			scene->filter.config->run = run;
			scene->filter.config->confirm_by = confirm_by[i];
			scene_check_all(scene);
		}
	end_checks();
}

static void check_rule(struct scene *scene, size_t packet, struct rule *rule)
{
	scene_set_up(scene);
	scene_add(scene, rule);
	assert_true(rule_matches(rule, &packets[packet].flow));
	scene_check_all(scene);
}

/* A rule drops the packets that match it and no others. */
static void test_rules(void **state)
{
	each_rule(scene_of(state), check_rule);
	end_checks();
}

/* Checked by the protocol of the row, not by rule_matches(). */
static void test_dport_0_is_no_fragment(void **state)
{
	struct scene *scene = scene_of(state);
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
	end_checks();
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

static void test_prefixes(void **state)
{
	bool is_done[FLOW_FAMILIES + 1] = { [FLOW_NO_FAMILY] = true };
	struct scene *scene = scene_of(state);

	for (size_t i = 0; i < PACKETS; i++) {
		if (!is_done[packets[i].flow.family])
			check_prefixes(scene, i);
		is_done[packets[i].flow.family] = true;
	}
	end_checks();
}

/* A pass rule beats the drop rule of the same flow, a narrower drop rule, and policy. */
static void test_pass_beats_drop(void **state)
{
	struct scene *scene = scene_of(state);
	struct rule pass, drop, narrow;

	for (size_t i = 0; i < PACKETS; i++) {
		if (!rule_from_flow(&packets[i].flow, &rule_kind_src, RULE_PASS, &pass))
			continue;
		scene_set_up(scene);
		memset(scene->filter.config->policy, VERDICT_DROP, OUTCOME_POLICIES);
		rule_from_flow(&packets[i].flow, &rule_kind_src, RULE_DROP, &drop);
		scene_add(scene, &drop);
		if (rule_from_flow(&packets[i].flow, &rule_kind_5_tuple, RULE_DROP, &narrow))
			scene_add(scene, &narrow);
		scene_check(scene, i);
		scene_add(scene, &pass);
		scene_check(scene, i);
	}
	end_checks();
}

/* Only the shapes of the active list count. */
static void test_active_copies(void **state)
{
	struct scene *scene = scene_of(state);
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
	end_checks();
}

/* While nothing moves, the value of the sequence does not matter. */
static void test_still_sequence(void **state)
{
	static const __u64 values[] = { 1, 2, 3, 1ULL << 32, ~0ULL };
	struct scene *scene = scene_of(state);
	struct rule rule;

	for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
		scene_set_up(scene);
		scene->filter.config->table[0].sequence = values[v];
		rule_from_flow(&packets[PACKETS - 1].flow, &rule_kind_src, RULE_DROP, &rule);
		scene_add(scene, &rule);
		scene_check_all(scene);
	}
	end_checks();
}

/* The most shapes, with an entry of the last one. A higher count changes nothing. */
static void test_last_of_32_shapes(void **state)
{
	struct scene *scene = scene_of(state);
	struct rule rule;

	for (size_t i = 0; i < PACKETS; i++) {
		if (!rule_from_flow(&packets[i].flow, &rule_kind_src, RULE_DROP, &rule))
			continue;
		scene_set_up(scene);
		for (__u8 length = 1; length < ABI_SHAPES_MAX; length++)
			raw_filter_add_shape(&scene->filter, &(struct rule_shape){ .family = rule.family,
										   .action = RULE_DROP,
										   .src_len = length });
		scene_check(scene, i);
		scene_add(scene, &rule);
		assert_int_equal(scene->filter.config->table[0].shapes[rule.family][0].count, ABI_SHAPES_MAX);
		scene_check(scene, i);
		scene->filter.config->table[0].shapes[rule.family][0].count = ~0U;
		scene_check(scene, i);
	}
	end_checks();
}

/* An entry is found in each slot of both buckets. */
static void test_places(void **state)
{
	struct scene *scene = scene_of(state);
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
	end_checks();
}

/* A shape of one family and an entry of the other match nothing. */
static void test_families(void **state)
{
	static const struct rule rule = { .family = FLOW_NO_FAMILY, .fields = RULE_PROTO, .proto = IPPROTO_UDP };
	struct scene *scene = scene_of(state);
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
	end_checks();
}

/* A geometry larger than the map: no crash, and no match. */
static void test_too_many_buckets(void **state)
{
	static const struct bucket_geometry geometries[] = {
		{ 1U << 28, 36 }, { 7U << 25, 39 }, { 1U << 31, 33 }, { ~0U, 32 }, { ~0U, 0 },
	};
	struct scene *scene = scene_of(state);
	struct rule rule;

	for (size_t g = 0; g < sizeof(geometries) / sizeof(geometries[0]); g++) {
		scene_set_up(scene);
		rule_from_flow(&packets[PACKETS - 1].flow, &rule_kind_src, RULE_DROP, &rule);
		raw_filter_add(&scene->filter, &rule);
		scene->filter.config->table[0].geometry = geometries[g];
		scene_check_all(scene);
	}
	end_checks();
}

/* The program for frames in several buffers counts every byte of such a frame. */
static void test_several_buffers(void **state)
{
	static __u8 frame[JUMBO_BYTES];
	struct scene *scene = scene_of(state);

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
	end_checks();
}

/* Headers so long that the ports are after the first buffer of BPF_PROG_TEST_RUN. */
static void test_ports_in_the_second_buffer(void **state)
{
	static const struct packet_piece pieces[] = {
		{ .build = packet_ethernet, .bytes = 14 },
		{ .build = packet_ipv6, .number = ETH_P_IPV6, .version = 6 },
		{ .build = packet_extension, .number = IPPROTO_DSTOPTS, .bytes = 2048 },
		{ .number = IPPROTO_DSTOPTS },
	};
	static __u8 frame[JUMBO_BYTES];
	struct scene *scene = scene_of(state);
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
		assert_int_equal(run.error, 0);
		assert_int_equal(run.outcome, is_53 ? OUTCOME_DROP_RULE : OUTCOME_NO_RULE);
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

static void test_short_first_buffer(void **state)
{
	static const char *const texts[] = { "dport 53", "src 192.0.2.1", "src 2001:db8::/32" };
	static const __u8 some[2 * RAW_FILTER_RUN_MIN];
	struct scene *scene = scene_of(state);
	struct rule rule;

	scene_set_up(scene);
	if (raw_filter_run_split(&scene->filter, some, sizeof(some), RAW_FILTER_RUN_MIN).error == -EINVAL) {
		fprintf(stderr, "skipped: this kernel runs no program on so short a first buffer\n");
		skip();
	}
	for (size_t set = 0; set < sizeof(texts) / sizeof(texts[0]); set++) {
		scene_set_up(scene);
		rule = parse_rule(texts[set]);
		scene_add(scene, &rule);
		for (size_t i = 0; i < PACKETS; i++)
			check_splits(scene, i);
	}
	end_checks();
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
	return scene_open(&scene, &kind->options, 1 << ABI_SLOTS_DEFAULT_LOG2);
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
		TEST(test_truncations),        TEST(test_policies),
		TEST(test_ways_to_run),        TEST(test_dport_0_is_no_fragment),
		TEST(test_several_buffers),    TEST(test_ports_in_the_second_buffer),
		TEST(test_short_first_buffer),
	};
	static const struct CMUnitTest by_hints[] = {
		TEST(test_rules),    TEST(test_prefixes), TEST(test_pass_beats_drop), TEST(test_last_of_32_shapes),
		TEST(test_families),
	};
	static const struct CMUnitTest every_kind[] = {
		TEST(test_not_set_up),     TEST(test_no_shapes),         TEST(test_rules),
		TEST(test_prefixes),       TEST(test_pass_beats_drop),   TEST(test_active_copies),
		TEST(test_still_sequence), TEST(test_last_of_32_shapes), TEST(test_places),
		TEST(test_families),       TEST(test_too_many_buckets),
	};
	int failed;

	build_frames();
	kind = kinds;
	failed = cmocka_run_group_tests_name("packets, bpf", parsing, open_filter, scene_close);
	failed += cmocka_run_group_tests_name("packets, by hints", by_hints, open_with_hints, scene_close);
	for (kind = kinds; kind < kinds + sizeof(kinds) / sizeof(kinds[0]); kind++)
		failed += cmocka_run_group_tests_name(kind->name, every_kind, open_filter, scene_close);
	return failed;
}
