// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The names of ICMP types and codes in ipset (lib/icmp.c, icmpv6.c) and in nft (nft describe). */
#include <string.h>

#include "lists/internal.h"

static const struct list_icmp_pair v4_pairs[] = {
	{ "echo-reply|pong", 0, 0 },
	{ "network-unreachable", 3, 0 },
	{ "host-unreachable", 3, 1 },
	{ "protocol-unreachable", 3, 2 },
	{ "port-unreachable", 3, 3 },
	{ "fragmentation-needed", 3, 4 },
	{ "source-route-failed", 3, 5 },
	{ "network-unknown", 3, 6 },
	{ "host-unknown", 3, 7 },
	{ "network-prohibited", 3, 9 },
	{ "host-prohibited", 3, 10 },
	{ "TOS-network-unreachable", 3, 11 },
	{ "TOS-host-unreachable", 3, 12 },
	{ "communication-prohibited", 3, 13 },
	{ "host-precedence-violation", 3, 14 },
	{ "precedence-cutoff", 3, 15 },
	{ "source-quench", 4, 0 },
	{ "network-redirect", 5, 0 },
	{ "host-redirect", 5, 1 },
	{ "TOS-network-redirect", 5, 2 },
	{ "TOS-host-redirect", 5, 3 },
	{ "echo-request|ping", 8, 0 },
	{ "router-advertisement", 9, 0 },
	{ "router-solicitation", 10, 0 },
	{ "ttl-zero-during-transit", 11, 0 },
	{ "ttl-zero-during-reassembly", 11, 1 },
	{ "ip-header-bad", 12, 0 },
	{ "required-option-missing", 12, 1 },
	{ "timestamp-request", 13, 0 },
	{ "timestamp-reply", 14, 0 },
	{ "address-mask-request", 17, 0 },
	{ "address-mask-reply", 18, 0 },
};

static const struct list_icmp_pair v6_pairs[] = {
	{ "no-route", 1, 0 },
	{ "communication-prohibited", 1, 1 },
	{ "address-unreachable", 1, 3 },
	{ "port-unreachable", 1, 4 },
	{ "packet-too-big", 2, 0 },
	{ "ttl-zero-during-transit", 3, 0 },
	{ "ttl-zero-during-reassembly", 3, 1 },
	{ "bad-header", 4, 0 },
	{ "unknown-header-type", 4, 1 },
	{ "unknown-option", 4, 2 },
	{ "echo-request|ping", 128, 0 },
	{ "echo-reply|pong", 129, 0 },
	{ "router-solicitation", 133, 0 },
	{ "router-advertisement", 134, 0 },
	{ "neighbour-solicitation|neigbour-solicitation", 135, 0 },
	{ "neighbour-advertisement|neigbour-advertisement", 136, 0 },
	{ "redirect", 137, 0 },
};

/* Of nft: each kind ends with a row without a name. */
static const struct icmp_name {
	const char *name;
	__u8 number;
} numbers[][20] = {
	[LIST_ICMP_TYPE] = {
		{ "echo-reply", 0 }, { "destination-unreachable", 3 },
		{ "source-quench", 4 }, { "redirect", 5 },
		{ "echo-request", 8 }, { "router-advertisement", 9 },
		{ "router-solicitation", 10 }, { "time-exceeded", 11 },
		{ "parameter-problem", 12 }, { "timestamp-request", 13 },
		{ "timestamp-reply", 14 }, { "info-request", 15 },
		{ "info-reply", 16 }, { "address-mask-request", 17 },
		{ "address-mask-reply", 18 },
	},
	[LIST_ICMP_CODE] = {
		{ "net-unreachable", 0 }, { "host-unreachable", 1 },
		{ "prot-unreachable", 2 }, { "port-unreachable", 3 },
		{ "frag-needed", 4 }, { "net-prohibited", 9 },
		{ "host-prohibited", 10 }, { "admin-prohibited", 13 },
	},
	[LIST_ICMPV6_TYPE] = {
		{ "destination-unreachable", 1 }, { "packet-too-big", 2 },
		{ "time-exceeded", 3 }, { "parameter-problem", 4 },
		{ "echo-request", 128 }, { "echo-reply", 129 },
		{ "mld-listener-query", 130 }, { "mld-listener-report", 131 },
		{ "mld-listener-done", 132 }, { "mld-listener-reduction", 132 },
		{ "nd-router-solicit", 133 }, { "nd-router-advert", 134 },
		{ "nd-neighbor-solicit", 135 }, { "nd-neighbor-advert", 136 },
		{ "nd-redirect", 137 }, { "router-renumbering", 138 },
		{ "ind-neighbor-solicit", 141 }, { "ind-neighbor-advert", 142 },
		{ "mld2-listener-report", 143 },
	},
	[LIST_ICMPV6_CODE] = {
		{ "no-route", 0 }, { "admin-prohibited", 1 },
		{ "addr-unreachable", 3 }, { "port-unreachable", 4 },
		{ "policy-fail", 5 }, { "reject-route", 6 },
	},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int list_icmp_number(enum list_icmp_name what, const char *name)
{
	for (const struct icmp_name *known = numbers[what]; known->name; known++)
		if (!strcmp(known->name, name))
			return known->number;
	return -1;
}

const struct list_icmp_pair *list_icmp_pair(bool is_v6, const char *name)
{
	const struct list_icmp_pair *pair = is_v6 ? v6_pairs : v4_pairs;
	const struct list_icmp_pair *const end = pair + (is_v6 ? COUNT(v6_pairs) : COUNT(v4_pairs));

	while (pair < end && !is_one_of(name, pair->names))
		pair++;
	return pair < end ? pair : NULL;
}
