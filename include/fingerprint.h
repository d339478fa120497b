/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes a fingerprint and two bucket numbers of a hash. Fan, Andersen, Kaminsky, Mitzenmacher, "Cuckoo Filter: Practically
 * Better Than Bloom", CoNEXT 2014, sections 3 (partial-key cuckoo hashing) and 5.2 (semi-sorting).
 *
 * Everything here is inlined, and the layout is a constant at every call. So the compiler computes whatever
 * depends on the layout.
 */
#ifndef XDP_CUCKOO_FINGERPRINT_H
#define XDP_CUCKOO_FINGERPRINT_H

#include <linux/types.h>

#include "flow.h"
#include "permute.h"

#define BUCKET_SLOTS 4 /* of every format; only experiments use other layouts */
#define BUCKET_STEP_MULTIPLIER 0x9e3779b97f4a7c15ULL
#define BUCKET_SORTED_CODES 4096 /* 3,876 of them are used: see table/semisort.h */
#define BUCKET_SORTED_CODE_BITS 12
#define BUCKET_SORTED_PREFIX_BITS 4
#define BUCKET_SIDE (1U << 15) /* of BUCKET_ADDRESS */

struct bucket_layout {
	__u8 slots;            /* 1, 2, 4 or 8; semi-sorted: 4 */
	__u8 fingerprint_bits; /* 2 to 32; semi-sorted: 5 to 17 */
	__u8 lane_bits;        /* room for a fingerprint: 8, 16 or 32. 0: semi-sorted, one word of 64 */
	__u8 has_records;      /* for the table engine: each slot has a record */
	__u16 side;            /* a bit of the fingerprint that is set in the second bucket; 0: none */
};

/* The formats of running tables, by their fingerprint bits (option --fingerprint). */
enum bucket_format {
	BUCKET_16, /* 4 x 16 in one word */
	BUCKET_32, /* 4 x 32 in two words */
	BUCKET_8,  /* 4 x 8 in half a word */
	BUCKET_17, /* semi-sorted: 4 x 17 in one word */
	BUCKET_FORMATS,
	BUCKET_ADDRESS = BUCKET_FORMATS, /* 4 x 16 in one word, beside a table of BUCKET_16: address_pair() */
};

FLOW_INLINE struct bucket_layout bucket_layout(enum bucket_format format)
{
	switch (format) {
	case BUCKET_32:
		return (struct bucket_layout){ BUCKET_SLOTS, 32, 32, 0, 0 };
	case BUCKET_8:
		return (struct bucket_layout){ BUCKET_SLOTS, 8, 8, 0, 0 };
	case BUCKET_17:
		return (struct bucket_layout){ BUCKET_SLOTS, 17, 0, 0, 0 };
	case BUCKET_ADDRESS:
		return (struct bucket_layout){ BUCKET_SLOTS, 16, 16, 0, BUCKET_SIDE };
	default:
		return (struct bucket_layout){ BUCKET_SLOTS, 16, 16, 0, 0 };
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
	__u32 fingerprint;   /* never 0; in the first bucket: see bucket_layout.side */
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

/*
 * ---- the buckets of an address: BUCKET_ADDRESS ----
 *
 * Here bucket, side and fingerprint say which of the 2^33 permuted prefixes (permute.h) the entry is. The first bucket is the
 * quotient x * buckets / 2^33. Numbers in one bucket have remainders x * buckets mod 2^33 that are `buckets` apart. The
 * fingerprint is 1 + remainder * reciprocal / 2^31, rounded down. Since reciprocal * buckets is at least 2^31, numbers in one
 * bucket have different fingerprints, in the same order. So nothing needs a division. They are 15 bits, and the side is the 16th, if
 * 4 * reciprocal is less than 2^15: so a table has at least ADDRESS_BUCKETS_MIN buckets.
 */
#define ADDRESS_BUCKETS_MIN ((1U << 18) + (1U << 15)) /* the smallest that table_geometry() can return */

FLOW_INLINE __u32 address_reciprocal(__u32 buckets)
{
	return ((1U << 31) + buckets - 1) / buckets;
}

FLOW_INLINE struct bucket_pair address_pair(__u64 x, struct bucket_geometry geometry, __u32 reciprocal)
{
	const __u64 product = x * geometry.buckets, rest = product & ((1ULL << PERMUTE_BITS) - 1);
	struct bucket_pair pair;

	pair.first = product >> PERMUTE_BITS;
	pair.fingerprint = 1 + (rest * reciprocal >> 31);
	pair.second = pair.first ^ bucket_step(pair.fingerprint, geometry.step_shift);
	return pair;
}

/* The permuted prefix that has this bucket and fingerprint; 2^33: none has. For the tool: it divides. */
FLOW_INLINE __u64 address_at(__u32 bucket, __u32 fingerprint, struct bucket_geometry geometry, __u32 reciprocal)
{
	const __u32 plain = fingerprint & ~BUCKET_SIDE;
	const __u32 first = fingerprint & BUCKET_SIDE ? bucket ^ bucket_step(plain, geometry.step_shift) : bucket;
	const __u64 least =
		((((__u64)plain - 1) << 31) + reciprocal - 1) / reciprocal; /* remainder of the fingerprint */
	const __u64 start = (__u64)first << PERMUTE_BITS;
	__u64 x = (start + geometry.buckets - 1) / geometry.buckets;
	const __u64 rest = x * geometry.buckets - start;
	struct bucket_pair pair;

	if (least > rest)
		x += (least - rest + geometry.buckets - 1) / geometry.buckets;
	pair = address_pair(x, geometry, reciprocal);
	return pair.first == first && pair.fingerprint == plain ? x : 1ULL << PERMUTE_BITS;
}

#endif
