/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Blocked Bloom filter: Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters",
 * WEA 2007. All bits of a key are in one block, a cache line.
 */
#ifndef BASELINE_BLOCKED_BLOOM_H
#define BASELINE_BLOCKED_BLOOM_H

#include "memory.h"

#define BLOCKED_BLOOM_BITS (BASELINE_LINE_BYTES * 8)
#define BLOCKED_BLOOM_BITS_LOG2 9

struct blocked_bloom_block {
	__u64 word[BLOCKED_BLOOM_BITS / 64];
};

struct blocked_bloom {
	struct blocked_bloom_block *block;
	__u64 blocks;
	unsigned int hashes;
};

static inline int blocked_bloom_open(struct blocked_bloom *bloom, __u64 blocks, unsigned int hashes)
{
	*bloom = (struct blocked_bloom){ baseline_allocate(blocks * sizeof(*bloom->block)), blocks, hashes };
	return bloom->block ? 0 : -ENOMEM;
}

static inline void blocked_bloom_close(struct blocked_bloom *bloom)
{
	free(bloom->block);
	*bloom = (struct blocked_bloom){};
}

static inline unsigned int blocked_bloom_next(__u64 *hash)
{
	*hash *= BASELINE_MULTIPLIER;
	return *hash >> (64 - BLOCKED_BLOOM_BITS_LOG2);
}

static inline int blocked_bloom_insert(struct blocked_bloom *bloom, __u64 hash)
{
	struct blocked_bloom_block *block = &bloom->block[baseline_reduce(hash, bloom->blocks)];

	for (unsigned int i = 0; i < bloom->hashes; i++) {
		unsigned int bit = blocked_bloom_next(&hash);

		block->word[bit / 64] |= 1ULL << bit % 64;
	}
	return 0;
}

/* All bits, whatever the first are: they are in the line that was waited for. */
static inline bool blocked_bloom_contains(const struct blocked_bloom *bloom, __u64 hash)
{
	const struct blocked_bloom_block *block = &bloom->block[baseline_reduce(hash, bloom->blocks)];
	__u64 all = 1;

	for (unsigned int i = 0; i < bloom->hashes; i++) {
		unsigned int bit = blocked_bloom_next(&hash);

		all &= block->word[bit / 64] >> bit % 64;
	}
	return all;
}

#endif
