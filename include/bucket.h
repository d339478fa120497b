/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A bucket is a few fingerprints that are read and compared at once. This file finds the two buckets of a
 * hash, and fingerprints in a bucket. Fingerprint 0 is an empty slot. Fan, Andersen, Kaminsky, Mitzenmacher,
 * "Cuckoo Filter: Practically Better Than Bloom", CoNEXT 2014, sections 3 (partial-key cuckoo hashing) and
 * 5.2 (semi-sorting).
 *
 * Everything here is inlined, and the layout is a constant at every call. So the compiler computes whatever
 * depends on the layout.
 */
#ifndef XDP_CUCKOO_BUCKET_H
#define XDP_CUCKOO_BUCKET_H

#include <linux/types.h>

#include "flow.h"

#define BUCKET_SLOTS 4 /* of every format; only experiments use other layouts */
#define BUCKET_STEP_MULTIPLIER 0x9e3779b97f4a7c15ULL
#define BUCKET_SORTED_CODES 4096 /* 3,876 of them are used: see table/semisort.h */
#define BUCKET_SORTED_CODE_BITS 12
#define BUCKET_SORTED_PREFIX_BITS 4

struct bucket_layout {
	__u8 slots;            /* 1, 2, 4 or 8; semi-sorted: 4 */
	__u8 fingerprint_bits; /* 2 to 32; semi-sorted: 5 to 17 */
	__u8 lane_bits;        /* room for a fingerprint: 8, 16 or 32. 0: semi-sorted, one word of 64 */
	__u8 has_records;      /* for the table engine: each slot has a record */
};

/* The formats of running tables, by their fingerprint bits (option --fingerprint). */
enum bucket_format {
	BUCKET_16, /* 4 x 16 in one word */
	BUCKET_32, /* 4 x 32 in two words */
	BUCKET_8,  /* 4 x 8 in half a word */
	BUCKET_17, /* semi-sorted: 4 x 17 in one word */
	BUCKET_FORMATS,
};

FLOW_INLINE struct bucket_layout bucket_layout(enum bucket_format format)
{
	switch (format) {
	case BUCKET_32:
		return (struct bucket_layout){ BUCKET_SLOTS, 32, 32, 0 };
	case BUCKET_8:
		return (struct bucket_layout){ BUCKET_SLOTS, 8, 8, 0 };
	case BUCKET_17:
		return (struct bucket_layout){ BUCKET_SLOTS, 17, 0, 0 };
	default:
		return (struct bucket_layout){ BUCKET_SLOTS, 16, 16, 0 };
	}
}

/* ---- the two buckets of a hash ---- */

/*
 * A table consists of aligned pieces of 2^(64 - step_shift) buckets. Both buckets of a key are in one piece.
 * A step is smaller than a piece, so bucket ^ step leads from either bucket to the other, however many pieces
 * there are. Wang, Zhou, Shi, Qian, "Vacuum Filters", VLDB 2019, do the same.
 */
struct bucket_geometry {
	__u32 buckets;
	__u32 step_shift;
};

struct bucket_pair {
	__u32 first, second; /* bucket numbers; equal only if the step is 0 */
	__u32 fingerprint;   /* never 0 */
};

/*
 * The number that leads from either bucket of a fingerprint to the other by exclusive-or. It is the top bits of a
 * product, because the low bits are badly mixed.
 */
FLOW_INLINE __u32 bucket_step(__u32 fingerprint, __u32 step_shift)
{
	return fingerprint * BUCKET_STEP_MULTIPLIER >> step_shift;
}

/* The top bits of the hash are the fingerprint. The low 32 bits choose the first bucket. */
FLOW_INLINE struct bucket_pair bucket_pair(__u64 hash, struct bucket_geometry geometry, struct bucket_layout layout)
{
	struct bucket_pair pair;

	pair.fingerprint = hash >> (64 - layout.fingerprint_bits);
	pair.fingerprint += ((__u64)pair.fingerprint - 1) >> 63; /* 1 if it is 0, without a branch */
	pair.first = (hash & 0xffffffff) * geometry.buckets >> 32;
	pair.second = pair.first ^ bucket_step(pair.fingerprint, geometry.step_shift);
	return pair;
}

/* ---- the contents of a bucket ---- */

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
