/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A bucket: one 64-bit word of four 16-bit fingerprints, and how a hash names its two buckets.
 * Fan, Andersen, Kaminsky, Mitzenmacher, "Cuckoo Filter: Practically Better Than Bloom", CoNEXT
 * 2014, section 3 (partial-key cuckoo hashing). Fingerprint 0 is an empty slot.
 */
#ifndef XDP_CUCKOO_BUCKET_H
#define XDP_CUCKOO_BUCKET_H

#include <linux/types.h>

#include "flow.h"

#define BUCKET_SLOTS 4
#define BUCKET_FINGERPRINT_BITS 16
#define BUCKET_LANE_ONE 0x0001000100010001ULL  /* 1 in every lane */
#define BUCKET_LANE_HIGH 0x8000800080008000ULL /* the top bit of every lane */
#define BUCKET_STEP_MULTIPLIER 0x9e3779b97f4a7c15ULL

struct bucket_pair {
	__u64 first, second; /* bucket numbers; equal only where the step is 0 */
	__u16 fingerprint;   /* never 0 */
};

/*
 * How far apart the two buckets of a fingerprint are, as an exclusive-or of their numbers: the top
 * bits of a multiply, whose low bits are not mixed. `step_shift` is 64 - log2(buckets).
 */
FLOW_INLINE __u64 bucket_step(__u16 fingerprint, __u32 step_shift)
{
	return fingerprint * BUCKET_STEP_MULTIPLIER >> step_shift;
}

/* The fingerprint comes from the top 16 bits of the hash, the first bucket from its low bits. */
FLOW_INLINE struct bucket_pair bucket_pair(__u64 hash, __u64 bucket_mask, __u32 step_shift)
{
	struct bucket_pair pair;

	pair.fingerprint = hash >> (64 - BUCKET_FINGERPRINT_BITS);
	pair.fingerprint += pair.fingerprint == 0;
	pair.first = hash & bucket_mask;
	pair.second = pair.first ^ bucket_step(pair.fingerprint, step_shift);
	return pair;
}

/* Non-zero where some slot of `bucket` holds `fingerprint`; which one is not told. */
FLOW_INLINE __u64 bucket_match(__u64 bucket, __u16 fingerprint)
{
	__u64 difference = bucket ^ fingerprint * BUCKET_LANE_ONE;

	return (difference - BUCKET_LANE_ONE) & ~difference & BUCKET_LANE_HIGH;
}

FLOW_INLINE __u16 bucket_get(__u64 bucket, unsigned int slot)
{
	return bucket >> slot * BUCKET_FINGERPRINT_BITS;
}

FLOW_INLINE __u64 bucket_set(__u64 bucket, unsigned int slot, __u16 fingerprint)
{
	unsigned int shift = slot * BUCKET_FINGERPRINT_BITS;

	return (bucket & ~(0xffffULL << shift)) | (__u64)fingerprint << shift;
}

#endif
