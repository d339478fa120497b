// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Addresses and packets that a rule seldom means to block. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "host/host.h"

static const struct special {
	const char *what;
	enum flow_family family;
	unsigned int length;
	__u8 network[16];
} specials[] = {
	{ "private (RFC 1918)", FLOW_IPV4, 8, { 10 } },
	{ "private (RFC 1918)", FLOW_IPV4, 12, { 172, 16 } },
	{ "private (RFC 1918)", FLOW_IPV4, 16, { 192, 168 } },
	{ "loopback", FLOW_IPV4, 8, { 127 } },
	{ "multicast", FLOW_IPV4, 4, { 224 } },
	{ "link-local", FLOW_IPV4, 16, { 169, 254 } },
	{ "shared behind carriers' NAT (RFC 6598)", FLOW_IPV4, 10, { 100, 64 } },
	{ "\"this network\" (RFC 6890)", FLOW_IPV4, 8, { 0 } },
	{ "link-local", FLOW_IPV6, 10, { 0xfe, 0x80 } },
	{ "multicast", FLOW_IPV6, 8, { 0xff } },
	{ "unique local (RFC 4193)", FLOW_IPV6, 7, { 0xfc } },
	{ "loopback", FLOW_IPV6, 128, { [15] = 1 } },
};

/* Whether the prefix is in the range, or covers it. */
static bool meets(const struct special *special, const union flow_addr *prefix, unsigned int length)
{
	const unsigned int common = length < special->length ? length : special->length;
	union flow_addr range;

	/* Fast for lists with millions of rules: most prefixes differ in the first byte. */
	if (common >= 8 && prefix->byte[0] != special->network[0])
		return false;
	memcpy(range.byte, special->network, sizeof(range.byte));
	range = rule_network(&range, common);
	return !memcmp(rule_network(prefix, common).byte, range.byte, sizeof(range.byte));
}

/* Whether this host has an address that the rule names as destination, or the kernel does not list them. */
static bool is_own(const struct rule *rule, struct host_addresses *own)
{
	bool is_one;

	if (!own->is_read)
		own->is_part = host_find_addresses(own);
	own->is_read = true;
	is_one = own->is_part;
	for (size_t i = 0; i < own->count && !is_one; i++)
		is_one = own->address[i].family == (enum flow_family)rule->family &&
			 rule_is_network_of(&rule->dst, rule->dst_len, &own->address[i].bytes);
	return is_one;
}

bool guard_is_elsewhere(const struct rule *rule)
{
	const struct host_address network = { rule->family, .bytes = rule->dst };
	struct host_addresses own = {};
	bool is_here = !rule->dst_len || host_forwards(rule->family);

	for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]) && !is_here; i++)
		is_here = specials[i].family == network.family && meets(&specials[i], &rule->dst, rule->dst_len) &&
			  (!strcmp(specials[i].what, "multicast") || !strcmp(specials[i].what, "loopback"));
	/* Also broadcasts of a subnet. */
	is_here = is_here || is_own(rule, &own) ||
		  (rule->dst_len == rule_address_bits(network.family) && host_is_local(&network));
	free(own.address);
	return !is_here;
}

/* Answers that a rule drops which blocks all of UDP or, from servers to clients of DHCP, a port. NULL: none. */
static const char *answers_of(const struct rule *rule)
{
	static const __u16 ports[][2] = { { 67, 68 }, { 547, 546 } };
	bool is_one = false;

	if (rule->fields & RULE_NEW || (rule->fields & RULE_PROTO && rule->proto != IPPROTO_UDP))
		return NULL;
	for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++)
		is_one |= (!(rule->fields & RULE_SPORT) || rule->sport == htons(ports[i][0])) &&
			  (!(rule->fields & RULE_DPORT) || rule->dport == htons(ports[i][1]));
	if (rule->fields & (RULE_SPORT | RULE_DPORT))
		return is_one && rule->port_kind == FLOW_PORTS ?
			       "answers of DHCP servers, by which a host keeps its addresses" :
			       NULL;
	return rule->fields & RULE_PROTO && !(rule->fields & RULE_DETAILS) ?
		       "answers by UDP to this host, as of DNS, NTP and DHCP" :
		       NULL;
}

const char *guard_special(const struct rule *rule, struct host_addresses *own)
{
	const unsigned int length = rule->src_len ? rule->src_len : rule->dst_len;
	const union flow_addr *prefix = rule->src_len ? &rule->src : &rule->dst;
	const char *answers = rule_blocks(rule) && !rule->src_len ? answers_of(rule) : NULL;

	if (answers && (!rule->dst_len || is_own(rule, own)))
		return answers;
	/* Any other rule with a protocol, a port or both addresses is likely on purpose. */
	if (rule->action != RULE_DROP || rule->fields || (rule->src_len && rule->dst_len))
		return NULL;
	if (!length)
		return rule->family == FLOW_IPV4 ? "all of IPv4" : "all of IPv6";
	for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++)
		if (specials[i].family == (enum flow_family)rule->family && meets(&specials[i], prefix, length))
			return specials[i].what;
	return NULL;
}
