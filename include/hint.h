/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the hint of a flow or a key by the first bits of the source address. shape.h explains hints. */
#ifndef XDP_CUCKOO_HINT_H
#define XDP_CUCKOO_HINT_H

#include "shape.h"

#define HINT_IPV6_BITS 32 /* of the source address, on which the index depends */

/* The first four bytes of the source address, in memory order, as a number. */
FLOW_INLINE __u32 hint_head(enum flow_family family, const struct flow_key *key)
{
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
	if (family == FLOW_IPV6)
		return key->word[0] >> 32;
#endif
	(void)family;
	return key->word[0];
}

/*
 * The index, of 32 - shift bits: see ABI_HINT_SHIFT_MOST. IPv4: the first bits of the address. IPv6: a hash of the first
 * four bytes, because many IPv6 networks have the same first two (Fibonacci hashing, Knuth, TAOCP 6.4).
 */
FLOW_INLINE __u32 hint_index(enum flow_family family, __u32 head, __u32 shift)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	const __u32 first = __builtin_bswap32(head);
#else
	const __u32 first = head;
#endif

	return (family == FLOW_IPV4 ? first : head * 0x9e3779b1U) >> shift;
}

#endif
