// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Checks a rule that others wrote: rule_parse() could have made it. */
#include <arpa/inet.h>
#include <string.h>

#include "rule/rule.h"
#include "base/safe_text.h"

/* ---- text ---- */

bool rule_is_plain(const char *text)
{
	for (; *text; text++)
		if (text_is_control(text) || *text == '"')
			return false;
	return true;
}

bool rule_is_utf8(const char *text)
{
	size_t bytes = 1;

	for (; *text && bytes; text += bytes)
		bytes = text_character_bytes(text);
	return bytes > 0;
}

/* ---- fields ---- */

static bool is_icmp(const struct rule *rule)
{
	return rule->fields & RULE_PROTO && (rule->proto == IPPROTO_ICMP || rule->proto == IPPROTO_ICMPV6);
}

/* A port that the rule does not have must be 0. */
static bool are_ports_canonical(const struct rule *rule)
{
	const __u8 named = rule->fields & (RULE_SPORT | RULE_DPORT);

	if ((!(rule->fields & RULE_SPORT) && rule->sport) || (!(rule->fields & RULE_DPORT) && rule->dport))
		return false;
	switch (rule->port_kind) {
	case FLOW_NO_PORTS:
		return !named;
	case FLOW_PORTS:
		return named && (!(rule->fields & RULE_PROTO) || rule_has_ports(rule->proto));
	case FLOW_ICMP:
		return named && is_icmp(rule) && ntohs(rule->sport) < 256 && ntohs(rule->dport) < 256;
	default:
		return false;
	}
}

static unsigned int address_bits(enum flow_family family)
{
	return family == FLOW_IPV4 ? 32 : family == FLOW_IPV6 ? 128 : 0;
}

/* The store checks millions of rules, and most have whole addresses, so these return early. */
static bool is_network(const struct rule *rule, const union flow_addr *address, unsigned int length)
{
	union flow_addr network;

	if (!length)
		return !(address->word[0] | address->word[1]);
	if (length == address_bits(rule->family))
		return true;
	network = rule_network(address, length);
	return network.word[0] == address->word[0] && network.word[1] == address->word[1];
}

static bool is_family_canonical(const struct rule *rule)
{
	const unsigned int bits = address_bits(rule->family);

	if (rule->family > FLOW_NO_FAMILY || rule->src_len > bits || rule->dst_len > bits)
		return false;
	if (is_icmp(rule))
		return rule->family == (rule->proto == IPPROTO_ICMP ? FLOW_IPV4 : FLOW_IPV6);
	return rule->family != FLOW_NO_FAMILY || rule->fields;
}

bool rule_is_canonical(const struct rule *rule)
{
	if (rule->action > RULE_PASS || rule->fields >= RULE_DPORT << 1)
		return false;
	if (rule->fields & RULE_PROTO ? rule->proto > RULE_PROTO_MAX : rule->proto)
		return false;
	return are_ports_canonical(rule) && is_family_canonical(rule) && is_network(rule, &rule->src, rule->src_len) &&
	       is_network(rule, &rule->dst, rule->dst_len);
}
