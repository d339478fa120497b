/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A scene is a loaded filter with its rules. The test computes the expected verdict of a packet from its row in
 * tests/unit/packets.c and from rule_matches(), which compares field by field, without masks, hashes or the parser.
 */
#ifndef XDP_CUCKOO_TEST_PACKETS_FIXTURE_H
#define XDP_CUCKOO_TEST_PACKETS_FIXTURE_H

#include "unit/packets.h"
#include "unit/raw_filter.h"
#include "unit/test.h"

#define PACKETS (sizeof(packets) / sizeof(packets[0]))
#define RULES_MAX 4
#define FAILURES_SHOWN 20
#define SCENE_PAST 1u /* a tick that is over, and one that is far away */
#define SCENE_FUTURE ~0u

static struct packet_frame frames[PACKETS];
static unsigned long checks, failures;

static inline void check(bool holds, const char *name, const char *what, size_t detail)
{
	checks++;
	if (!holds && failures++ < FAILURES_SHOWN)
		print_error("%s: %s %zu\n", name, what, detail);
}

static inline int begin_checks(void **state)
{
	(void)state;
	checks = failures = 0;
	return 0;
}

/* A test that checks nothing has not run, and fails. */
static inline void end_checks(void)
{
	print_message("%lu checks, %lu failed\n", checks, failures);
	assert_int_equal(failures, 0);
	assert_int_not_equal(checks, 0);
}

/* Of an IPv4 address only 4 bytes are set, and used. */
static inline bool flow_equal(const struct flow *a, const struct flow *b)
{
	const size_t bytes = a->family == FLOW_IPV4 ? sizeof(a->src.v4) : sizeof(a->src.byte);

	return !memcmp(a->src.byte, b->src.byte, bytes) && !memcmp(a->dst.byte, b->dst.byte, bytes) &&
	       a->sport == b->sport && a->dport == b->dport && a->proto == b->proto && a->family == b->family &&
	       a->port_kind == b->port_kind;
}

static inline void build_frames(void)
{
	for (size_t i = 0; i < PACKETS; i++)
		packet_build(&packets[i], &frames[i]);
}

static inline struct rule parse_rule(const char *text)
{
	struct reason reason;
	struct rule rule;

	assert_int_equal(rule_parse(text, &rule, &reason), 0);
	return rule;
}

struct scene {
	struct raw_filter filter;
	int error; /* of raw_filter_open() */
	const struct rule *rule[RULES_MAX];
	__u32 number[RULES_MAX]; /* of each rule's last key */
	size_t rules;
};

/* Tests skip if the kernel refuses BPF altogether. EACCES fails the test: the verifier has rejected the program. */
static inline int scene_open(struct scene *scene, const struct abi_options *options, __u64 slots)
{
	int error = raw_filter_open(XDP_CUCKOO_OBJECT, options, table_geometry(slots), &scene->filter);

	scene->error = error;
	return error == -EPERM || error == -ENOSYS ? 0 : error;
}

/* The setup of a group whose state is the scene. Its table is exact and counts. */
static inline int scene_open_exact(void **state)
{
	static const struct abi_options options = { .format = BUCKET_16, .is_exact = 1, .has_counts = 1 };
	static struct scene scene;

	*state = &scene;
	return scene_open(&scene, &options, 1024);
}

static inline int scene_close(void **state)
{
	struct scene *scene = *state;

	raw_filter_close(&scene->filter);
	return 0;
}

static inline void scene_set_up(struct scene *scene)
{
	scene->rules = 0;
	raw_filter_set_up(&scene->filter);
}

static inline void scene_add_at(struct scene *scene, const struct rule *rule, struct raw_filter_place place)
{
	assert_true(scene->rules < RULES_MAX);
	scene->rule[scene->rules] = rule;
	raw_filter_add_at(&scene->filter, rule, place);
	scene->number[scene->rules++] = scene->filter.numbers - 1;
}

static inline void scene_add(struct scene *scene, const struct rule *rule)
{
	scene_add_at(scene, rule, (struct raw_filter_place){ 0 });
}

static inline bool prefix_matches(const union flow_addr *network, const union flow_addr *address, unsigned int length)
{
	for (unsigned int i = 0; i < length; i++)
		if ((network->byte[i / 8] ^ address->byte[i / 8]) & 0x80 >> i % 8)
			return false;
	return true;
}

/* What `state new` says of these packets, in other words than include/flow.h. No socket waits for a datagram here. */
static inline bool begins_something(const struct flow *flow, enum parse_result result)
{
	static const __u8 asks[2][7] = { { 8, 10, 13, 15, 17, 42 }, { 128, 130, 139, 160 } };

	if (result == PARSE_LATER_FRAGMENT)
		return false;
	if (flow->port_kind == FLOW_ICMP)
		return bpf_ntohs(flow->sport) &&
		       memchr(asks[flow->family == FLOW_IPV6], bpf_ntohs(flow->sport), sizeof(asks[0]));
	if (flow->proto == IPPROTO_UDP && bpf_ntohs(flow->dport) == (flow->family == FLOW_IPV4 ? 68 : 546))
		return bpf_ntohs(flow->sport) != (flow->family == FLOW_IPV4 ? 67 : 547);
	/* Without flags the header is cut. */
	return flow->proto != IPPROTO_TCP || !flow->tcp_flags || (flow->tcp_flags & 0x12) == 2;
}

/* The rule's TCP flags, fragment, length and blocks of ports, bit by bit. */
static inline bool details_match(const struct rule *rule, const struct flow *flow, enum parse_result result)
{
	const struct rule_details *details = &rule->details;

	for (unsigned int bit = 1; bit < 256; bit <<= 1)
		if (details->flags_mask & bit && (!flow->tcp_flags || !(rule->flags & bit) != !(flow->tcp_flags & bit)))
			return false;
	if (details->fragment_mask && !flow->fragment)
		return false;
	if (details->fragment_mask == FLOW_FRAGMENT_ANY ? flow->fragment == FLOW_FRAGMENT_NO :
	    details->fragment_mask                      ? flow->fragment != rule->fragment :
							  false)
		return false;
	if (result == PARSE_LATER_FRAGMENT && rule->fragment && rule->fragment != FLOW_FRAGMENT_LATER &&
	    details->fragment_mask != FLOW_FRAGMENT_ANY)
		return false;
	if (details->length_bits && (flow->length < rule->length ||
				     flow->length >= rule->length + (1 << (RULE_PORT_BITS - details->length_bits))))
		return false;
	return true;
}

static inline bool is_in_block(__be16 first, unsigned int free, __be16 port)
{
	return bpf_ntohs(port) >= bpf_ntohs(first) && bpf_ntohs(port) - bpf_ntohs(first) < 1 << free;
}

static inline bool rule_matches(const struct rule *rule, const struct flow *flow, enum parse_result result)
{
	if (!details_match(rule, flow, result))
		return false;
	if (flow->family == FLOW_NO_FAMILY || (rule->fields & RULE_NEW && !begins_something(flow, result)))
		return false;
	if (rule->family != FLOW_NO_FAMILY && rule->family != flow->family)
		return false;
	if (rule->fields & RULE_PROTO && rule->proto != flow->proto)
		return false;
	if (rule->fields & (RULE_SPORT | RULE_DPORT) && rule->port_kind != flow->port_kind)
		return false;
	if (rule->fields & RULE_SPORT && !is_in_block(rule->sport, rule->details.sport_free, flow->sport))
		return false;
	if (rule->fields & RULE_DPORT && !is_in_block(rule->dport, rule->details.dport_free, flow->dport))
		return false;
	return prefix_matches(&rule->src, &flow->src, rule->src_len) &&
	       prefix_matches(&rule->dst, &flow->dst, rule->dst_len);
}

static inline bool scene_has_match(const struct scene *scene, const struct flow *flow, enum parse_result result,
				   enum rule_action action)
{
	for (size_t i = 0; i < scene->rules; i++)
		if (scene->rule[i]->action == action && rule_matches(scene->rule[i], flow, result))
			return true;
	return false;
}

static inline enum abi_outcome scene_expect(const struct scene *scene, enum parse_result result,
					    const struct flow *flow, enum abi_verdict *verdict)
{
	const struct abi_config *config = scene->filter.config;
	enum abi_outcome outcome = (enum abi_outcome)result;

	*verdict = VERDICT_PASS;
	if (!(config->run & ABI_RUN_SET_UP))
		return OUTCOME_NOT_SET_UP;
	if (config->run & ABI_RUN_PANIC)
		return OUTCOME_PANIC;
	if (config->run & ABI_RUN_UNCONFIRMED && config->confirm_by == SCENE_PAST)
		return OUTCOME_UNCONFIRMED;
	if (scene_has_match(scene, flow, result, RULE_PASS))
		return OUTCOME_PASS_RULE;
	if (scene_has_match(scene, flow, result, RULE_DROP))
		outcome = OUTCOME_DROP_RULE;
	if (outcome == OUTCOME_DROP_RULE || abi_policy(abi_active(config), result) == VERDICT_DROP)
		*verdict = config->run & ABI_RUN_MONITOR ? VERDICT_WOULD_DROP : VERDICT_DROP;
	else if (scene_has_match(scene, flow, result, RULE_MONITOR)) {
		outcome = OUTCOME_MONITOR_RULE;
		*verdict = VERDICT_WOULD_DROP;
	}
	return outcome;
}

/* Whether the counted rule matches the flow and has the action of the outcome. */
static inline bool scene_may_count(const struct scene *scene, const struct flow *flow, enum parse_result result,
				   enum abi_outcome outcome, __u32 number)
{
	bool is_rule = outcome == OUTCOME_DROP_RULE || outcome == OUTCOME_PASS_RULE || outcome == OUTCOME_MONITOR_RULE;
	enum rule_action action = outcome == OUTCOME_PASS_RULE ? RULE_PASS :
				  outcome == OUTCOME_DROP_RULE ? RULE_DROP :
								 RULE_MONITOR;
	size_t i = 0;

	if (!is_rule || !scene->filter.options.has_counts)
		return number == RAW_FILTER_NO_NUMBER;
	while (i < scene->rules && scene->number[i] < number)
		i++;
	return i < scene->rules && scene->rule[i]->action == action && rule_matches(scene->rule[i], flow, result);
}

/* The first `length` bytes of one packet, through both programs. */
static inline void scene_check_cut(struct scene *scene, size_t packet, size_t length)
{
	const char *name = packets[packet].name;
	enum parse_result result;
	enum abi_verdict verdict;
	enum abi_outcome outcome;
	struct flow flow;

	result = packet_expect(&packets[packet], &frames[packet], length, &flow);
	outcome = scene_expect(scene, result, &flow, &verdict);
	for (size_t i = 0; i < scene->filter.programs; i++) {
		struct raw_filter_run run = raw_filter_run(&scene->filter, i, frames[packet].byte, length);

		check(!run.error, name, raw_filter_program_names[i], -run.error);
		check(run.outcome == outcome, name, "outcome", run.outcome);
		check(run.verdict == verdict, name, "verdict", run.verdict);
		check(scene_may_count(scene, &flow, result, outcome, run.number), name, "counted rule", run.number);
	}
}

static inline void scene_check(struct scene *scene, size_t packet)
{
	if (frames[packet].length >= RAW_FILTER_RUN_MIN)
		scene_check_cut(scene, packet, frames[packet].length);
}

static inline void scene_check_all(struct scene *scene)
{
	for (size_t i = 0; i < PACKETS; i++)
		scene_check(scene, i);
}

static inline struct scene *scene_of(void **state)
{
	struct scene *scene = *state;

	if (scene->error) {
		fprintf(stderr, "the kernel refuses to load BPF: %s\n", strerror(-scene->error));
		skip();
	}
	return scene;
}

/* The group's state is the scene; FRAME_TEST() needs none. */
#define SCENE_TEST(name) \
	TEST_BY(name, struct scene *scene, begin_checks, NULL, name##_body(scene_of(state)); end_checks())
#define FRAME_TEST(name) TEST_BY(name, void, begin_checks, NULL, name##_body(); end_checks())

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
static const struct rule_kind rule_kind_5_tuple = { .fields = RULE_5_TUPLE, .src_len = WHOLE, .dst_len = WHOLE };

#define RULE_KINDS (sizeof(rule_kinds) / sizeof(rule_kinds[0]))

static inline __u8 rule_length(const struct flow *flow, __u8 length)
{
	return flow->family == FLOW_IPV4 && length > 32 ? 32 : length;
}

/* Makes the rule of this kind that matches the flow. False if the flow lacks addresses or ports. */
static inline bool rule_from_flow(const struct flow *flow, const struct rule_kind *kind, enum rule_action action,
				  struct rule *rule)
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

/* Several rows can have the same flow; its rules are tried once. */
static inline bool is_first_of_flow(size_t packet)
{
	for (size_t i = 0; i < packet; i++)
		if (flow_equal(&packets[i].flow, &packets[packet].flow))
			return false;
	return true;
}

typedef void rule_visit(struct scene *scene, size_t packet, struct rule *rule);

/* Visits a drop rule of every kind for every flow, with the first packet of the flow. */
static inline void each_rule(struct scene *scene, rule_visit *visit)
{
	struct rule rule;

	for (size_t i = 0; i < PACKETS; i++)
		for (size_t kind = 0; kind < RULE_KINDS && is_first_of_flow(i); kind++)
			if (rule_from_flow(&packets[i].flow, &rule_kinds[kind], RULE_DROP, &rule))
				visit(scene, i, &rule);
}

#endif
