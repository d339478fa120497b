/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the benchmarks of the packet path and their BPF programs agree on. */
#ifndef XDP_CUCKOO_BENCH_LOOKUP_H
#define XDP_CUCKOO_BENCH_LOOKUP_H

#include <linux/types.h>

#define LOOKUP_KEY_WORDS 2  /* of an IPv4 flow */
#define LOOKUP_KEY6_WORDS 5 /* of an IPv6 flow */

#define LOOKUP_SOURCES (1 << 18) /* that a list of them holds */
#define LOOKUP_SOURCES_A_LINE 16
#define LOOKUP_SHARES 1024              /* of `other` flows */
#define LOOKUP_PRESSURE_LINES (1 << 14) /* of other memory: 1 MiB */

/*
 * The flows of the packets: any number from base to base + flows - 1, or, `share` times of LOOKUP_SHARES,
 * that and `other` more; where there are no `flows`, the sources listed, one after the other. A program
 * under pressure reads `lines` of other memory before each packet: 0, or a power of two.
 */
struct lookup_parameters {
	__u32 flows, base, other, share, lines;
};

/*
 * A processor's own. `carry` is what the next flow has to wait for: see lookup_dependent_*. Of a program under
 * pressure: what it read of other memory and its sum, and the ns from there to the verdict, of all packets.
 */
struct lookup_state {
	__u64 random, carry;
	__u64 lines, sum, begun, ns;
	__u32 next;
};

/* The source of flow number `flow`, in host order; of IPv6 the last four bytes. Each once, in no order. */
static inline __attribute__((always_inline)) __u32 lookup_source(__u32 flow)
{
	return flow * 0x9e3779b1U + 0x3c6ef372U;
}

/* A line of the cache, so that reading the list costs next to nothing. */
struct lookup_sources {
	__be32 source[LOOKUP_SOURCES_A_LINE];
};

/* Of a flow, in a hash map whose value it is. */
struct lookup_count {
	__u64 packets, bytes;
};

/* The key of the LPM trie. */
struct lookup_lpm_key {
	__u32 length;
	__be32 source;
};

/* ---- Bloom filters in arrays ---- */

#define LOOKUP_BLOOM_BITS 16   /* a key: as many as fingerprints of 16 bits take */
#define LOOKUP_BLOOM_HASHES 11 /* the fewest false positives at 16 bits a key, with room to spare */
#define LOOKUP_BLOCKED_HASHES 8
#define LOOKUP_BLOCK_WORDS 8 /* a line of the cache */
#define LOOKUP_BLOCK_BITS_LOG2 9
#define LOOKUP_MULTIPLIER 0x9e3779b97f4a7c15ULL

struct lookup_block {
	__u64 word[LOOKUP_BLOCK_WORDS];
};

/* Bit number i of a key, by double hashing: Kirsch, Mitzenmacher, "Less Hashing, Same Performance", 2008. */
static inline __attribute__((always_inline)) __u32 lookup_bloom_bit(__u64 hash, unsigned int i, __u64 bits)
{
	__u32 mixed = (__u32)hash + i * ((__u32)(hash >> 32) | 1);

	return mixed * bits >> 32;
}

static inline __attribute__((always_inline)) __u32 lookup_block_of(__u64 hash, __u64 blocks)
{
	return (hash & 0xffffffff) * blocks >> 32;
}

/* The next bit in its block; changes the hash. */
static inline __attribute__((always_inline)) __u32 lookup_block_bit(__u64 *hash)
{
	*hash *= LOOKUP_MULTIPLIER;
	return *hash >> (64 - LOOKUP_BLOCK_BITS_LOG2);
}

#endif
