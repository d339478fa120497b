/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes semi-sorted buckets; bucket.h reads them. Their four fingerprints are in ascending order, so the top four
 * bits of all four have only 3,876 combinations: 12 bits instead of 16. Fan et al., CoNEXT 2014, section 5.2.
 */
#ifndef XDP_CUCKOO_SEMISORT_H
#define XDP_CUCKOO_SEMISORT_H

#include "bucket.h"

/* The prefixes of BUCKET_SORTED_CODES codes, for bucket_get(). Unused codes have 0. */
const __u16 *semisort_prefixes(void);

/*
 * The code of four ascending prefixes is their rank in the combinatorial number system. Four zeroes have code 0, so
 * empty memory is an empty bucket.
 */
FLOW_INLINE __u32 semisort_code(const __u32 prefix[BUCKET_SLOTS])
{
	const __u32 a = prefix[0], b = prefix[1], c = prefix[2], d = prefix[3];

	return a + b * (b + 1) / 2 + c * (c + 1) * (c + 2) / 6 + d * (d + 1) * (d + 2) * (d + 3) / 24;
}

FLOW_INLINE void semisort_order(__u32 *low, __u32 *high)
{
	const __u32 a = *low, b = *high;

	*low = a < b ? a : b;
	*high = a < b ? b : a;
}

/* Sorts four fingerprints and returns the word of their bucket. */
FLOW_INLINE __u64 semisort_word(__u32 fingerprint[BUCKET_SLOTS], struct bucket_layout layout)
{
	const unsigned int low_bits = layout.fingerprint_bits - BUCKET_SORTED_PREFIX_BITS;
	__u32 prefix[BUCKET_SLOTS];
	__u64 word = 0;

	semisort_order(&fingerprint[0], &fingerprint[1]);
	semisort_order(&fingerprint[2], &fingerprint[3]);
	semisort_order(&fingerprint[0], &fingerprint[2]);
	semisort_order(&fingerprint[1], &fingerprint[3]);
	semisort_order(&fingerprint[1], &fingerprint[2]);
	for (unsigned int slot = 0; slot < BUCKET_SLOTS; slot++) {
		prefix[slot] = fingerprint[slot] >> low_bits;
		word |= (__u64)(fingerprint[slot] & ((1U << low_bits) - 1))
			<< (BUCKET_SORTED_CODE_BITS + slot * low_bits);
	}
	return word | semisort_code(prefix);
}

#endif
