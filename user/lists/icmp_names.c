// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The names of ICMP types and codes in ipset (lib/icmp.c, icmpv6.c) and in nft (nft describe). */
#include <string.h>

#include "lists/internal.h"

static const struct list_icmp_pair v4_pairs[] = {
	{ "echo-reply", 0, 0 },
	{ "pong", 0, 0 },
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
	{ "echo-request", 8, 0 },
	{ "ping", 8, 0 },
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
	{ "echo-request", 128, 0 },
	{ "ping", 128, 0 },
	{ "echo-reply", 129, 0 },
	{ "pong", 129, 0 },
	{ "router-solicitation", 133, 0 },
	{ "router-advertisement", 134, 0 },
	{ "neighbour-solicitation", 135, 0 },
	{ "neigbour-solicitation", 135, 0 },
	{ "neighbour-advertisement", 136, 0 },
	{ "neigbour-advertisement", 136, 0 },
	{ "redirect", 137, 0 },
};

static const struct {
	enum list_icmp_name what;
	const char *name;
	__u8 number;
} numbers[] = {
	{ LIST_ICMP_TYPE, "echo-reply", 0 },
	{ LIST_ICMP_TYPE, "destination-unreachable", 3 },
	{ LIST_ICMP_TYPE, "source-quench", 4 },
	{ LIST_ICMP_TYPE, "redirect", 5 },
	{ LIST_ICMP_TYPE, "echo-request", 8 },
	{ LIST_ICMP_TYPE, "router-advertisement", 9 },
	{ LIST_ICMP_TYPE, "router-solicitation", 10 },
	{ LIST_ICMP_TYPE, "time-exceeded", 11 },
	{ LIST_ICMP_TYPE, "parameter-problem", 12 },
	{ LIST_ICMP_TYPE, "timestamp-request", 13 },
	{ LIST_ICMP_TYPE, "timestamp-reply", 14 },
	{ LIST_ICMP_TYPE, "info-request", 15 },
	{ LIST_ICMP_TYPE, "info-reply", 16 },
	{ LIST_ICMP_TYPE, "address-mask-request", 17 },
	{ LIST_ICMP_TYPE, "address-mask-reply", 18 },
	{ LIST_ICMP_CODE, "net-unreachable", 0 },
	{ LIST_ICMP_CODE, "host-unreachable", 1 },
	{ LIST_ICMP_CODE, "prot-unreachable", 2 },
	{ LIST_ICMP_CODE, "port-unreachable", 3 },
	{ LIST_ICMP_CODE, "frag-needed", 4 },
	{ LIST_ICMP_CODE, "net-prohibited", 9 },
	{ LIST_ICMP_CODE, "host-prohibited", 10 },
	{ LIST_ICMP_CODE, "admin-prohibited", 13 },
	{ LIST_ICMPV6_TYPE, "destination-unreachable", 1 },
	{ LIST_ICMPV6_TYPE, "packet-too-big", 2 },
	{ LIST_ICMPV6_TYPE, "time-exceeded", 3 },
	{ LIST_ICMPV6_TYPE, "parameter-problem", 4 },
	{ LIST_ICMPV6_TYPE, "echo-request", 128 },
	{ LIST_ICMPV6_TYPE, "echo-reply", 129 },
	{ LIST_ICMPV6_TYPE, "mld-listener-query", 130 },
	{ LIST_ICMPV6_TYPE, "mld-listener-report", 131 },
	{ LIST_ICMPV6_TYPE, "mld-listener-done", 132 },
	{ LIST_ICMPV6_TYPE, "mld-listener-reduction", 132 },
	{ LIST_ICMPV6_TYPE, "nd-router-solicit", 133 },
	{ LIST_ICMPV6_TYPE, "nd-router-advert", 134 },
	{ LIST_ICMPV6_TYPE, "nd-neighbor-solicit", 135 },
	{ LIST_ICMPV6_TYPE, "nd-neighbor-advert", 136 },
	{ LIST_ICMPV6_TYPE, "nd-redirect", 137 },
	{ LIST_ICMPV6_TYPE, "router-renumbering", 138 },
	{ LIST_ICMPV6_TYPE, "ind-neighbor-solicit", 141 },
	{ LIST_ICMPV6_TYPE, "ind-neighbor-advert", 142 },
	{ LIST_ICMPV6_TYPE, "mld2-listener-report", 143 },
	{ LIST_ICMPV6_CODE, "no-route", 0 },
	{ LIST_ICMPV6_CODE, "admin-prohibited", 1 },
	{ LIST_ICMPV6_CODE, "addr-unreachable", 3 },
	{ LIST_ICMPV6_CODE, "port-unreachable", 4 },
	{ LIST_ICMPV6_CODE, "policy-fail", 5 },
	{ LIST_ICMPV6_CODE, "reject-route", 6 },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int list_icmp_number(enum list_icmp_name what, const char *name)
{
	for (size_t i = 0; i < COUNT(numbers); i++)
		if (numbers[i].what == what && !strcmp(numbers[i].name, name))
			return numbers[i].number;
	return -1;
}

const struct list_icmp_pair *list_icmp_pair(bool is_v6, const char *name)
{
	const struct list_icmp_pair *pair = is_v6 ? v6_pairs : v4_pairs;
	const struct list_icmp_pair *const end = pair + (is_v6 ? COUNT(v6_pairs) : COUNT(v4_pairs));

	while (pair < end && strcmp(pair->name, name))
		pair++;
	return pair < end ? pair : NULL;
}
