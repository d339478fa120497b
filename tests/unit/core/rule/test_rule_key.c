// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The keys and shapes of a rule, and the flows that match them. */
#include "unit/rule_fixture.h"

/* What the packet path does with a flow and a shape, word by word. */
static void masked_key(const struct flow *flow, const struct abi_shape *shape, struct flow_key *key)
{
	flow_pack(flow, key);
	for (unsigned int i = 0; i <= flow_key_last(flow->family); i++)
		key->word[i] &= shape->mask[i];
	key->word[flow_key_last(flow->family)] |= shape->id;
}

static bool keys_match(const struct rule *rule, const struct flow *flow)
{
	struct rule_key keys[RULE_KEYS_MAX];
	size_t count = rule_keys(rule, keys);

	for (size_t i = 0; i < count; i++) {
		struct flow_key key = {};
		struct abi_shape shape;

		if (keys[i].shape.family != flow->family)
			continue;
		rule_shape_compile(&keys[i].shape, &shape);
		masked_key(flow, &shape, &key);
		if (!memcmp(key.word, keys[i].key.word, 8 * (flow_key_last(flow->family) + 1)))
			return true;
	}
	return false;
}

/* Whether a rule matches a flow: by its keys, and by comparing its fields. */
static bool matches(const char *text, const struct flow *flow)
{
	const struct rule rule = parse(text), query = rule_of_flow(flow);
	const bool is_match = keys_match(&rule, flow);

	assert_true(rule_is_canonical(&query));
	assert_int_equal(rule_covers(&rule, &query), is_match);
	return is_match;
}

static struct flow flow_of(const char *src, const char *dst, __u8 proto, enum flow_port_kind kind, __u16 sport,
			   __u16 dport)
{
	struct flow flow = { .proto = proto,
			     .port_kind = kind,
			     .sport = htons(sport),
			     .dport = htons(dport),
			     .family = strchr(src, ':') ? FLOW_IPV6 : FLOW_IPV4 };
	int family = strchr(src, ':') ? AF_INET6 : AF_INET;

	assert_int_equal(inet_pton(family, src, &flow.src), 1);
	assert_int_equal(inet_pton(family, dst, &flow.dst), 1);
	return flow;
}

/* Whether some packets match both; if so, `both` matches just these. */
static bool meet(const char *first, const char *second, const char *both)
{
	const struct rule a = parse(first), b = parse(second);
	char text[RULE_TEXT_BYTES];
	struct rule met, other;

	assert_int_equal(rule_overlaps(&a, &b), rule_overlaps(&b, &a));
	assert_int_equal(rule_intersect(&a, &b, &met), rule_overlaps(&a, &b));
	if (!rule_intersect(&b, &a, &other))
		return false;
	assert_string_equal(rule_format(&met, text), both);
	assert_string_equal(rule_format(&other, text), both);
	assert_true(rule_covers(&a, &met) && rule_covers(&b, &met));
	return true;
}

TEST(test_rules_that_some_packets_match)
{
	assert_true(meet("192.0.2.1", "proto tcp dport 80", "proto tcp src 192.0.2.1 dport 80"));
	assert_true(meet("192.0.2.1", "192.0.2.0/24 proto udp", "proto udp src 192.0.2.1"));
	assert_true(meet("192.0.2.0/24", "dst 198.51.100.0/28", "src 192.0.2.0/24 dst 198.51.100.0/28"));
	assert_true(meet("sport 53", "proto udp dport 53", "proto udp sport 53 dport 53"));
	assert_true(meet("2001:db8::/32", "2001:db8:1::/48", "src 2001:db8:1::/48"));
	assert_true(meet("proto icmp", "proto icmp type 8", "proto icmp type 8"));
	assert_false(meet("192.0.2.1", "192.0.3.0/24", ""));
	assert_false(meet("192.0.2.1", "2001:db8::/32", ""));
	assert_false(meet("192.0.2.1", "proto ipv6-icmp", ""));
	assert_false(meet("proto tcp", "proto udp", ""));
	assert_false(meet("dport 80", "dport 81", ""));
	assert_false(meet("dport 80", "proto gre", ""));
	assert_false(meet("proto icmp", "sport 8", ""));
	assert_false(meet("proto icmp type 8", "dport 8", ""));
	assert_false(meet("dst 192.0.2.1", "dst 192.0.2.2/31", ""));
}

TEST(test_keys_match_the_right_flows)
{
	const struct flow tcp = flow_of("192.0.2.1", "198.51.100.7", 6, FLOW_PORTS, 1234, 443);
	const struct flow ping = flow_of("192.0.2.1", "198.51.100.7", 1, FLOW_ICMP, 8, 0);
	const struct flow fragment = flow_of("192.0.2.1", "198.51.100.7", 17, FLOW_NO_PORTS, 0, 0);
	const struct flow tcp6 = flow_of("2001:db8::1", "2001:db8:f::2", 6, FLOW_PORTS, 1234, 443);

	assert_true(matches("192.0.2.1", &tcp));
	assert_true(matches("192.0.2.0/31", &tcp));
	assert_true(matches("192.0.0.0/14", &tcp));
	assert_true(matches("0.0.0.0/0", &tcp));
	assert_true(matches("proto tcp src 192.0.2.1 sport 1234 dst 198.51.100.7 dport 443", &tcp));
	assert_true(matches("dport 443", &tcp));
	assert_true(matches("dport 443", &tcp6));
	assert_true(matches("2001:db8::/33", &tcp6));
	assert_true(matches("dst 2001:db8:f::/65", &tcp6));
	assert_true(matches("::/0", &tcp6));
	assert_true(matches("proto icmp type 8 code 0", &ping));
	assert_true(matches("src 192.0.2.1 proto udp", &fragment));

	assert_false(matches("192.0.2.0", &tcp));
	assert_false(matches("192.0.2.2/31", &tcp));
	assert_false(matches("::/0", &tcp));
	assert_false(matches("0.0.0.0/0", &tcp6));
	assert_false(matches("2001:db8:8000::/33", &tcp6));
	assert_false(matches("dport 444", &tcp));
	assert_false(matches("sport 443", &tcp));
	assert_false(matches("dst 192.0.2.1", &tcp));
	assert_false(matches("proto udp dport 443", &tcp));
	assert_false(matches("dport 0", &ping));
	assert_false(matches("sport 8", &ping));
	assert_false(matches("dport 0", &fragment));
	assert_false(matches("proto udp sport 0 dport 0", &fragment));
}

/* Rules of different shapes never share a key, whatever the masks leave of a flow. */
TEST(test_shapes_keep_keys_apart)
{
	static const char *const alike[] = { "0.0.0.0/1",
					     "0.0.0.0/2",
					     "0.0.0.0/0",
					     "dst 0.0.0.0/1",
					     "0.0.0.0/1 action pass",
					     "0.0.0.0/1 dport 0",
					     "0.0.0.0/1 sport 0",
					     "0.0.0.0/1 proto 0",
					     "0.0.0.0/1 dst 0.0.0.0/1" };

	for (size_t i = 0; i < COUNT(alike); i++)
		for (size_t k = 0; k < i; k++) {
			struct rule a = parse(alike[i]), b = parse(alike[k]);
			struct rule_key key_a[RULE_KEYS_MAX], key_b[RULE_KEYS_MAX];

			rule_keys(&a, key_a);
			rule_keys(&b, key_b);
			assert_memory_not_equal(key_a, key_b, sizeof(key_a[0]));
			assert_memory_not_equal(key_a[0].key.word, key_b[0].key.word, 16);
		}
}

static bool generalises_to(const char *query_text, const char *rule_text)
{
	struct rule query = parse(query_text), rule = parse(rule_text);
	struct rule_key keys[RULE_KEYS_MAX];
	size_t count = rule_keys(&rule, keys);

	for (size_t i = 0; i < count; i++) {
		struct rule found[RULE_KEYS_MAX];
		size_t n = rule_under_shape(&query, &keys[i].shape, found);

		for (size_t k = 0; k < n; k++)
			if (!memcmp(&found[k], &rule, offsetof(struct rule, comment)))
				return true;
	}
	return false;
}

TEST(test_generalise)
{
	static const char flow[] = "proto tcp src 192.0.2.1 sport 1234 dst 198.51.100.7 dport 443";

	assert_true(generalises_to(flow, flow));
	assert_true(generalises_to(flow, "192.0.2.0/24"));
	assert_true(generalises_to(flow, "dport 443"));
	assert_true(generalises_to(flow, "proto tcp dst 198.51.100.0/24"));
	assert_true(generalises_to(flow, "0.0.0.0/0"));
	assert_true(generalises_to(flow, "192.0.2.1 action pass"));
	assert_true(generalises_to("192.0.2.0/25", "192.0.2.0/24"));
	assert_true(generalises_to("proto udp dport 53", "dport 53"));
	assert_false(generalises_to("192.0.2.0/24", "192.0.2.0/25"));
	assert_false(generalises_to("192.0.2.1", "proto tcp src 192.0.2.1"));
	assert_false(generalises_to(flow, "192.0.3.0/24"));
	assert_false(generalises_to(flow, "::/0"));
	assert_false(generalises_to("dport 53", "0.0.0.0/0 dport 53"));
	assert_false(generalises_to("192.0.2.1", "dport 443"));
}

/* What a packet has beside its flow decides, too. */
TEST(test_rule_of_packet)
{
	static const char *const texts[] = { "fragment first", "flags syn/syn,ack", "length 100", "proto tcp" };
	struct flow flow = flow_of("192.0.2.1", "198.51.100.7", IPPROTO_TCP, FLOW_PORTS, 1, 2);

	flow.fragment = FLOW_FRAGMENT_FIRST;
	flow.tcp_flags = FLOW_TCP_SYN;
	flow.length = 100;
	for (size_t i = 0; i < COUNT(texts); i++) {
		const struct rule rule = parse(texts[i]);
		struct rule packet = rule_of_packet(&flow);

		assert_true(rule_covers(&rule, &packet));
		packet = rule_of_packet(&(struct flow){ .family = FLOW_IPV4, .proto = IPPROTO_TCP });
		assert_int_equal(rule_covers(&rule, &packet), !strcmp(texts[i], "proto tcp"));
	}
}

TEST(test_shapes_as_text)
{
	static const struct {
		const char *rule, *shape;
	} rows[] = {
		{ "10.0.0.0/8", "ipv4 src/8" },
		{ "2001:db8::/32 dst ::1 proto tcp sport 1 dport 2", "ipv6 proto src/32 sport dst/128 dport" },
		{ "proto udp sport 16/12 dport 256/8", "ipv4 proto sport/12 dport/8" },
		{ "10.0.0.1 proto tcp flags syn/syn,ack state new", "ipv4 proto src/32 flags/syn,ack state new" },
		{ "proto tcp src 192.0.2.0/24 dst 198.51.100.7 dport 443 action pass",
		  "ipv4 proto src/24 dst/32 dport action pass" },
		{ "10.0.0.1 fragment any action pass", "ipv4 src/32 fragment any action pass" },
		{ "10.0.0.1 fragment first length 40 rate 5/s", "ipv4 src/32 fragment length rate" },
		{ "10.0.0.1 length 32/12 action monitor", "ipv4 src/32 length/12 action monitor" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct rule_key keys[RULE_KEYS_MAX];
		char text[RULE_TEXT_BYTES];
		const struct rule rule = parse(rows[i].rule);

		rule_keys(&rule, keys);
		assert_string_equal(rule_shape_format(&keys[0].shape, text), rows[i].shape);
	}
}

/* Packets and the tool read a shape's compiled form. */
TEST(test_shapes_compile_and_back)
{
	static const struct {
		__u8 fields;
		struct rule_details details;
	} rows[] = {
		{ 0, {} },
		{ RULE_PROTO | RULE_SPORT, {} },
		{ RULE_DPORT | RULE_NEW | RULE_RATE, {} },
		{ RULE_ADDRESSES, {} },
		{ RULE_PROTO | RULE_DETAILS, { .flags_mask = 0x12, .fragment_mask = 3, .length_bits = 16 } },
		{ RULE_SPORT | RULE_DPORT | RULE_DETAILS, { .sport_free = 12, .dport_free = 8, .length_bits = 4 } },
	};

	for (size_t i = 0; i < COUNT(rows) * FLOW_FAMILIES; i++) {
		const enum flow_family family = i / COUNT(rows);
		struct rule_shape shape = { .family = family, .details = rows[i % COUNT(rows)].details }, back;
		struct abi_shape compiled;

		shape.fields = rows[i % COUNT(rows)].fields;
		if (shape.fields & RULE_ADDRESSES && family != FLOW_IPV4)
			continue;
		for (; shape.src_len <= rule_address_bits(family); shape.src_len++) {
			shape.action = shape.src_len % RULE_ACTIONS;
			shape.dst_len = rule_address_bits(family) - shape.src_len / 3;
			rule_shape_compile(&shape, &compiled);
			back = rule_shape_of_compiled(&compiled, family);
			assert_memory_equal(&back, &shape, sizeof(shape));
		}
	}
}

TEST_MAIN(NULL, NULL)
