// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every packet of tests/packets.c, three ways: through the parser on the host, through both BPF
 * programs under many configs, and cut at every length through all of them. What must come out is
 * told from the rows and from rule_matches() below, which compares fields one by one: no masks, no
 * hashes, no parser.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "packets.h"
#include "filter.h"

#define PACKETS (sizeof(packets) / sizeof(packets[0]))
#define RULES_MAX 4
#define FAILURES_SHOWN 20

static struct packet_frame frames[PACKETS];
static unsigned long checks, failures;

static void check(bool holds, const char *name, const char *what, size_t detail)
{
	checks++;
	if (!holds && failures++ < FAILURES_SHOWN)
		print_error("%s: %s %zu\n", name, what, detail);
}

static int begin_checks(void **state)
{
	(void)state;
	checks = failures = 0;
	return 0;
}

/* A test has not run where it checked nothing. */
static void end_checks(void)
{
	print_message("%lu checks, %lu failed\n", checks, failures);
	assert_int_equal(failures, 0);
	assert_int_not_equal(checks, 0);
}

/* ---- the parser on the host ---- */

static bool flow_equal(const struct flow *a, const struct flow *b)
{
	return !memcmp(a->src.byte, b->src.byte, 16) && !memcmp(a->dst.byte, b->dst.byte, 16) &&
	       a->sport == b->sport && a->dport == b->dport && a->proto == b->proto &&
	       a->family == b->family && a->port_kind == b->port_kind;
}

/* Parses a heap copy of exactly `length` bytes, so that a sanitizer sees what is read beyond. */
static enum parse_result parse_copy(const struct packet_frame *frame, size_t length,
				    struct flow *flow)
{
	__u8 *copy = malloc(length);
	enum parse_result result;

	memcpy(copy, frame->byte, length);
	memset(flow, PACKET_FILLER, sizeof(*flow));
	result = parse_frame(copy, copy + length, flow);
	free(copy);
	return result;
}

static void test_host_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < PACKETS; i++) {
		struct flow flow;
		enum parse_result result = parse_copy(&frames[i], frames[i].length, &flow);

		check(result == packets[i].result, packets[i].name, "parse result", result);
		check(flow_equal(&flow, &packets[i].flow), packets[i].name, "flow, result", result);
	}
	print_message("%zu packets\n", PACKETS);
	end_checks();
}

static void test_host_truncations(void **state)
{
	(void)state;
	for (size_t i = 0; i < PACKETS; i++) {
		for (size_t length = 0; length <= frames[i].length; length++) {
			struct flow flow, expected;
			enum parse_result result = parse_copy(&frames[i], length, &flow);

			check(result == packet_expect(&packets[i], &frames[i], length, &expected),
			      packets[i].name, "parse result, cut at", length);
			check(flow_equal(&flow, &expected), packets[i].name, "flow, cut at", length);
		}
	}
	end_checks();
}

/* ---- the programs ---- */

/* The filter, and the rules in it as the test means them. */
struct scene {
	struct filter filter;
	bool is_refused;
	const struct rule *rule[RULES_MAX];
	size_t rules;
};

static void scene_set_up(struct scene *scene)
{
	scene->rules = 0;
	filter_set_up(&scene->filter);
}

static void scene_add_at(struct scene *scene, const struct rule *rule, struct filter_place place)
{
	assert_true(scene->rules < RULES_MAX);
	scene->rule[scene->rules++] = rule;
	filter_add_at(&scene->filter, rule, place);
}

static void scene_add(struct scene *scene, const struct rule *rule)
{
	scene_add_at(scene, rule, (struct filter_place){ 0 });
}

static bool prefix_matches(const union flow_addr *network, const union flow_addr *address,
			   unsigned int length)
{
	for (unsigned int i = 0; i < length; i++)
		if ((network->byte[i / 8] ^ address->byte[i / 8]) & 0x80 >> i % 8)
			return false;
	return true;
}

static bool rule_matches(const struct rule *rule, const struct flow *flow)
{
	if (flow->family == FLOW_NO_FAMILY)
		return false;
	if (rule->family != FLOW_NO_FAMILY && rule->family != flow->family)
		return false;
	if (rule->fields & RULE_PROTO && rule->proto != flow->proto)
		return false;
	if (rule->fields & (RULE_SPORT | RULE_DPORT) && rule->port_kind != flow->port_kind)
		return false;
	if (rule->fields & RULE_SPORT && rule->sport != flow->sport)
		return false;
	if (rule->fields & RULE_DPORT && rule->dport != flow->dport)
		return false;
	return prefix_matches(&rule->src, &flow->src, rule->src_len) &&
	       prefix_matches(&rule->dst, &flow->dst, rule->dst_len);
}

static bool scene_has_match(const struct scene *scene, const struct flow *flow,
			    enum rule_action action)
{
	for (size_t i = 0; i < scene->rules; i++)
		if (scene->rule[i]->action == action && rule_matches(scene->rule[i], flow))
			return true;
	return false;
}

static enum abi_outcome scene_expect(const struct scene *scene, enum parse_result result,
				     const struct flow *flow, enum abi_verdict *verdict)
{
	*verdict = VERDICT_PASS;
	if (scene->filter.config->magic != ABI_MAGIC)
		return OUTCOME_NOT_SET_UP;
	if (scene_has_match(scene, flow, RULE_PASS))
		return OUTCOME_PASS_RULE;
	*verdict = VERDICT_DROP;
	if (scene_has_match(scene, flow, RULE_DROP))
		return OUTCOME_DROP_RULE;
	*verdict = scene->filter.config->policy[result];
	return (enum abi_outcome)result;
}

/* The first `length` bytes of one packet, through both programs. */
static void scene_check_cut(struct scene *scene, size_t packet, size_t length)
{
	const char *name = packets[packet].name;
	enum parse_result result;
	enum abi_verdict verdict;
	enum abi_outcome outcome;
	struct flow flow;

	result = packet_expect(&packets[packet], &frames[packet], length, &flow);
	outcome = scene_expect(scene, result, &flow, &verdict);
	for (size_t i = 0; i < FILTER_PROGRAMS; i++) {
		struct filter_run run =
			filter_run(&scene->filter, i, frames[packet].byte, length);

		check(!run.error, name, filter_program_names[i], -run.error);
		check(run.outcome == outcome, name, "outcome", run.outcome);
		check(run.verdict == verdict, name, "verdict", run.verdict);
	}
}

static void scene_check(struct scene *scene, size_t packet)
{
	if (frames[packet].length >= FILTER_RUN_MIN)
		scene_check_cut(scene, packet, frames[packet].length);
}

static void scene_check_all(struct scene *scene)
{
	for (size_t i = 0; i < PACKETS; i++)
		scene_check(scene, i);
}

static struct scene *scene_of(void **state)
{
	struct scene *scene = *state;

	if (scene->is_refused) {
		fprintf(stderr, "test_packets: skipped, the kernel refuses to load BPF: %s\n",
			geteuid() ? "not root" : "bpf() is not permitted");
		skip();
	}
	return scene;
}

/* ---- rules from flows ---- */

#define RULE_5_TUPLE (RULE_PROTO | RULE_SPORT | RULE_DPORT)
#define WHOLE 128 /* the length of an address, 32 bits in IPv4 */

struct rule_kind {
	__u8 fields, src_len, dst_len;
};

static const struct rule_kind rule_kinds[] = {
	{ .fields = RULE_5_TUPLE, .src_len = WHOLE, .dst_len = WHOLE },
	{ .src_len = WHOLE },
	{ .dst_len = WHOLE },
	{ .src_len = 24, .dst_len = 17 },
	{ .fields = RULE_PROTO },
	{ .fields = RULE_SPORT },
	{ .fields = RULE_DPORT },
	{ .fields = RULE_PROTO | RULE_DPORT, .src_len = 20 },
	{ .fields = RULE_PROTO, .src_len = WHOLE, .dst_len = WHOLE },
};

static const struct rule_kind rule_kind_src = { .src_len = WHOLE };
static const struct rule_kind rule_kind_5_tuple = {
	.fields = RULE_5_TUPLE, .src_len = WHOLE, .dst_len = WHOLE
};

#define RULE_KINDS (sizeof(rule_kinds) / sizeof(rule_kinds[0]))

static __u8 rule_length(const struct flow *flow, __u8 length)
{
	return flow->family == FLOW_IPV4 && length > 32 ? 32 : length;
}

/* The rule of a kind that matches the flow; false where the flow lacks addresses or ports. */
static bool rule_from_flow(const struct flow *flow, const struct rule_kind *kind,
			   enum rule_action action, struct rule *rule)
{
	bool has_port = kind->fields & (RULE_SPORT | RULE_DPORT);
	bool has_prefix = kind->src_len || kind->dst_len;

	if (flow->family == FLOW_NO_FAMILY || (has_port && flow->port_kind == FLOW_NO_PORTS))
		return false;
	*rule = (struct rule){
		.family = has_prefix ? flow->family : FLOW_NO_FAMILY,
		.action = action,
		.fields = kind->fields,
		.port_kind = has_port ? flow->port_kind : FLOW_NO_PORTS,
		.src_len = rule_length(flow, kind->src_len),
		.dst_len = rule_length(flow, kind->dst_len),
		.proto = kind->fields & RULE_PROTO ? flow->proto : 0,
		.sport = kind->fields & RULE_SPORT ? flow->sport : 0,
		.dport = kind->fields & RULE_DPORT ? flow->dport : 0,
	};
	rule->src = rule_network(&flow->src, rule->src_len);
	rule->dst = rule_network(&flow->dst, rule->dst_len);
	return true;
}

/* Rows with one flow need its rules only once. */
static bool is_first_of_flow(size_t packet)
{
	for (size_t i = 0; i < packet; i++)
		if (flow_equal(&packets[i].flow, &packets[packet].flow))
			return false;
	return true;
}

/* ---- the configs ---- */

static void test_not_set_up(void **state)
{
	struct scene *scene = scene_of(state);

	scene->rules = 0;
	filter_clear(&scene->filter);
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

/* With rules for addresses, for the protocol, for a port: a cut frame matches what it still says. */
static void test_truncations(void **state)
{
	static const char *const texts[] = { "dport 53", "src 192.0.2.1", "src 2001:db8::/32",
					     "proto udp" };
	struct scene *scene = scene_of(state);
	struct rule rule[sizeof(texts) / sizeof(texts[0])];
	struct reason reason;

	for (size_t set = 0; set <= sizeof(texts) / sizeof(texts[0]); set++) {
		scene_set_up(scene);
		if (set) {
			assert_int_equal(rule_parse(texts[set - 1], &rule[set - 1], &reason), 0);
			scene_add(scene, &rule[set - 1]);
		}
		for (size_t i = 0; i < PACKETS; i++)
			for (size_t n = FILTER_RUN_MIN; n <= frames[i].length; n++)
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

/* Every kind of rule, made from every flow, drops the packets that it names and no other. */
static void test_rules(void **state)
{
	struct scene *scene = scene_of(state);
	struct rule rule;

	for (size_t i = 0; i < PACKETS; i++) {
		for (size_t kind = 0; kind < RULE_KINDS && is_first_of_flow(i); kind++) {
			if (!rule_from_flow(&packets[i].flow, &rule_kinds[kind], RULE_DROP, &rule))
				continue;
			scene_set_up(scene);
			scene_add(scene, &rule);
			assert_true(rule_matches(&rule, &packets[i].flow));
			scene_check_all(scene);
		}
	}
	end_checks();
}

/* Told by the rows' protocols, not by rule_matches(). */
static void test_dport_0_is_no_fragment(void **state)
{
	struct scene *scene = scene_of(state);
	struct reason reason;
	struct rule rule;

	scene_set_up(scene);
	assert_int_equal(rule_parse("dport 0", &rule, &reason), 0);
	filter_add(&scene->filter, &rule);
	for (size_t i = 0; i < PACKETS; i++) {
		bool is_udp = packets[i].result == PARSE_OK && packets[i].flow.proto == IPPROTO_UDP;
		bool is_dropped = is_udp && packets[i].flow.dport == 0;
		struct filter_run run;

		if (frames[i].length < FILTER_RUN_MIN)
			continue;
		run = filter_run(&scene->filter, 0, frames[i].byte, frames[i].length);
		check(!run.error, packets[i].name, "error", -run.error);
		check((run.outcome == OUTCOME_DROP_RULE) == is_dropped, packets[i].name, "outcome",
		      run.outcome);
	}
	end_checks();
}

static void check_prefix(struct scene *scene, size_t packet, struct rule *rule)
{
	scene_set_up(scene);
	scene_add(scene, rule);
	scene_check(scene, packet);
}

/* Each length of prefix, of source and destination; and the same with its last bit wrong. */
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

/* The shapes are those of the active copy, and only those. */
static void test_active_copies(void **state)
{
	struct scene *scene = scene_of(state);
	struct rule rule;

	for (size_t i = 0; i < PACKETS; i++) {
		for (__u64 active = 0; active < 2; active++) {
			if (!rule_from_flow(&packets[i].flow, &rule_kind_src, RULE_DROP, &rule))
				continue;
			scene_set_up(scene);
			scene->filter.config->shapes[rule.family].active = active;
			scene_add(scene, &rule);
			scene_check(scene, i);
			scene->filter.config->shapes[rule.family].active = !active;
			scene->rules = 0;
			scene_check(scene, i);
		}
	}
	end_checks();
}

/* While nothing moves, any value of the sequence is as good as another. */
static void test_still_sequence(void **state)
{
	static const __u64 values[] = { 1, 2, 3, 1ULL << 32, ~0ULL };
	struct scene *scene = scene_of(state);
	struct rule rule;

	for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
		scene_set_up(scene);
		scene->filter.config->sequence = values[v];
		rule_from_flow(&packets[PACKETS - 1].flow, &rule_kind_src, RULE_DROP, &rule);
		scene_add(scene, &rule);
		scene_check_all(scene);
	}
	end_checks();
}

/* As many shapes as there may be; the entry is of the last. A count beyond that changes nothing. */
static void test_last_of_32_shapes(void **state)
{
	struct scene *scene = scene_of(state);
	struct rule rule;

	for (size_t i = 0; i < PACKETS; i++) {
		if (!rule_from_flow(&packets[i].flow, &rule_kind_src, RULE_DROP, &rule))
			continue;
		scene_set_up(scene);
		for (__u8 length = 1; length < ABI_SHAPES_MAX; length++)
			filter_add_shape(&scene->filter,
					 &(struct rule_shape){ .family = rule.family,
							       .action = RULE_DROP,
							       .src_len = length });
		scene_check(scene, i);
		scene_add(scene, &rule);
		assert_int_equal(scene->filter.config->shapes[rule.family].list[0].count,
				 ABI_SHAPES_MAX);
		scene_check(scene, i);
		scene->filter.config->shapes[rule.family].list[0].count = ~0ULL;
		scene_check(scene, i);
	}
	end_checks();
}

/* An entry is found in either bucket, in each slot. */
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
				     (struct filter_place){ place / BUCKET_SLOTS,
							    place % BUCKET_SLOTS });
			scene_check(scene, i);
		}
	}
	end_checks();
}

/* A shape of one family, with the entry of the other, matches neither. */
static void test_families(void **state)
{
	static const struct rule rule = { .family = FLOW_NO_FAMILY,
					  .fields = RULE_PROTO,
					  .proto = IPPROTO_UDP };
	struct scene *scene = scene_of(state);
	struct rule_key keys[RULE_KEYS_MAX];

	assert_int_equal(rule_keys(&rule, keys), FLOW_FAMILIES);
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		struct rule of_family = rule;

		scene_set_up(scene);
		filter_add_shape(&scene->filter, &keys[family].shape);
		filter_add_key(&scene->filter, &keys[!family], (struct filter_place){ 0 });
		scene_check_all(scene);
		of_family.family = family;
		scene_add(scene, &of_family);
		scene_check_all(scene);
	}
	end_checks();
}

/* A geometry that the map does not have: no crash, and no match. */
static void test_bucket_mask_too_wide(void **state)
{
	static const unsigned int bits[] = { 28, 32, 33, 63 };
	struct scene *scene = scene_of(state);
	struct rule rule;

	for (size_t b = 0; b < sizeof(bits) / sizeof(bits[0]); b++) {
		scene_set_up(scene);
		rule_from_flow(&packets[PACKETS - 1].flow, &rule_kind_src, RULE_DROP, &rule);
		filter_add(&scene->filter, &rule);
		scene->filter.config->bucket_mask = (1ULL << bits[b]) - 1;
		scene->filter.config->step_shift = 64 - bits[b];
		scene_check_all(scene);
	}
	end_checks();
}

static int open_filter(void **state)
{
	static struct scene scene;
	int error = filter_open(XDP_CUCKOO_OBJECT, &scene.filter);

	scene.is_refused = error == -EPERM || error == -EACCES || error == -ENOSYS;
	*state = &scene;
	return scene.is_refused ? 0 : error;
}

static int close_filter(void **state)
{
	struct scene *scene = *state;

	filter_close(&scene->filter);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup(name, begin_checks)

int main(void)
{
	static const struct CMUnitTest host[] = {
		TEST(test_host_rows),
		TEST(test_host_truncations),
	};
	static const struct CMUnitTest bpf[] = {
		TEST(test_not_set_up),
		TEST(test_no_shapes),
		TEST(test_truncations),
		TEST(test_policies),
		TEST(test_rules),
		TEST(test_dport_0_is_no_fragment),
		TEST(test_prefixes),
		TEST(test_pass_beats_drop),
		TEST(test_active_copies),
		TEST(test_still_sequence),
		TEST(test_last_of_32_shapes),
		TEST(test_places),
		TEST(test_families),
		TEST(test_bucket_mask_too_wide),
	};
	int failed;

	for (size_t i = 0; i < PACKETS; i++)
		packet_build(&packets[i], &frames[i]);
	failed = cmocka_run_group_tests_name("packets, host", host, NULL, NULL);
	return failed + cmocka_run_group_tests_name("packets, bpf", bpf, open_filter, close_filter);
}
