/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The keyed hash of flow keys, after Multilinear-HM of Lemire and Kaser, "Strongly universal string
 * hashing is fast", The Computer Journal 57 (2014). A lane is offset + the sum over the words of
 * (factor + word) * (factor' + high half of word) modulo 2^64, of which the upper 32 bits count. With
 * factors and offsets drawn at random, the lanes of any two different keys of a family are uniform and
 * independent of each other, and lanes are independent of lanes: so the 64 bits of the hash, which are
 * two lanes behind a fixed bijection, and the 64 of the tag, which are two others. Families have
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
 * with 2^-128. It is no pseudorandom function: verdicts of an exact table tell nothing of the secret,
 * those of a compact one tell which flows are false positives, from which much work might learn how to
 * fill a bucket. That would cost the table a growth, which draws another secret.
 */
#ifndef XDP_CUCKOO_HASH_H
#define XDP_CUCKOO_HASH_H

#include <linux/types.h>

#include "flow.h"

#define HASH_LANES 4 /* two for the hash, two for the tag */
#define HASH_LANE_TAG 2
#define HASH_MULTIPLIER 0x9e3779b97f4a7c15ULL

/* All of it random. An IPv4 key reads three lines of the cache. */
struct hash_secret {
	__u64 offset[FLOW_FAMILIES][HASH_LANES];
	__u64 factor[FLOW_KEY_WORDS_MAX][HASH_LANES][2];
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

/* Two lanes of 32 bits, the first above the second. `family` is a constant in BPF: the loop unrolls. */
FLOW_INLINE __u64 hash_lanes(const struct hash_input *input, unsigned int lane)
{
	const struct hash_secret *secret = input->secret;
	__u64 first, second;

	HASH_KEEP(secret);
	first = secret->offset[input->family][lane];
	second = secret->offset[input->family][lane + 1];
#ifdef __clang__
#pragma unroll
#endif
	for (unsigned int i = 0; i <= flow_key_last(input->family); i++) {
		const volatile __u64 *factor = secret->factor[i][lane];
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
	return hash_mix(hash_lanes(input, 0));
}

/* Takes as long as the hash, and is seldom needed: masks are read again rather than words kept. */
FLOW_INLINE __u64 hash_tag(const struct hash_input *input)
{
	struct hash_input again = *input;

	HASH_KEEP(again.mask);
	return hash_lanes(&again, HASH_LANE_TAG);
}

_Static_assert(sizeof(struct hash_secret) == 384, "secret layout");

#endif
