/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The keyed hash of flow keys, after Multilinear-HM of Lemire and Kaser, "Strongly universal string
 * hashing is fast", The Computer Journal 57 (2014). A lane is offset + the sum over the words of
 * (factor + word) * (factor' + high half of word) modulo 2^64, of which the upper 32 bits count. With
 * factors and offsets drawn at random, the lanes of any two different keys of a family are uniform and
 * independent of each other, and lanes are independent of lanes: so the 64 bits of the hash, which are
 * two lanes behind a fixed bijection, and the 32 of the tag that are a third one. Families have
 * offsets of their own, so that holds between keys of both, too.
 *
 * Why: let two keys differ in some word. If its high halves differ, by d, the sums differ by factor * d
 * and what does not depend on that factor; else the low halves differ, by d, and it is factor' * d. As
 * 0 < |d| < 2^32, that is uniform over the multiples of a power of two below 2^32, so the upper 32 bits
 * of the difference are uniform whatever the rest is; and the offset makes either sum uniform by itself.
 * (The paper has the low half for the word; nothing depends on the bits above it where the high halves
 * are equal, and to clear them takes time.)
 *
 * What follows: whoever does not know the secret can not choose keys that meet more often than by
 * chance, a false positive has the probability of a random function, and two keys share hash and tag
 * with 2^-96. It is no pseudorandom function: verdicts of an exact table tell nothing of the secret,
 * those of a compact one tell which flows are false positives, from which much work might learn how to
 * fill a bucket. That would cost the table a growth, which draws another secret.
 */
#ifndef XDP_CUCKOO_HASH_H
#define XDP_CUCKOO_HASH_H

#include <linux/types.h>

#include "flow.h"

#define HASH_LANES 3 /* two for the hash, one for the tag */
#define HASH_LANE_TAG 2
#define HASH_MULTIPLIER 0x9e3779b97f4a7c15ULL
#define HASH_TAG_BITS 36 /* of a lane, and of the hash some that name neither bucket nor fingerprint of 16 bits */

/* All of it random. An IPv4 key reads two lines of the cache. */
struct hash_secret {
	__u64 ipv4_offset[HASH_LANES];
	__u64 reserved;
	__u64 factor[FLOW_KEY_WORDS_MAX][HASH_LANES][2];
	__u64 ipv6_offset[HASH_LANES];
	__u64 reserved2;
};

/* What a key becomes: the hash that names its buckets, and a tag that tells it from all others. */
struct hash_value {
	__u64 hash, tag;
};

/* What is hashed: word i is word[i] & mask[i], with `last` in the last one. */
struct hash_input {
	const struct hash_secret *secret;
	const __u64 *word, *mask;
	__u64 last;
	enum flow_family family;
};

/*
 * Keeps compilers from looking through `x`, and what stands before from moving behind: where BPF has ten
 * registers, they would load all factors first, and spill them.
 */
#define HASH_KEEP(x) __asm__ volatile("" : "+r"(x))

FLOW_INLINE __u64 hash_word(const struct hash_input *input, unsigned int i)
{
	const __u64 last = i == flow_key_last(input->family) ? input->last : 0;

	return (input->word[i] & input->mask[i]) | last;
}

FLOW_INLINE __u64 hash_offset(const struct hash_secret *secret, enum flow_family family, unsigned int lane)
{
	return family == FLOW_IPV4 ? secret->ipv4_offset[lane] : secret->ipv6_offset[lane];
}

/* The hash's two lanes, the first above the second. `family` is a constant in BPF: the loop unrolls. */
FLOW_INLINE __u64 hash_lanes(const struct hash_input *input)
{
	const struct hash_secret *secret = input->secret;
	__u64 first, second;

	HASH_KEEP(secret);
	first = hash_offset(secret, input->family, 0);
	second = hash_offset(secret, input->family, 1);
#ifdef __clang__
#pragma unroll
#endif
	for (unsigned int i = 0; i <= flow_key_last(input->family); i++) {
		const volatile __u64 *factor = secret->factor[i][0];
		__u64 word = hash_word(input, i), high = word >> 32;

		first += (factor[0] + word) * (factor[1] + high);
		HASH_KEEP(first);
		second += (factor[2] + word) * (factor[3] + high);
		HASH_KEEP(second);
	}
	return first >> 32 << 32 | second >> 32;
}

/* Spreads regular keys, which leave regular lanes. A bijection: what lanes promise, it keeps. */
FLOW_INLINE __u64 hash_mix(__u64 x)
{
	x ^= x >> 32;
	x *= HASH_MULTIPLIER;
	return x ^ x >> 29;
}

FLOW_INLINE __u64 hash_of(const struct hash_input *input)
{
	return hash_mix(hash_lanes(input));
}

/*
 * The tag of what has this hash: HASH_TAG_BITS bits, from the top. One that is not the key's shares fingerprint and tag
 * with 2^-52, with each of the eight entries that a look-up meets. Masks are read again rather than words kept.
 */
FLOW_INLINE __u64 hash_tag(const struct hash_input *input, __u64 hash)
{
	const struct hash_secret *secret = input->secret;
	struct hash_input again = *input;
	__u64 lane;

	HASH_KEEP(again.mask);
	HASH_KEEP(secret);
	lane = hash_offset(secret, again.family, HASH_LANE_TAG);
#ifdef __clang__
#pragma unroll
#endif
	for (unsigned int i = 0; i <= flow_key_last(again.family); i++) {
		const volatile __u64 *factor = secret->factor[i][HASH_LANE_TAG];
		__u64 word = hash_word(&again, i), high = word >> 32;

		lane += (factor[0] + word) * (factor[1] + high);
		HASH_KEEP(lane);
	}
	return (lane >> 32 << 32) | (hash >> 4 & 0xf0000000);
}

_Static_assert(sizeof(struct hash_secret) == 304, "secret layout");

#endif
