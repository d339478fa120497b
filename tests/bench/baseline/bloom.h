/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bloom filter: Bloom, "Space/Time Trade-offs in Hash Coding with Allowable Errors", CACM 1970. Its k
 * hashes are made of two: Kirsch, Mitzenmacher, "Less Hashing, Same Performance", ESA 2006.
 */
#ifndef BASELINE_BLOOM_H
#define BASELINE_BLOOM_H

#include "memory.h"

struct bloom {
	__u64 *word;
	__u64 bits;
	unsigned int hashes;
};

static inline int bloom_open(struct bloom *bloom, __u64 bits, unsigned int hashes)
{
	*bloom = (struct bloom){ baseline_allocate((bits + 63) / 64 * 8), bits, hashes };
	return bloom->word ? 0 : -ENOMEM;
}

static inline void bloom_close(struct bloom *bloom)
{
	free(bloom->word);
	*bloom = (struct bloom){};
}

/* The second hash: the reduction to a bit uses the high half of the first. Odd, so never 0. */
static inline __u64 bloom_step(__u64 hash)
{
	return (hash << 32 | hash >> 32) | 1;
}

static inline int bloom_insert(struct bloom *bloom, __u64 hash)
{
	const __u64 step = bloom_step(hash);

	for (unsigned int i = 0; i < bloom->hashes; i++, hash += step) {
		__u64 bit = baseline_reduce(hash, bloom->bits);

		bloom->word[bit / 64] |= 1ULL << bit % 64;
	}
	return 0;
}

static inline bool bloom_contains(const struct bloom *bloom, __u64 hash)
{
	const __u64 step = bloom_step(hash);

	for (unsigned int i = 0; i < bloom->hashes; i++, hash += step) {
		__u64 bit = baseline_reduce(hash, bloom->bits);

		if (!(bloom->word[bit / 64] >> bit % 64 & 1))
			return false;
	}
	return true;
}

#endif
