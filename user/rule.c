// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rule.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ---- */

static const struct {
	const char *name;
	__u8 number;
} protocols[] = {
	/* The first name of a number is the canonical one. */
	{ "tcp", IPPROTO_TCP },       { "udp", IPPROTO_UDP },     { "icmp", IPPROTO_ICMP },
	{ "ipv6-icmp", IPPROTO_ICMPV6 }, { "icmpv6", IPPROTO_ICMPV6 }, { "icmp6", IPPROTO_ICMPV6 },
	{ "udplite", IPPROTO_UDPLITE }, { "sctp", IPPROTO_SCTP }, { "dccp", IPPROTO_DCCP },
	{ "igmp", IPPROTO_IGMP },     { "ipip", IPPROTO_IPIP },   { "ipv6", IPPROTO_IPV6 },
	{ "gre", IPPROTO_GRE },       { "esp", IPPROTO_ESP },     { "ah", IPPROTO_AH },
	{ "ospf", 89 },               { "pim", IPPROTO_PIM },     { "vrrp", 112 },
};

#define PROTOCOLS (sizeof(protocols) / sizeof(protocols[0]))

int rule_protocol_number(const char *word, __u8 *number)
{
	unsigned long value;
	char *end;

	for (size_t i = 0; i < PROTOCOLS; i++) {
		if (!strcmp(protocols[i].name, word)) {
			*number = protocols[i].number;
			return 0;
		}
	}
	value = strtoul(word, &end, 10);
	if (*word < '0' || *word > '9' || *end || value > 254)
		return -ENOENT;
	*number = value;
	return 0;
}

const char *rule_protocol_name(__u8 number)
{
	for (size_t i = 0; i < PROTOCOLS; i++)
		if (protocols[i].number == number)
			return protocols[i].name;
	return NULL;
}

/* Where the next piece of a text goes; pieces past the end are cut. */
struct writer {
	char *text;
	size_t used, size;
};

__attribute__((format(printf, 2, 3))) static void put(struct writer *to, const char *format, ...)
{
	va_list arguments;
	int written;

	va_start(arguments, format);
	written = vsnprintf(to->text + to->used, to->size - to->used, format, arguments);
	va_end(arguments);
	to->used += written;
	if (to->used >= to->size)
		to->used = to->size - 1;
}

static unsigned int address_bits(enum flow_family family)
{
	return family == FLOW_IPV4 ? 32 : 128;
}

static void put_prefix(struct writer *to, const char *word, enum flow_family family,
		       const union flow_addr *address, unsigned int length)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(family == FLOW_IPV4 ? AF_INET : AF_INET6, address, text, sizeof(text));
	put(to, " %s %s", word, text);
	if (length < address_bits(family))
		put(to, "/%u", length);
}

/* A family that no address and no protocol tells is told by the prefix of length 0. */
static bool needs_family(const struct rule *rule)
{
	bool is_icmp = rule->fields & RULE_PROTO &&
		       (rule->proto == IPPROTO_ICMP || rule->proto == IPPROTO_ICMPV6);

	return rule->family != FLOW_NO_FAMILY && !rule->src_len && !rule->dst_len && !is_icmp;
}

const char *rule_format(const struct rule *rule, char text[RULE_TEXT_BYTES])
{
	struct writer to = { .text = text, .size = RULE_TEXT_BYTES };
	bool is_icmp = rule->port_kind == FLOW_ICMP;
	const char *name = rule_protocol_name(rule->proto);

	/* Each piece starts with its separator; the first one is dropped at the end. */
	text[0] = '\0';
	if (rule->fields & RULE_PROTO && name)
		put(&to, " proto %s", name);
	else if (rule->fields & RULE_PROTO)
		put(&to, " proto %u", rule->proto);
	if (rule->src_len || needs_family(rule))
		put_prefix(&to, "src", rule->family, &rule->src, rule->src_len);
	if (rule->fields & RULE_SPORT)
		put(&to, " %s %u", is_icmp ? "type" : "sport", ntohs(rule->sport));
	if (rule->dst_len)
		put_prefix(&to, "dst", rule->family, &rule->dst, rule->dst_len);
	if (rule->fields & RULE_DPORT)
		put(&to, " %s %u", is_icmp ? "code" : "dport", ntohs(rule->dport));
	if (rule->action == RULE_PASS)
		put(&to, " action pass");
	if (rule->comment[0])
		put(&to, " comment \"%s\"", rule->comment);
	memmove(text, text + 1, to.used);
	return text;
}

const char *rule_shape_format(const struct rule_shape *shape, char text[RULE_TEXT_BYTES])
{
	struct writer to = { .text = text, .size = RULE_TEXT_BYTES };

	put(&to, "%s", shape->family == FLOW_IPV4 ? "ipv4" : "ipv6");
	if (shape->fields & RULE_PROTO)
		put(&to, " proto");
	if (shape->src_len)
		put(&to, " src/%u", shape->src_len);
	if (shape->fields & RULE_SPORT)
		put(&to, " sport");
	if (shape->dst_len)
		put(&to, " dst/%u", shape->dst_len);
	if (shape->fields & RULE_DPORT)
		put(&to, " dport");
	if (shape->action == RULE_PASS)
		put(&to, " action pass");
	return text;
}

/* ---- bytes for the store ---- */

static size_t address_bytes(enum flow_family family)
{
	return family == FLOW_IPV4 ? 4 : family == FLOW_IPV6 ? 16 : 0;
}

size_t rule_encode(const struct rule *rule, __u8 bytes[RULE_ENCODED_BYTES])
{
	size_t width = address_bytes(rule->family);
	__u8 *to = bytes;

	*to++ = rule->family;
	to = (__u8 *)memcpy(to, rule->src.byte, width) + width;
	*to++ = rule->src_len;
	to = (__u8 *)memcpy(to, rule->dst.byte, width) + width;
	*to++ = rule->dst_len;
	*to++ = rule->fields;
	*to++ = rule->proto;
	*to++ = rule->port_kind;
	to = (__u8 *)memcpy(to, &rule->sport, 2) + 2;
	to = (__u8 *)memcpy(to, &rule->dport, 2) + 2;
	*to++ = rule->action;
	return to - bytes;
}

/* Bytes that rule_encode() writes beside the two addresses. */
#define ENCODED_FIXED_BYTES 11

int rule_decode(const __u8 *bytes, size_t length, struct rule *rule)
{
	const __u8 *from = bytes;
	size_t width;

	if (length < ENCODED_FIXED_BYTES || bytes[0] > FLOW_NO_FAMILY)
		return -EBADMSG;
	width = address_bytes(bytes[0]);
	if (length != ENCODED_FIXED_BYTES + 2 * width)
		return -EBADMSG;
	memset(rule, 0, offsetof(struct rule, comment));
	rule->comment[0] = '\0';
	rule->family = *from++;
	memcpy(rule->src.byte, from, width);
	from += width;
	rule->src_len = *from++;
	memcpy(rule->dst.byte, from, width);
	from += width;
	rule->dst_len = *from++;
	rule->fields = *from++;
	rule->proto = *from++;
	rule->port_kind = *from++;
	memcpy(&rule->sport, from, 2);
	memcpy(&rule->dport, from + 2, 2);
	rule->action = from[4];
	if (rule->src_len > 8 * width || rule->dst_len > 8 * width || rule->action > RULE_PASS ||
	    rule->port_kind > FLOW_ICMP || rule->fields >= RULE_DPORT << 1)
		return -EBADMSG;
	return 0;
}

/* ---- keys for the table ---- */

static __u64 shape_tag(const struct rule_shape *shape)
{
	__u64 lengths = shape->src_len * (address_bits(shape->family) + 1) + shape->dst_len;

	return (shape->action == RULE_PASS ? ABI_TAG_PASS : 0) |
	       (shape->fields & RULE_PROTO ? 0 : ABI_TAG_NO_PROTO) |
	       (shape->fields & RULE_SPORT ? ABI_TAG_SPORT : 0) |
	       (shape->fields & RULE_DPORT ? ABI_TAG_DPORT : 0) | lengths << ABI_TAG_LENGTHS_SHIFT;
}

struct rule_shape rule_shape_of_tag(__u64 tag, enum flow_family family)
{
	__u64 lengths = tag >> ABI_TAG_LENGTHS_SHIFT;
	unsigned int each = address_bits(family) + 1;

	return (struct rule_shape){ .family = family,
				    .action = tag & ABI_TAG_PASS ? RULE_PASS : RULE_DROP,
				    .fields = (tag & ABI_TAG_NO_PROTO ? 0 : RULE_PROTO) |
					      (tag & ABI_TAG_SPORT ? RULE_SPORT : 0) |
					      (tag & ABI_TAG_DPORT ? RULE_DPORT : 0),
				    .src_len = lengths / each,
				    .dst_len = lengths % each };
}

static void key_of_family(const struct rule *rule, enum flow_family family, struct rule_key *key)
{
	struct flow flow = {
		.src = rule->src,
		.dst = rule->dst,
		.sport = rule->sport,
		.dport = rule->dport,
		.proto = rule->proto,
		.family = family,
		.port_kind = rule->port_kind,
	};

	*key = (struct rule_key){ .shape = { .family = family,
					     .action = rule->action,
					     .fields = rule->fields,
					     .src_len = rule->src_len,
					     .dst_len = rule->dst_len } };
	flow_pack(&flow, &key->key);
	key->key.word[flow_key_last(family)] |= shape_tag(&key->shape);
}

size_t rule_keys(const struct rule *rule, struct rule_key keys[RULE_KEYS_MAX])
{
	size_t count = 0;

	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++)
		if (rule->family == family || rule->family == FLOW_NO_FAMILY)
			key_of_family(rule, family, &keys[count++]);
	return count;
}

struct siphash_value rule_hash(const struct rule_key *key, const struct siphash_key *secret)
{
	struct siphash_state state =
		siphash13_state(secret, key->key.word, flow_key_bytes(key->shape.family));

	return (struct siphash_value){ siphash_hash(&state), siphash_tag(state) };
}

/* The first `length` bits of an address, in memory order. */
static union flow_addr prefix_mask(unsigned int length)
{
	union flow_addr mask = {};

	for (unsigned int i = 0; i < sizeof(mask.byte) && length > 8 * i; i++)
		mask.byte[i] = length - 8 * i >= 8 ? 0xff : 0xff << (8 - (length - 8 * i));
	return mask;
}

/* The mask is packed as the flow is, so that the two cannot come to differ. */
void rule_shape_compile(const struct rule_shape *shape, struct abi_shape *compiled)
{
	bool has_port = shape->fields & (RULE_SPORT | RULE_DPORT);
	struct flow mask = {
		.src = prefix_mask(shape->src_len),
		.dst = prefix_mask(shape->dst_len),
		.sport = shape->fields & RULE_SPORT ? 0xffff : 0,
		.dport = shape->fields & RULE_DPORT ? 0xffff : 0,
		.proto = shape->fields & RULE_PROTO ? 0xff : 0,
		.family = shape->family,
		.port_kind = has_port ? FLOW_PORT_KIND_MASK : 0,
	};
	struct flow_key key = {};

	flow_pack(&mask, &key);
	memcpy(compiled->mask, key.word, sizeof(compiled->mask));
	compiled->tag = shape_tag(shape);
}

union flow_addr rule_network(const union flow_addr *address, unsigned int length)
{
	union flow_addr mask = prefix_mask(length);

	return (union flow_addr){ .word = { address->word[0] & mask.word[0],
					    address->word[1] & mask.word[1] } };
}

size_t rule_generalise(const struct rule *query, const struct rule_shape *shape,
		       struct rule rules[RULE_KEYS_MAX])
{
	bool has_port = shape->fields & (RULE_SPORT | RULE_DPORT);
	struct rule rule = { .family = shape->family,
			     .action = shape->action,
			     .fields = shape->fields,
			     .src_len = shape->src_len,
			     .dst_len = shape->dst_len };
	size_t count = 0;

	if ((query->family != FLOW_NO_FAMILY && query->family != shape->family) ||
	    (query->fields & shape->fields) != shape->fields || query->src_len < shape->src_len ||
	    query->dst_len < shape->dst_len)
		return 0;
	rule.src = rule_network(&query->src, shape->src_len);
	rule.dst = rule_network(&query->dst, shape->dst_len);
	rule.port_kind = has_port ? query->port_kind : FLOW_NO_PORTS;
	rule.proto = shape->fields & RULE_PROTO ? query->proto : 0;
	rule.sport = shape->fields & RULE_SPORT ? query->sport : 0;
	rule.dport = shape->fields & RULE_DPORT ? query->dport : 0;
	if (query->family != FLOW_NO_FAMILY)
		rules[count++] = rule;
	if (!shape->src_len && !shape->dst_len) {
		rule.family = FLOW_NO_FAMILY;
		rules[count++] = rule;
	}
	return count;
}
