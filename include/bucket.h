/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A bucket is a few fingerprints that are read and compared at once. This file finds, reads and writes fingerprints in a
 * bucket. Fingerprint 0 is an empty slot. fingerprint.h says which two buckets a hash has.
 */
#ifndef XDP_CUCKOO_BUCKET_H
#define XDP_CUCKOO_BUCKET_H

#include <linux/types.h>

#include "fingerprint.h"

/* The contents of a bucket. If the layout is smaller than two words, the rest is 0. */
struct bucket {
	__u64 word[2];
};

FLOW_INLINE unsigned int bucket_bits(struct bucket_layout layout)
{
	return layout.lane_bits ? layout.slots * layout.lane_bits : 64;
}

/* A word with 1 in each lane of the bucket, and 0 in the lanes that a small bucket does not have. */
FLOW_INLINE __u64 bucket_lane_one(struct bucket_layout layout)
{
	unsigned int bits = bucket_bits(layout) < 64 ? bucket_bits(layout) : 64;

	/* cppcheck-suppress shiftTooManyBits ; every layout has slots */
	return (~0ULL >> (64 - bits)) / ((1ULL << layout.lane_bits) - 1);
}

/*
 * The result has the top bit of each lane where `word` holds `fingerprint` (0: of each free lane). The lowest bit set
 * is right, and so is 0. Bits above it may be wrong, because the subtraction borrows upwards.
 */
FLOW_INLINE __u64 bucket_match_word(__u64 word, struct bucket_layout layout, __u32 fingerprint)
{
	__u64 one = bucket_lane_one(layout);
	__u64 difference = word ^ fingerprint * one;

	return (difference - one) & ~difference & one << (layout.lane_bits - 1);
}

/*
 * The fingerprint in a slot. A semi-sorted bucket has a code, then the low bits of each fingerprint. `prefixes` maps
 * the code to the top four bits of each, the lowest slot first. Other buckets do not need it.
 */
FLOW_INLINE __u32 bucket_get(struct bucket bucket, struct bucket_layout layout, unsigned int slot,
			     const __u16 *prefixes)
{
	const unsigned int low_bits = layout.fingerprint_bits - BUCKET_SORTED_PREFIX_BITS;
	const unsigned int lanes = 64 / (layout.lane_bits ? layout.lane_bits : 64);
	__u32 prefix;

	if (layout.lane_bits)
		return bucket.word[slot / lanes] >> slot % lanes * layout.lane_bits & ((1ULL << layout.lane_bits) - 1);
	/* cppcheck-suppress nullPointer ; `prefixes` is NULL only for layouts with lanes: not here */
	prefix = prefixes[bucket.word[0] & (BUCKET_SORTED_CODES - 1)] >> slot * BUCKET_SORTED_PREFIX_BITS &
		 ((1 << BUCKET_SORTED_PREFIX_BITS) - 1);
	return prefix << low_bits |
	       (bucket.word[0] >> (BUCKET_SORTED_CODE_BITS + slot * low_bits) & ((1U << low_bits) - 1));
}

/* 0 if no fingerprint in a semi-sorted bucket has the same low bits. Then nobody needs to read the prefixes. */
FLOW_INLINE __u64 bucket_match_low(__u64 word, struct bucket_layout layout, __u32 fingerprint)
{
	const unsigned int low_bits = layout.fingerprint_bits - BUCKET_SORTED_PREFIX_BITS;
	const __u64 one = (1ULL | 1ULL << 2 * low_bits) * (1ULL | 1ULL << low_bits);
	__u64 low = fingerprint & ((1ULL << low_bits) - 1);
	__u64 difference = (word >> BUCKET_SORTED_CODE_BITS) ^ low * one;

	return (difference - one) & ~difference & one << (low_bits - 1);
}

/* Not 0 if any slot holds `fingerprint`. The value does not say which slot. */
FLOW_INLINE __u64 bucket_match(struct bucket bucket, struct bucket_layout layout, __u32 fingerprint,
			       const __u16 *prefixes)
{
	__u64 match = 0;

	if (layout.lane_bits) {
		match = bucket_match_word(bucket.word[0], layout, fingerprint);
		if (bucket_bits(layout) > 64)
			match |= bucket_match_word(bucket.word[1], layout, fingerprint);
		return match;
	}
	if (!bucket_match_low(bucket.word[0], layout, fingerprint))
		return 0;
	for (unsigned int slot = 0; slot < BUCKET_SLOTS; slot++)
		match |= bucket_get(bucket, layout, slot, prefixes) == fingerprint;
	return match;
}

#endif
