/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SipHash-1-3: Aumasson and Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012, with one
 * compression and three finalisation rounds. The input is the first `bytes` little-endian bytes of an
 * array of words; what is behind them in the last word must be 0. Straight-line when `bytes` is a
 * constant, which is how the BPF program calls it.
 */
#ifndef XDP_CUCKOO_SIPHASH_H
#define XDP_CUCKOO_SIPHASH_H

#include <linux/types.h>

#include "flow.h"

struct siphash_key {
	__u64 k[2];
};

/* What a key becomes: the hash that names its buckets, and a tag that tells it from all others. */
struct siphash_value {
	__u64 hash, tag;
};

struct siphash_state {
	__u64 v0, v1, v2, v3;
};

FLOW_INLINE __u64 siphash_rotl(__u64 x, unsigned int bits)
{
	return x << bits | x >> (64 - bits);
}

FLOW_INLINE void siphash_round(struct siphash_state *s)
{
	s->v0 += s->v1;
	s->v1 = siphash_rotl(s->v1, 13) ^ s->v0;
	s->v0 = siphash_rotl(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = siphash_rotl(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = siphash_rotl(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = siphash_rotl(s->v1, 17) ^ s->v2;
	s->v2 = siphash_rotl(s->v2, 32);
}

FLOW_INLINE void siphash_absorb(struct siphash_state *s, __u64 word)
{
	s->v3 ^= word;
	siphash_round(s);
	s->v0 ^= word;
}

/* The state when the hash is ready, from which the tag can still be had. */
FLOW_INLINE struct siphash_state siphash13_state(const struct siphash_key *key, const __u64 *word,
						 unsigned int bytes)
{
	__u64 last = (__u64)bytes << 56 | (bytes % 8 ? word[bytes / 8] : 0);
	struct siphash_state s = {
		.v0 = key->k[0] ^ 0x736f6d6570736575ULL,
		.v1 = key->k[1] ^ 0x646f72616e646f6dULL,
		.v2 = key->k[0] ^ 0x6c7967656e657261ULL,
		.v3 = key->k[1] ^ 0x7465646279746573ULL,
	};

#ifdef __clang__
#pragma unroll
#endif
	for (unsigned int i = 0; i < bytes / 8; i++)
		siphash_absorb(&s, word[i]);
	siphash_absorb(&s, last);
	s.v2 ^= 0xff;
	siphash_round(&s);
	siphash_round(&s);
	siphash_round(&s);
	return s;
}

FLOW_INLINE __u64 siphash_hash(const struct siphash_state *s)
{
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/*
 * Another 64 bits, independent of the hash: three rounds more, as the authors' reference code makes
 * the second half of its 128-bit output.
 */
FLOW_INLINE __u64 siphash_tag(struct siphash_state s)
{
	s.v1 ^= 0xdd;
	siphash_round(&s);
	siphash_round(&s);
	siphash_round(&s);
	return siphash_hash(&s);
}

FLOW_INLINE __u64 siphash13(const struct siphash_key *key, const __u64 *word, unsigned int bytes)
{
	struct siphash_state s = siphash13_state(key, word, bytes);

	return siphash_hash(&s);
}

#endif
