// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Splits ranges of addresses into prefixes. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "rule/internal.h"

typedef unsigned __int128 wide;

#define WIDE_MAX (~(wide)0)

static wide to_number(enum flow_family family, const union flow_addr *address)
{
	if (family == FLOW_IPV4)
		return ntohl(address->v4);
	return (wide)__builtin_bswap64(address->word[0]) << 64 | __builtin_bswap64(address->word[1]);
}

static union flow_addr to_address(enum flow_family family, wide number)
{
	if (family == FLOW_IPV4)
		return (union flow_addr){ .v4 = htonl(number) };
	return (union flow_addr){ .word = { __builtin_bswap64(number >> 64), __builtin_bswap64((__u64)number) } };
}

int rule_range_parse(const char *text, struct rule_range *range, struct reason *reason)
{
	const char *dash = strchrnul(text, '-');
	const size_t length = dash - text;
	char first[INET6_ADDRSTRLEN];
	enum flow_family last_family = FLOW_NO_FAMILY;

	range->family = FLOW_NO_FAMILY;
	if (*dash && length < sizeof(first)) {
		*(char *)mempcpy(first, text, length) = '\0';
		range->family = rule_address_parse(first, &range->first);
		last_family = rule_address_parse(dash + 1, &range->last);
	}
	if (range->family == FLOW_NO_FAMILY || last_family == FLOW_NO_FAMILY)
		return reason_set(reason, -EINVAL, "'%s' is not a range of addresses, like 192.0.2.1-192.0.2.9", text);
	if (range->family != last_family)
		return reason_set(reason, -EINVAL, "'%s': a range is of IPv4 or of IPv6 addresses", text);
	/* Prefixes of mapped addresses are read as IPv4, others in the same range are not. */
	if (range->family == FLOW_IPV6 && (rule_is_mapped(&range->first) || rule_is_mapped(&range->last)))
		return reason_set(reason, -EINVAL,
				  "'%s': no packet has an IPv4 address written as IPv6; write it as "
				  "IPv4",
				  text);
	if (to_number(range->family, &range->first) > to_number(range->family, &range->last))
		return reason_set(reason, -EINVAL, "'%s': the range ends before it starts", text);
	return 0;
}

bool rule_range_next(struct rule_range *range, union flow_addr *address, unsigned int *length)
{
	const unsigned int bits = rule_address_bits(range->family);
	const wide first = to_number(range->family, &range->first);
	const wide last = to_number(range->family, &range->last);
	unsigned int host_bits = 0;

	if (first > last)
		return false;
	/* The start must be aligned to the prefix, and the prefix must not reach beyond the end. */
	while (host_bits < bits && !(first >> host_bits & 1) && last - first >= (WIDE_MAX >> (127 - host_bits)))
		host_bits++;
	*address = range->first;
	*length = bits - host_bits;
	if (last - first == (host_bits ? WIDE_MAX >> (128 - host_bits) : 0)) {
		/* first + 2^host_bits could overflow: an empty range instead. */
		range->first = to_address(range->family, 1);
		range->last = to_address(range->family, 0);
	} else {
		range->first = to_address(range->family, first + ((wide)1 << host_bits));
	}
	return true;
}
