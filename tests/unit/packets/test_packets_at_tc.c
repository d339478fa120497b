// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sends every packet of tests/packets.c through the programs at tc, whole and cut at every length. A sent packet must get
 * the verdict of the packet that comes the other way.
 */
#include "unit/packets_fixture.h"

enum { SENT, IP, IP_SENT };

#define IP_OFFSET ETH_HLEN

static int open_at_tc(void **state)
{
	static const struct abi_options options = { .format = BUCKET_16, .is_exact = 1, .has_counts = 1 };
	static struct scene scene;

	*state = &scene;
	scene.error =
		raw_filter_open(XDP_CUCKOO_BUILD "/xdp_cuckoo_tc.bpf.o", &options, table_geometry(1024), &scene.filter);
	return scene.error == -EPERM || scene.error == -ENOSYS ? 0 : scene.error;
}

/* The packet of the same conversation in the other direction, in other words than include/flow.h. */
static struct flow other_way(const struct flow *flow)
{
	static const __u8 asked[2][6] = { { 8, 10, 13, 15, 17, 42 }, { 128, 133, 135, 139, 160 } };
	static const __u8 answered[2][6] = { { 0, 9, 14, 16, 18, 43 }, { 129, 134, 136, 140, 161 } };
	struct flow other = *flow;

	other.src = flow->dst;
	other.dst = flow->src;
	if (flow->port_kind != FLOW_ICMP) {
		other.sport = flow->dport;
		other.dport = flow->sport;
		return other;
	}
	for (size_t i = 0; i < 6 && asked[flow->family == FLOW_IPV6][i]; i++) {
		if (flow->sport == bpf_htons(asked[flow->family == FLOW_IPV6][i]))
			other.sport = bpf_htons(answered[flow->family == FLOW_IPV6][i]);
		if (flow->sport == bpf_htons(answered[flow->family == FLOW_IPV6][i]))
			other.sport = bpf_htons(asked[flow->family == FLOW_IPV6][i]);
	}
	return other;
}

/* Whether a program without Ethernet headers must see the same packet in this frame. */
static bool is_ip_packet(const struct packet_frame *frame, size_t length)
{
	const __u8 *type = frame->byte + IP_OFFSET - 2;
	const __u8 version = frame->byte[IP_OFFSET] >> 4;

	return length > IP_OFFSET &&
	       ((type[0] == 8 && !type[1] && version == 4) || (type[0] == 0x86 && type[1] == 0xdd && version == 6));
}

static void check_at_tc(struct scene *scene, size_t packet, size_t length)
{
	const char *name = packets[packet].name;

	for (size_t program = SENT; program <= IP_SENT; program++) {
		const bool is_sent = program != IP;
		enum parse_result result;
		enum abi_verdict verdict;
		enum abi_outcome outcome;
		struct raw_filter_run run;
		struct flow flow;

		if (program != SENT && !is_ip_packet(&frames[packet], length))
			continue;
		result = packet_expect(&packets[packet], &frames[packet], length, &flow);
		/* Here the packet is longer than it would be without its Ethernet header. */
		if (program != SENT &&
		    (result == PARSE_TRUNCATED || (result == PARSE_TOO_MANY_HEADERS && length < frames[packet].length)))
			continue;
		if (is_sent)
			flow = other_way(&flow);
		outcome = scene_expect(scene, result, &flow, &verdict);
		run = raw_filter_run(&scene->filter, program, frames[packet].byte, length);
		/* Newer kernels refuse to run frames that end in the IP header. */
		if (run.error == -EINVAL)
			continue;
		check(!run.error, name, raw_filter_tc_names[program], -run.error);
		check(run.outcome == outcome, name, "outcome", run.outcome);
		check(run.verdict == verdict, name, "verdict", run.verdict);
		check(scene_may_count(scene, &flow, result, outcome, run.number), name, "counted rule", run.number);
	}
}

static void check_all(struct scene *scene)
{
	for (size_t i = 0; i < PACKETS; i++)
		if (frames[i].length >= RAW_FILTER_RUN_MIN)
			check_at_tc(scene, i, frames[i].length);
}

SCENE_TEST(test_not_set_up)
{
	scene->rules = 0;
	raw_filter_clear(&scene->filter);
	check_all(scene);
}

SCENE_TEST(test_truncations)
{
	static const char *const texts[] = { "sport 53", "src 198.51.100.7", "dport 53", "dst 2001:db8:f::/48",
					     "proto udp" };

	for (size_t set = 0; set < COUNT(texts); set++) {
		const struct rule rule = parse_rule(texts[set]);

		scene_set_up(scene);
		scene_add(scene, &rule);
		for (size_t i = 0; i < PACKETS; i++)
			for (size_t n = RAW_FILTER_RUN_MIN; n <= frames[i].length; n += n > 256 ? 13 : 1)
				check_at_tc(scene, i, n);
	}
}

SCENE_TEST(test_policies)
{
	for (size_t outcome = 0; outcome < OUTCOME_POLICIES; outcome++) {
		scene_set_up(scene);
		scene->filter.config->table[0].drops = 1U << outcome;
		check_all(scene);
	}
}

/* Rules of every kind for each packet, as received and as sent. */
static void check_rule(struct scene *scene, size_t packet, struct rule *rule)
{
	const struct flow other = other_way(&packets[packet].flow);
	struct rule mirrored = *rule;

	scene_set_up(scene);
	scene_add(scene, rule);
	check_at_tc(scene, packet, frames[packet].length);
	rule_exchange(&mirrored);
	/* Without an address the rule does not say that it is about ICMP in the wrong version of IP. */
	if ((other.proto == IPPROTO_ICMP) == (other.family == FLOW_IPV6) && other.port_kind == FLOW_ICMP)
		return;
	check(rule_matches(&mirrored, &other, packets[packet].result), packets[packet].name, "rule_exchange", 0);
	scene_set_up(scene);
	scene_add(scene, &mirrored);
	check_at_tc(scene, packet, frames[packet].length);
}

SCENE_TEST(test_rules)
{
	each_rule(scene, check_rule);
}

SCENE_TEST(test_ways_to_run)
{
	const struct rule rule = parse_rule("proto udp");

	for (__u32 run = 0; run <= (ABI_RUN_SET_UP | ABI_RUN_MONITOR | ABI_RUN_PANIC); run++) {
		scene_set_up(scene);
		scene_add(scene, &rule);
		scene->filter.config->run = run;
		check_all(scene);
	}
}

/* A host may begin, so rules with `state new` are not for what it sends. */
SCENE_TEST(test_state_new)
{
	const struct rule rule = parse_rule("state new proto icmp");
	size_t matched = 0;

	scene_set_up(scene);
	raw_filter_add(&scene->filter, &rule);
	for (size_t i = 0; i < PACKETS; i++)
		for (size_t program = SENT; program <= IP_SENT; program++) {
			struct raw_filter_run run;

			if (!is_ip_packet(&frames[i], frames[i].length))
				continue;
			run = raw_filter_run(&scene->filter, program, frames[i].byte, frames[i].length);
			check(!run.error, packets[i].name, "error", -run.error);
			check(program == IP || run.outcome != OUTCOME_DROP_RULE, packets[i].name, "outcome",
			      run.outcome);
			matched += run.outcome == OUTCOME_DROP_RULE;
		}
	assert_true(matched);
}

/* The first row that is UDP over plain IP of this family. */
static size_t find_udp(enum flow_family family)
{
	size_t i = 0;

	while (packets[i].result != PARSE_OK || packets[i].flow.family != family ||
	       packets[i].flow.proto != IPPROTO_UDP || !is_ip_packet(&frames[i], frames[i].length) ||
	       frames[i].length > 70)
		i++;
	return i;
}

/* What the filter makes of a sent UDP packet between these addresses. */
static enum abi_outcome outcome_between(struct scene *scene, const char *rule_text, const char *src, const char *dst)
{
	const struct rule rule = parse_rule(rule_text), from = parse_rule(src), to = parse_rule(dst);
	struct packet_frame frame = frames[find_udp((enum flow_family)from.family)];
	const size_t bytes = from.family == FLOW_IPV4 ? 4 : 16;
	struct raw_filter_run run;

	memcpy(frame.byte + IP_OFFSET + (from.family == FLOW_IPV4 ? 12 : 8), &from.src, bytes);
	memcpy(frame.byte + IP_OFFSET + (from.family == FLOW_IPV4 ? 16 : 24), &to.src, bytes);
	scene_set_up(scene);
	raw_filter_add(&scene->filter, &rule);
	run = raw_filter_run(&scene->filter, SENT, frame.byte, frame.length);
	check(!run.error, rule_text, "error", -run.error);
	return run.outcome;
}

/* No packet comes from a group, so both directions go to it. */
SCENE_TEST(test_groups)
{
	static const struct {
		const char *rule, *src, *dst;
		enum abi_outcome outcome;
	} rows[] = {
		{ "src 192.0.2.9", "192.0.2.1", "192.0.2.9", OUTCOME_DROP_RULE },
		{ "dst 192.0.2.9", "192.0.2.1", "192.0.2.9", OUTCOME_NO_RULE },
		{ "dst 192.0.2.1", "192.0.2.1", "192.0.2.9", OUTCOME_DROP_RULE },
		{ "src 224.0.0.0/4", "192.0.2.1", "224.0.0.251", OUTCOME_NO_RULE },
		{ "src 192.0.2.1", "192.0.2.1", "239.255.255.255", OUTCOME_DROP_RULE },
		{ "dst 224.0.0.251", "192.0.2.1", "224.0.0.251", OUTCOME_DROP_RULE },
		{ "src 240.0.0.0/4", "192.0.2.1", "240.0.0.1", OUTCOME_DROP_RULE },
		{ "src 223.255.255.255", "192.0.2.1", "223.255.255.255", OUTCOME_DROP_RULE },
		{ "src 240.0.0.0/4", "192.0.2.1", "255.255.255.255", OUTCOME_NO_RULE },
		{ "dst 255.255.255.255", "192.0.2.1", "255.255.255.255", OUTCOME_DROP_RULE },
		{ "dst 255.255.255.255", "0.0.0.0", "255.255.255.255", OUTCOME_PASS_RULE },
		{ "src 0.0.0.0/8", "0.0.0.0", "255.255.255.255", OUTCOME_PASS_RULE },
		{ "dst 0.0.0.0/8", "0.0.0.0", "192.0.2.9", OUTCOME_DROP_RULE },
		{ "src ff00::/8", "2001:db8::1", "ff02::1:ff00:7", OUTCOME_NO_RULE },
		{ "dst ff02::/16", "2001:db8::1", "ff02::1:ff00:7", OUTCOME_DROP_RULE },
		{ "dst ff02::/16", "::", "ff02::1:ff00:7", OUTCOME_PASS_RULE },
		{ "src fe00::/8", "2001:db8::1", "fe80::7", OUTCOME_DROP_RULE },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const enum abi_outcome outcome = outcome_between(scene, rows[i].rule, rows[i].src, rows[i].dst);

		check(outcome == rows[i].outcome, rows[i].rule, rows[i].dst, outcome);
	}
}

/*
 * A packet that will be cut counts as so many packets, each counter in the row of its direction, and the bytes that it will
 * have on the wire. A rule compares the length of each of them. If the kernel does not know their number, as of a packet
 * from a virtual machine, its length and theirs tell it.
 */
static void check_gso(struct scene *scene, __u32 known)
{
	struct __sk_buff context = { .gso_segs = known, .gso_size = 10 };
	size_t packet = 0;
	__u64 parts;

	while (packets[packet].flow.proto != IPPROTO_TCP || !is_ip_packet(&frames[packet], frames[packet].length))
		packet++;
	parts = known ? known : (frames[packet].length + 9) / 10;
	for (size_t program = SENT; program <= IP_SENT; program++) {
		LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frames[packet].byte,
			    .data_size_in = frames[packet].length, .ctx_in = &context, .ctx_size_in = sizeof(context),
			    .repeat = 1);
		struct abi_counter before[ABI_COUNTERS], after[ABI_COUNTERS];
		const int dropped = OUTCOME_DROP_RULE * VERDICTS + VERDICT_DROP;

		struct rule rule = parse_rule("proto tcp length 30");

		/* A received packet has no length on the wire: nothing tells how long the headers of its parts are. */
		context.wire_len = frames[packet].length + (program == IP ? 0 : 6 * (IP_OFFSET + 20));
		if (program == IP || !known)
			rule = parse_rule("proto tcp");
		scene_set_up(scene);
		raw_filter_add(&scene->filter, &rule);
		memset(&scene->filter.table.memory.counter[scene->filter.slot[0]], 0, sizeof(struct abi_counter));
		assert_int_equal(raw_filter_count(&scene->filter, before), 0);
		assert_int_equal(bpf_prog_test_run_opts(scene->filter.program[program], &opts), 0);
		assert_int_equal(raw_filter_count(&scene->filter, after), 0);
		check(opts.retval == TC_ACT_SHOT, raw_filter_tc_names[program], "returned", opts.retval);
		check(after[dropped].packets - before[dropped].packets == parts, raw_filter_tc_names[program],
		      "packets", after[dropped].packets - before[dropped].packets);
		check(after[dropped].bytes - before[dropped].bytes == context.wire_len, raw_filter_tc_names[program],
		      "bytes", after[dropped].bytes - before[dropped].bytes);
		check(scene->filter.table.memory.counter[scene->filter.slot[0]].packets == parts ||
			      scene->filter.table.memory.counter[scene->filter.slot[1]].packets == parts,
		      raw_filter_tc_names[program], "packets of the rule", 0);
	}
	raw_filter_count(&scene->filter, scene->filter.counted);
}

SCENE_TEST(test_gso)
{
	check_gso(scene, 7);
	check_gso(scene, 0);
}

int main(void)
{
	build_frames();
	return cmocka_run_group_tests(tests, open_at_tc, scene_close);
}
