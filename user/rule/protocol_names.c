// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* IP protocols by name and by number. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rule/rule.h"

static const struct {
	const char *name;
	__u8 number;
} protocols[] = {
	/* Of several names for one number, the first is the canonical one. */
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
		if (!strcasecmp(protocols[i].name, word)) {
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

bool rule_is_icmp(const struct rule *rule)
{
	return rule->fields & RULE_PROTO && (rule->proto == IPPROTO_ICMP || rule->proto == IPPROTO_ICMPV6);
}
