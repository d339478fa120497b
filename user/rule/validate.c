// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Checks whether rule_parse() could have made a rule that others wrote. */
#include <arpa/inet.h>
#include <string.h>

#include "rule/rule.h"
#include "base/safe_text.h"

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
		return named && rule_is_icmp(rule) && ntohs(rule->sport) < 256 && ntohs(rule->dport) < 256;
	default:
		return false;
	}
}

/* The store checks millions of rules, and most have whole addresses, so these return early. */
static bool is_network(const struct rule *rule, const union flow_addr *address, unsigned int length)
{
	if (!length)
		return !(address->word[0] | address->word[1]);
	return length == rule_address_bits(rule->family) || rule_is_network_of(address, length, address);
}

bool rule_is_canonical(const struct rule *rule)
{
	const unsigned int bits = rule_address_bits(rule->family);

	if (rule->action >= RULE_ACTIONS || rule->fields >= RULE_FIELDS ||
	    (rule->fields & RULE_NEW && rule->action == RULE_PASS))
		return false;
	if (rule->fields & RULE_PROTO ? rule->proto > RULE_PROTO_MAX : rule->proto)
		return false;
	if (!are_ports_canonical(rule))
		return false;
	if (rule->family > FLOW_NO_FAMILY || rule->src_len > bits || rule->dst_len > bits)
		return false;
	if (rule_is_icmp(rule) ? rule->family != (rule->proto == IPPROTO_ICMP ? FLOW_IPV4 : FLOW_IPV6) :
				 rule->family == FLOW_NO_FAMILY && !rule->fields)
		return false;
	return is_network(rule, &rule->src, rule->src_len) && is_network(rule, &rule->dst, rule->dst_len);
}
