// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <arpa/inet.h>
#include <string.h>

#include "bench/random_flow.h"
#include "bench/random.h"
#include "parse_packet.h"

static union flow_addr random_bits(enum flow_family family, uint64_t *random)
{
	const __u64 first = random_next(random);

	if (family == FLOW_IPV4)
		return (union flow_addr){ .v4 = first };
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
	return family == FLOW_IPV4 || !parse_is_extension(flow->proto);
}

struct rule bench_flow_query(const struct bench_flow *flow, enum flow_family family)
{
	struct flow query = { .family = family, .proto = flow->proto, .src = flow->src, .dst = flow->dst };

	if (is_icmp(flow->proto)) {
		query.port_kind = FLOW_ICMP;
		query.sport = htons(flow->ports[0]);
		query.dport = htons(flow->ports[1]);
	} else if (rule_has_ports(flow->proto)) {
		query.port_kind = FLOW_PORTS;
		memcpy(&query.sport, flow->ports, sizeof(query.sport));
		memcpy(&query.dport, flow->ports + 2, sizeof(query.dport));
	}
	return rule_of_flow(&query);
}
