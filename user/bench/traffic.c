// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "bench/bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/random.h>

#include "change/change.h"
#include "bench/random.h"
#include "parse_packet.h"

#define TRIES_PER_FLOW 4 /* after so many there are no more flows of this kind */
#define NO_MEMORY "no memory for the flows to measure with"
#define MISSES_CHECKED 1024 /* misses that are looked up in the store too */

/* At most BENCH_FLOWS rules of a family, each drawn with equal chance. */
struct sample {
	__u8 (*rule)[RULE_ENCODED_BYTES];
	__u64 seen;
};

struct making {
	struct store *store;
	const struct kernel_filter *filter;
	struct shape_list shapes;
	bool has_pass; /* there are pass rules, which may override drop rules */
	__s64 lasts_ms;
	uint64_t random;
	struct sample sample[FLOW_FAMILIES];
};

__u64 bench_lists_bytes(void)
{
	return (__u64)BENCH_FLOWS * FLOW_FAMILIES * (2 * sizeof(struct bench_flow) + RULE_ENCODED_BYTES);
}

/* In a compact table every rule lasts: the table stores no times, and nobody ends rules in the measured copy. */
static bool is_lasting(const struct making *making, const struct rule *rule)
{
	return !making->filter->options.is_exact || !rule->timeout_ms || rule->timeout_ms > making->lasts_ms;
}

/* A random sample by Waterman's algorithm R: Knuth, TAOCP 3.4.2. */
static int sample_rule(const struct rule *rule, void *context)
{
	struct making *making = context;

	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		struct sample *sample = &making->sample[family];
		__u64 at;

		if ((rule->family != family && rule->family != FLOW_NO_FAMILY) || !is_lasting(making, rule))
			continue;
		at = sample->seen < BENCH_FLOWS ? sample->seen : random_below(&making->random, sample->seen + 1);
		sample->seen++;
		if (at < BENCH_FLOWS)
			rule_encode(rule, sample->rule[at]);
	}
	return 0;
}

static size_t sampled(const struct sample *sample)
{
	return MIN(sample->seen, BENCH_FLOWS);
}

/* Whether a rule decides about a flow. */
enum decision { BY_NO_RULE, BY_RULE, BY_RULE_THAT_ENDS };

/* Finds a rule that names the flow, or only a pass rule. Returns enum decision, or -errno. */
static int ask_store(const struct making *making, const struct rule *query, bool passing_only)
{
	for (size_t i = 0; i < making->shapes.count; i++) {
		const struct rule_shape *shape = &making->shapes.entry[i].shape;
		struct rule rules[RULE_KEYS_MAX];
		size_t count;

		if (passing_only && shape->action != RULE_PASS)
			continue;
		count = rule_under_shape(query, shape, rules);
		for (size_t k = 0; k < count; k++) {
			const int error = store_get(making->store, &rules[k]);

			if (error && error != -ENOENT)
				return error;
			if (!error)
				return is_lasting(making, &rules[k]) ? BY_RULE : BY_RULE_THAT_ENDS;
		}
	}
	return BY_NO_RULE;
}

/*
 * Makes a list in random order. `make` makes the flow with a number from 0 on, and returns 1 if it made one, 0 if
 * not, or -errno. If it makes too few flows, the list repeats them.
 */
static int make_list(struct making *making, enum flow_family family, struct bench_flow **list,
		     int (*make)(struct making *making, enum flow_family family, size_t number,
				 struct bench_flow *flow),
		     struct reason *reason)
{
	struct bench_flow *flow = *list = malloc(BENCH_FLOWS * sizeof(*flow));
	size_t made = 0;

	if (!flow)
		return reason_set(reason, -ENOMEM, NO_MEMORY);
	for (size_t i = 0; i < (size_t)TRIES_PER_FLOW * BENCH_FLOWS && made < BENCH_FLOWS; i++) {
		const int result = make(making, family, i, &flow[made]);

		if (result < 0)
			return store_unread_reason(result, reason);
		made += result;
	}
	if (!made) {
		free(flow);
		*list = NULL;
		return 0;
	}
	for (size_t i = made; i < BENCH_FLOWS; i++)
		flow[i] = flow[i - made];
	for (size_t i = BENCH_FLOWS; i > 1; i--) {
		const size_t other = random_below(&making->random, i);
		const struct bench_flow last = flow[i - 1];

		flow[i - 1] = flow[other];
		flow[other] = last;
	}
	return 0;
}

/* A pass rule may override the drop rule that the flow was made from. */
static int make_hit(struct making *making, enum flow_family family, size_t number, struct bench_flow *flow)
{
	const struct sample *sample = &making->sample[family];
	int decision = BY_NO_RULE;
	const __u8 *encoded;
	struct rule rule;

	if (!sampled(sample))
		return 0;
	encoded = sample->rule[number % sampled(sample)];
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): without a sample, making_open() has failed. */
	if (rule_decode(encoded, rule_encoded_bytes(encoded), &rule))
		return -EBADMSG;
	if (rule.action == RULE_MONITOR || rule.fields & RULE_RATE ||
	    !bench_flow_of_rule(&rule, family, &making->random, flow))
		return 0;
	if (rule.action == RULE_DROP && making->has_pass) {
		const struct rule query = bench_flow_query(flow, family);

		decision = ask_store(making, &query, true);
	}
	if (decision < 0 || decision == BY_RULE_THAT_ENDS)
		return decision < 0 ? decision : 0;
	flow->outcome = rule.action == RULE_DROP && decision == BY_NO_RULE ? OUTCOME_DROP_RULE :
									     OUTCOME_PASS_RULE;
	return 1;
}

/* Asks the table first, which is fast. A match in a compact table may be a false positive; those are misses too. */
static int make_miss(struct making *making, enum flow_family family, size_t number, struct bench_flow *flow)
{
	struct rule query;
	bool matches;
	int error;

	(void)number;
	*flow = bench_flow_random(family, &making->random);
	query = bench_flow_query(flow, family);
	error = query_matches(making->filter, &query, &matches);
	if (error)
		return error;
	if (matches) {
		const int decision = making->filter->options.is_exact ? BY_RULE : ask_store(making, &query, false);

		if (decision != BY_NO_RULE)
			return decision < 0 ? decision : 0;
	}
	flow->outcome = OUTCOME_NO_RULE;
	return 1;
}

static int making_open(struct making *making, struct reason *reason)
{
	int error = store_shapes(making->store, &making->shapes);

	if (error)
		return store_unread_reason(error, reason);
	for (size_t i = 0; i < making->shapes.count; i++)
		making->has_pass |= making->shapes.entry[i].shape.action == RULE_PASS;
	if (getrandom(&making->random, sizeof(making->random), 0) != sizeof(making->random))
		return reason_set(reason, -EIO, "cannot draw a random number");
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		making->sample[family].rule = malloc(BENCH_FLOWS * sizeof(*making->sample[family].rule));
		if (!making->sample[family].rule)
			return reason_set(reason, -ENOMEM, NO_MEMORY);
	}
	error = store_each(making->store, sample_rule, making);
	return error ? store_unread_reason(error, reason) : 0;
}

int bench_lists_open(struct bench_lists *lists, struct store *store, const struct kernel_filter *filter, __s64 lasts_ms,
		     struct reason *reason)
{
	struct making making = { .store = store, .filter = filter, .lasts_ms = lasts_ms };
	int error = making_open(&making, reason);

	*lists = (struct bench_lists){};
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		if (!error)
			error = make_list(&making, family, &lists->hits[family], make_hit, reason);
		if (!error)
			error = make_list(&making, family, &lists->misses[family], make_miss,
					  reason);
		/* If the store has a rule for one of these flows, the table lacks that rule. */
		for (size_t i = 0; lists->misses[family] && i < MISSES_CHECKED && !error; i++) {
			const struct rule query =
				bench_flow_query(&lists->misses[family][i], family);
			const int decision = ask_store(&making, &query, false);

			if (decision < 0)
				error = store_unread_reason(decision, reason);
			else if (decision != BY_NO_RULE)
				error = reason_set(reason, -EPROTO,
						   "the table lacks rules that the store has; xdp-cuckoo check repairs it");
		}
		free(making.sample[family].rule);
	}
	if (error)
		bench_lists_close(lists);
	return error;
}

void bench_lists_close(struct bench_lists *lists)
{
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		free(lists->hits[family]);
		free(lists->misses[family]);
	}
	*lists = (struct bench_lists){};
}

bool bench_lists_has(const struct bench_lists *lists, enum flow_family family, enum bench_traffic traffic)
{
	return (traffic == BENCH_MISS || lists->hits[family]) &&
	       (traffic == BENCH_HIT || lists->misses[family]);
}

void bench_lists_write(const struct bench_lists *lists, enum flow_family family,
		       enum bench_traffic traffic, void *to, struct bench_expected *expected)
{
	uint64_t random = 1;

	*expected = (struct bench_expected){};
	for (size_t i = 0; i < BENCH_FLOWS; i++) {
		const bool is_hit = traffic == BENCH_HALF ? random_next(&random) & 1 : traffic == BENCH_HIT;
		const struct bench_flow *flow = (is_hit ? lists->hits : lists->misses)[family] + i;
		struct bench_flow_ipv4 *ipv4 = (struct bench_flow_ipv4 *)to + i;
		struct bench_flow_ipv6 *ipv6 = (struct bench_flow_ipv6 *)to + i;

		if (family == FLOW_IPV4)
			*ipv4 = (struct bench_flow_ipv4){ flow->src.v4, flow->dst.v4, .proto = flow->proto };
		else
			*ipv6 = (struct bench_flow_ipv6){ flow->src, flow->dst, .proto = flow->proto };
		memcpy(family == FLOW_IPV4 ? ipv4->ports : ipv6->ports, flow->ports, sizeof(flow->ports));
		expected->packets[flow->outcome]++;
	}
}

/* ---- random flow ---- */

static union flow_addr random_bits(enum flow_family family, uint64_t *random)
{
	const __u64 first = random_next(random);

	if (family == FLOW_IPV4)
		return rule_ipv4_address(first);
	return (union flow_addr){ .word = { first, random_next(random) } };
}

/* Any IPv4 address; in IPv6, an address within 2000::/3, which all hosts of the internet use. */
static union flow_addr random_address(enum flow_family family, uint64_t *random)
{
	union flow_addr address = random_bits(family, random);

	if (family == FLOW_IPV6)
		address.byte[0] = 0x20 | (address.byte[0] & 0x1f);
	return address;
}

static union flow_addr random_within(const union flow_addr *net, unsigned int length, enum flow_family family,
				     uint64_t *random)
{
	const union flow_addr bits = random_bits(family, random), high = rule_network(&bits, length);

	if (!length)
		return random_address(family, random);
	return (union flow_addr){ .word = { net->word[0] | (bits.word[0] ^ high.word[0]),
					    net->word[1] | (bits.word[1] ^ high.word[1]) } };
}

struct bench_flow bench_flow_random(enum flow_family family, uint64_t *random)
{
	const __u32 ports = random_next(random);
	struct bench_flow flow = { .src = random_address(family, random),
				   .dst = random_address(family, random),
				   .proto = random_next(random) & 1 ? IPPROTO_TCP : IPPROTO_UDP };

	memcpy(flow.ports, &ports, sizeof(ports));
	return flow;
}

static bool is_icmp(__u8 proto)
{
	return proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6;
}

bool bench_flow_of_rule(const struct rule *rule, enum flow_family family, uint64_t *random, struct bench_flow *flow)
{
	const __be16 port[] = { rule->sport, rule->dport };
	struct rule query;
	size_t bytes; /* of a port, or of the type or code of ICMP */

	*flow = bench_flow_random(family, random);
	flow->src = random_within(&rule->src, rule->src_len, family, random);
	flow->dst = random_within(&rule->dst, rule->dst_len, family, random);
	if (rule->fields & RULE_PROTO)
		flow->proto = rule->proto;
	bytes = is_icmp(flow->proto) ? 1 : 2;
	for (int i = 0; i < 2; i++)
		if (rule->fields & (i ? RULE_DPORT : RULE_SPORT))
			memcpy(flow->ports + i * bytes, (const __u8 *)&port[i] + 2 - bytes, bytes);
	/* The parser would skip an extension header and take a later header for the protocol. */
	if (family == FLOW_IPV6 && parse_is_extension(flow->proto))
		return false;
	query = bench_flow_query(flow, family);
	return !(rule->fields & RULE_DETAILS) || rule_covers(rule, &query);
}

struct rule bench_flow_query(const struct bench_flow *flow, enum flow_family family)
{
	struct flow query = { .family = family, .proto = flow->proto, .src = flow->src, .dst = flow->dst };
	struct rule rule;

	if (is_icmp(flow->proto)) {
		query.port_kind = FLOW_ICMP;
		query.sport = htons(flow->ports[0]);
		query.dport = htons(flow->ports[1]);
	} else if (rule_has_ports(flow->proto)) {
		query.port_kind = FLOW_PORTS;
		memcpy(&query.sport, flow->ports, sizeof(query.sport));
		memcpy(&query.dport, flow->ports + 2, sizeof(query.dport));
	}
	/* The frames are SYNs, and whole. Those of IPv6 are too short for flags. */
	query.fragment = FLOW_FRAGMENT_NO;
	query.tcp_flags = flow->proto == IPPROTO_TCP && family == FLOW_IPV4 ? FLOW_TCP_READ | FLOW_TCP_SYN : 0;
	query.length = family == FLOW_IPV4 ? sizeof(struct iphdr) + BENCH_IPV4_PAYLOAD :
					     sizeof(struct ipv6hdr) + BENCH_IPV6_PAYLOAD;
	rule = rule_of_packet(&query);
	rule.fields |= RULE_NEW;
	return rule;
}
