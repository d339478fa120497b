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

#endif
