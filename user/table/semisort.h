/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Semi-sorted buckets: four fingerprints in ascending order, whose top four bits are then one of
 * only 3,876 combinations: 12 bits instead of 16. Fan et al., CoNEXT 2014, section 5.2. How to read
 * one stands in bucket.h, since readers need it too.
 */
#ifndef XDP_CUCKOO_SEMISORT_H
#define XDP_CUCKOO_SEMISORT_H

#include "bucket.h"

/* BUCKET_SORTED_CODES elements: the prefixes of each code, for bucket_get(); of no code: 0. */
const __u16 *semisort_prefixes(void);

/*
 * The code of four ascending prefixes: their rank among all such, by binomial coefficients (the
 * combinatorial number system). That of four zeroes is 0, as empty memory has it.
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

/* The word of four fingerprints in any order, which it sorts. */
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
