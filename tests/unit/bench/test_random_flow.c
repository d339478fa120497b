// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Flows for `bench`: the parser reads a flow made from a rule, and the key of that rule matches it. */
#include <arpa/inet.h>

#include "bench/bench.h"
#include "unit/packets.h"
#include "unit/store_fixture.h"

#define FLOWS 2000 /* of each rule */

static const char *const rules[] = {
	"192.0.2.1",
	"192.0.2.128/25",
	"128.0.0.0/1",
	"0.0.0.0/0",
	"dst 192.0.2.0/31",
	"src 10.0.0.0/8 dst 192.0.2.0/24 proto udp",
	"proto tcp src 192.0.2.1 sport 1234 dst 198.51.100.7 dport 443",
	"192.0.2.1 sport 65535",
	"192.0.2.1 dport 1 action pass",
	"proto icmp 192.0.2.1",
	"proto icmp type 8",
	"proto icmp 203.0.113.0/24 type 3 code 255",
	"proto gre 10.0.0.0/8",
	"proto ah 10.0.0.0/8",
	"proto 0 10.0.0.0/8",
	"2001:db8::1",
	"2001:db8::/33",
	"2001:db8::/127",
	"::/0",
	"8000::/1",
	"dst 2001:db8:1::/48 proto sctp dport 9",
	"proto ipv6-icmp type 128 code 0",
	"proto esp 2001:db8::/64",
	"proto udp dport 53",
	"proto dccp",
	"sport 7 dport 8",
};

/* ---- frames as the program of `bench` makes them ---- */

static size_t make_frame(const struct bench_flow *flow, enum flow_family family, __u8 frame[64])
{
	struct iphdr ipv4 = { .version = 4,
			      .ihl = 5,
			      .tot_len = htons(46),
			      .protocol = flow->proto,
			      .saddr = flow->src.v4,
			      .daddr = flow->dst.v4 };
	struct ipv6hdr ipv6 = { .version = 6, .payload_len = htons(8), .nexthdr = flow->proto };
	const __be16 ethertype = htons(family == FLOW_IPV4 ? ETH_P_IP : ETH_P_IPV6);
	const size_t ip_bytes = family == FLOW_IPV4 ? sizeof(ipv4) : sizeof(ipv6);

	memcpy(&ipv6.saddr, &flow->src, sizeof(flow->src));
	memcpy(&ipv6.daddr, &flow->dst, sizeof(flow->dst));
	memset(frame, 0, 64);
	memcpy(frame + ETH_HLEN - sizeof(ethertype), &ethertype, sizeof(ethertype));
	memcpy(frame + ETH_HLEN, family == FLOW_IPV4 ? (void *)&ipv4 : (void *)&ipv6, ip_bytes);
	memcpy(frame + ETH_HLEN + ip_bytes, flow->ports, sizeof(flow->ports));
	return family == FLOW_IPV4 ? 60 : 62;
}

static struct flow parse(const struct bench_flow *flow, enum flow_family family)
{
	_Alignas(4) __u8 room[PACKET_ALIGN + 64];
	__u8 *frame = room + PACKET_ALIGN;
	const size_t bytes = make_frame(flow, family, frame);
	struct flow parsed;

	assert_int_equal(parse_frame(frame, frame + bytes, &parsed), PARSE_OK);
	assert_int_equal(parsed.family, family);
	return parsed;
}

/* ---- what rules make of them ---- */

static void key_matches(const struct rule_key *key, const struct flow *flow)
{
	const size_t last = flow_key_last(key->shape.family);
	struct abi_shape shape;
	struct flow_key packed = {};

	rule_shape_compile(&key->shape, &shape);
	flow_pack(flow, &packed);
	for (size_t i = 0; i <= last; i++)
		assert_int_equal((packed.word[i] & shape.mask[i]) | (i == last ? shape.id : 0), key->key.word[i]);
}

static bool same_rule(const struct rule *a, const struct rule *b)
{
	__u8 bytes[2][RULE_ENCODED_BYTES];
	const size_t length = rule_encode(a, bytes[0]);

	return rule_encode(b, bytes[1]) == length && !memcmp(bytes[0], bytes[1], length);
}

/* A look-up of the flow in a store would find the rule. */
static void query_finds(const struct rule *rule, const struct rule_key *key, const struct bench_flow *flow)
{
	const struct rule query = bench_flow_query(flow, key->shape.family);
	struct rule found[RULE_KEYS_MAX];
	const size_t count = rule_under_shape(&query, &key->shape, found);
	bool is_found = false;

	for (size_t i = 0; i < count; i++)
		is_found |= same_rule(rule, &found[i]);
	assert_true(is_found);
}

/* The query names what the parser reads. */
static void query_is(const struct bench_flow *flow, const struct flow *parsed)
{
	const struct rule query = bench_flow_query(flow, parsed->family);
	struct rule_key keys[RULE_KEYS_MAX];

	assert_int_equal(rule_keys(&query, keys), 1);
	key_matches(keys, parsed);
}

/* Bits that the rule leaves open are 0 in some flows and 1 in others. */
struct seen {
	union flow_addr ones, zeroes;
};

static void see(struct seen *seen, const union flow_addr *address)
{
	for (int i = 0; i < 2; i++) {
		seen->ones.word[i] |= address->word[i];
		seen->zeroes.word[i] |= ~address->word[i];
	}
}

static void saw_open_bits(const struct seen *seen, enum flow_family family, unsigned int length)
{
	const unsigned int bits = family == FLOW_IPV4 ? 32 : 128;
	/* Without a prefix, IPv6 addresses are global unicast. */
	const unsigned int first = family == FLOW_IPV6 && !length ? 3 : length;

	for (unsigned int bit = first; bit < bits; bit++)
		assert_true(seen->ones.byte[bit / 8] & seen->zeroes.byte[bit / 8] & 0x80 >> bit % 8);
}

static void try_key(const struct rule *rule, const struct rule_key *key)
{
	const enum flow_family family = key->shape.family;
	struct seen src = {}, dst = {};

	for (int i = 0; i < FLOWS; i++) {
		struct bench_flow flow;
		struct flow parsed;
		uint64_t random = random_next(&random_state);

		assert_true(bench_flow_of_rule(rule, family, &random, &flow));
		parsed = parse(&flow, family);
		key_matches(key, &parsed);
		query_is(&flow, &parsed);
		query_finds(rule, key, &flow);
		see(&src, &flow.src);
		see(&dst, &flow.dst);
	}
	saw_open_bits(&src, family, rule->src_len);
	saw_open_bits(&dst, family, rule->dst_len);
}

TEST(test_flows_match_their_rule)
{
	for (size_t i = 0; i < COUNT(rules); i++) {
		const struct rule rule = rule_of(rules[i]);
		struct rule_key keys[RULE_KEYS_MAX];
		const size_t count = rule_keys(&rule, keys);

		for (size_t k = 0; k < count; k++)
			try_key(&rule, &keys[k]);
	}
}

/* No plain IPv6 frame has the number of an extension header as its protocol. */
TEST(test_extension_headers_have_no_flow)
{
	static const char *const texts[] = { "proto ah 2001:db8::1", "proto 0 2001:db8::1", "proto 43 2001:db8::1",
					     "proto 44 2001:db8::1", "proto 60 2001:db8::1" };
	struct bench_flow flow;
	uint64_t random = 1;

	for (size_t i = 0; i < COUNT(texts); i++) {
		const struct rule rule = rule_of(texts[i]);

		assert_false(bench_flow_of_rule(&rule, FLOW_IPV6, &random, &flow));
	}
}

TEST(test_random_flows)
{
	bool has_tcp = false, has_udp = false;

	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		struct seen src = {}, dst = {};

		for (int i = 0; i < FLOWS; i++) {
			uint64_t random = random_next(&random_state);
			const struct bench_flow flow = bench_flow_random(family, &random);
			const struct flow parsed = parse(&flow, family);

			query_is(&flow, &parsed);
			assert_true(family == FLOW_IPV4 || flow.src.byte[0] >> 5 == 1);
			has_tcp |= flow.proto == IPPROTO_TCP;
			has_udp |= flow.proto == IPPROTO_UDP;
			see(&src, &flow.src);
			see(&dst, &flow.dst);
		}
		saw_open_bits(&src, family, 0);
		saw_open_bits(&dst, family, 0);
	}
	assert_true(has_tcp && has_udp);
}

TEST_MAIN(seed, NULL)
