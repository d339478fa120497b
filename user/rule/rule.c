// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rule/rule.h"

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
	{ "tcp", IPPROTO_TCP },         { "udp", IPPROTO_UDP },
	{ "icmp", IPPROTO_ICMP },       { "ipv6-icmp", IPPROTO_ICMPV6 },
	{ "icmpv6", IPPROTO_ICMPV6 },   { "icmp6", IPPROTO_ICMPV6 },
	{ "udplite", IPPROTO_UDPLITE }, { "sctp", IPPROTO_SCTP },
	{ "dccp", IPPROTO_DCCP },       { "igmp", IPPROTO_IGMP },
	{ "ipip", IPPROTO_IPIP },       { "ipv6", IPPROTO_IPV6 },
	{ "gre", IPPROTO_GRE },         { "esp", IPPROTO_ESP },
	{ "ah", IPPROTO_AH },           { "ospf", 89 },
	{ "pim", IPPROTO_PIM },         { "vrrp", 112 },
};

#define PROTOCOLS (sizeof(protocols) / sizeof(protocols[0]))

bool rule_has_leading_zero(const char *number)
{
	return number[0] == '0' && number[1] >= '0' && number[1] <= '9';
}

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
	if (*word < '0' || *word > '9' || rule_has_leading_zero(word) || *end || value > RULE_PROTO_MAX)
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

bool rule_has_ports(__u8 proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_UDPLITE || proto == IPPROTO_SCTP ||
	       proto == IPPROTO_DCCP;
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

static void put_prefix(struct writer *to, const char *word, enum flow_family family, const union flow_addr *address,
		       unsigned int length)
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
	bool is_icmp = rule->fields & RULE_PROTO && (rule->proto == IPPROTO_ICMP || rule->proto == IPPROTO_ICMPV6);

	return rule->family != FLOW_NO_FAMILY && !rule->src_len && !rule->dst_len && !is_icmp;
}

const char *rule_format(const struct rule *rule, char text[RULE_TEXT_BYTES])
{
	struct writer to = { .text = text, .size = RULE_TEXT_BYTES };
	bool is_icmp = rule->port_kind == FLOW_ICMP;
	const char *name = rule_protocol_name(rule->proto);
	char time[RULE_TIME_BYTES];

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
	if (rule->timeout_ms)
		put(&to, " timeout %s", rule_time_format(rule->timeout_ms, time));
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

__u64 rule_owners_now(const struct rule *rule)
{
	const struct rule_owners *owners = &rule->owners;

	return owners->for_good | (owners->timed_ms > 0 ? owners->timed : 0);
}

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

size_t rule_encoded_bytes(enum flow_family family)
{
	return ENCODED_FIXED_BYTES + 2 * address_bytes(family);
}

int rule_decode(const __u8 *bytes, size_t length, struct rule *rule)
{
	const __u8 *from = bytes;
	size_t width;

	if (length < ENCODED_FIXED_BYTES || bytes[0] > FLOW_NO_FAMILY)
		return -EBADMSG;
	width = address_bytes(bytes[0]);
	if (length != rule_encoded_bytes(bytes[0]))
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
