/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The keyed hash of flow keys. It follows Multilinear-HM of Lemire and Kaser, "Strongly universal string
 * hashing is fast", The Computer Journal 57 (2014).
 *
 * A lane is the upper 32 bits of: offset + the sum over the words of (factor + word) * (factor' + high half
 * of word), modulo 2^64. Two lanes, mixed by a fixed bijection, are the hash. A third lane is most of the
 * tag. Factors and offsets are random; together they are the secret. Each family has its own offsets.
 *
 * The promise: for any two different keys, also of different families, each lane of one key is uniform and
 * independent of the same lane of the other. Different lanes are independent too.
 *
 * The proof: two keys differ in some word. If the high halves of that word differ by d, the sums differ by
 * factor * d plus terms that do not depend on this factor. If only the low halves differ by d, they differ by
 * factor' * d plus such terms. Since 0 < |d| < 2^32, the product is uniform over the multiples of some power
 * of two below 2^32. So the upper 32 bits of the difference are uniform, whatever the other terms are. The
 * offset makes each sum uniform by itself. (The paper uses the low half instead of the whole word. If the
 * high halves are equal, the bits above the low half change nothing, and clearing them takes time.)
 *
 * What follows: without the secret, nobody can choose keys that collide more often than by chance. A false
 * positive has the probability of a random function. Two keys share hash and tag with probability 2^-96.
 *
 * The limit: this is no pseudorandom function. The verdicts of an exact table reveal nothing about the
 * secret. Those of a compact table reveal which flows are false positives; with much work, an attacker might
 * learn from them how to fill a bucket. Then the table would have to grow, which draws a new secret.
 */
#ifndef XDP_CUCKOO_HASH_H
#define XDP_CUCKOO_HASH_H

#include <linux/types.h>

#include "flow.h"
#include "verifier.h"

#define HASH_LANES 3 /* two for the hash, one for the tag */
#define HASH_LANE_TAG 2
#define HASH_MULTIPLIER 0x9e3779b97f4a7c15ULL
#define HASH_TAG_BITS 36 /* 32 of a lane; 4 of the hash that choose neither bucket nor 16-bit fingerprint */

/* All of it is random. An IPv4 key reads two cache lines. */
struct hash_secret {
	__u64 ipv4_offset[HASH_LANES];
	__u64 reserved;
	__u64 factor[FLOW_KEY_WORDS_MAX][HASH_LANES][2];
	__u64 ipv6_offset[HASH_LANES];
	__u64 reserved2;
};

/* The hash of a key chooses its buckets. The tag tells the key from all others. */
struct hash_value {
	__u64 hash, tag;
};

/* Word i is word[i] & mask[i]. `last`, a shape's id, is or-ed into the last word. That says if there are details. */
struct hash_input {
	const struct hash_secret *secret;
	const __u64 *word, *mask;
	__u64 last;
	enum flow_family family;
};

FLOW_INLINE __u64 hash_word(const struct hash_input *input, unsigned int i)
{
	const __u64 last = i == flow_key_last(input->family) ? input->last : 0;

	return (input->word[i] & input->mask[i]) | last;
}

/* On the host `word` may be a whole key, which has the shape's id already. Then `last` may be 0. */
FLOW_INLINE int hash_has_details(const struct hash_input *input)
{
#ifdef __bpf__
	__u64 details = input->last;

	hide_from_compiler(details);
	details >>= FLOW_KEY_HAS_DETAILS_SHIFT;
	hide_from_compiler(details);
	return details != 0;
#else
	return (hash_word(input, flow_key_last(input->family)) & FLOW_KEY_HAS_DETAILS) != 0;
#endif
}

/* What the details add to a lane. Few keys have them. */
RARE_FUNCTION __u64 hash_details(const struct hash_secret *secret, __u64 word, __u32 lane)
{
	if (!secret || lane >= HASH_LANES)
		return 0;
	return (secret->factor[FLOW_KEY_DETAILS][lane][0] + word) *
	       (secret->factor[FLOW_KEY_DETAILS][lane][1] + (word >> 32));
}

FLOW_INLINE __u64 hash_offset(const struct hash_secret *secret, enum flow_family family, unsigned int lane)
{
	return family == FLOW_IPV4 ? secret->ipv4_offset[lane] : secret->ipv6_offset[lane];
}

/*
 * The two lanes of the hash, the first in the upper half. It is computed in this order, because compilers would load all
 * factors first, and have too few registers for them.
 */
FLOW_INLINE __u64 hash_lanes(const struct hash_input *input)
{
	const struct hash_secret *secret = input->secret;
	__u64 first, second;

	hide_from_compiler(secret);
	first = hash_offset(secret, input->family, 0);
	second = hash_offset(secret, input->family, 1);
	NO_LOOP
	for (unsigned int i = 0; i <= flow_key_last(input->family); i++) {
		const volatile __u64 *factor = secret->factor[i][0];
		__u64 word = hash_word(input, i), high = word >> 32;

		first += (factor[0] + word) * (factor[1] + high);
		hide_from_compiler(first);
		second += (factor[2] + word) * (factor[3] + high);
		hide_from_compiler(second);
	}
	if (hash_has_details(input)) {
		first += hash_details(secret, hash_word(input, FLOW_KEY_DETAILS), 0);
		second += hash_details(secret, hash_word(input, FLOW_KEY_DETAILS), 1);
	}
	return first >> 32 << 32 | second >> 32;
}

/* Regular keys have regular lanes; this spreads them. It is a bijection, so the promise of the lanes holds. */
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
 * The tag of the input, which has this hash: HASH_TAG_BITS bits, from the top. An entry for another key has
 * the same fingerprint and tag with probability 2^-52; a look-up meets eight entries. Reads the words again,
 * because keeping them would take registers.
 */
FLOW_INLINE __u64 hash_tag(const struct hash_input *input, __u64 hash)
{
	const struct hash_secret *secret = input->secret;
	struct hash_input again = *input;
	__u64 lane;

	hide_from_compiler(again.mask);
	hide_from_compiler(secret);
	lane = hash_offset(secret, again.family, HASH_LANE_TAG);
	NO_LOOP
	for (unsigned int i = 0; i <= flow_key_last(again.family); i++) {
		const volatile __u64 *factor = secret->factor[i][HASH_LANE_TAG];
		__u64 word = hash_word(&again, i), high = word >> 32;

		lane += (factor[0] + word) * (factor[1] + high);
		hide_from_compiler(lane);
	}
	if (hash_has_details(&again))
		lane += hash_details(secret, hash_word(&again, FLOW_KEY_DETAILS), HASH_LANE_TAG);
	return (lane >> 32 << 32) | (hash >> 4 & 0xf0000000);
}

_Static_assert(sizeof(struct hash_secret) == 352, "secret layout");

#endif
