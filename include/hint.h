/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the hint of a flow or a key by the first bits of the source address. shape.h explains hints. */
#ifndef XDP_CUCKOO_HINT_H
#define XDP_CUCKOO_HINT_H

#include "shape.h"

#define HINT_INDEX_BITS 16 /* see ABI_HINT_INDEXES */

/* The number of bits of the source address that the index depends on. */
#define HINT_IPV4_BITS 16
#define HINT_IPV6_BITS 32

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
 * An index from 0 to ABI_HINT_INDEXES - 1. IPv4: the first two bytes. IPv6: a hash of the first four bytes,
 * because many IPv6 networks have the same first two (Fibonacci hashing, Knuth, TAOCP 6.4).
 */
FLOW_INLINE __u32 hint_index(enum flow_family family, __u32 head)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	const __u32 first = head & 0xffff;
#else
	const __u32 first = head >> 16;
#endif

	return family == FLOW_IPV4 ? first : head * 0x9e3779b1U >> 16;
}

#endif
