/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * d-left counting Bloom filter: Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, "An Improved
 * Construction for Counting Bloom Filters", ESA 2006: a fingerprint has a bucket and a remainder in
 * each of four tables, by permutations, so that two that meet in one table are equal in all; it is
 * stored where the bucket is least filled. Cells are a remainder and a count.
 */
#ifndef BASELINE_DLEFT_H
#define BASELINE_DLEFT_H

#include "memory.h"

#define DLEFT_TABLES 4
#define DLEFT_CELLS 8 /* of a bucket, as in the paper; four to a word of 56 bits */
#define DLEFT_REMAINDER_BITS 12
#define DLEFT_COUNT_BITS 2
#define DLEFT_COUNT_MAX ((1 << DLEFT_COUNT_BITS) - 1) /* stays: how many more came is forgotten */
#define DLEFT_CELL_BITS (DLEFT_REMAINDER_BITS + DLEFT_COUNT_BITS)
#define DLEFT_BUCKET_BITS (DLEFT_CELLS * DLEFT_CELL_BITS)
#define DLEFT_WORDS 2
#define DLEFT_WORD_CELLS (DLEFT_CELLS / DLEFT_WORDS)
#define DLEFT_WORD_BITS (DLEFT_BUCKET_BITS / DLEFT_WORDS)
#define DLEFT_ONE (((1ULL << DLEFT_WORD_BITS) - 1) / ((1 << DLEFT_CELL_BITS) - 1)) /* in each cell */
#define DLEFT_TOP (DLEFT_ONE << (DLEFT_CELL_BITS - 1))

struct dleft {
	unsigned char *memory;
	unsigned int bucket_bits; /* log2 of the buckets of one table */
};

struct dleft_place {
	__u64 bit; /* where the bucket starts */
	__u64 remainder;
	__u64 word[DLEFT_WORDS]; /* what is in it */
};

static inline int dleft_open(struct dleft *filter, unsigned int bucket_bits)
{
	const __u64 bits = ((__u64)DLEFT_TABLES << bucket_bits) * DLEFT_BUCKET_BITS;

	*filter = (struct dleft){ baseline_allocate(bits / 8 + 8), bucket_bits };
	return filter->memory ? 0 : -ENOMEM;
}

static inline void dleft_close(struct dleft *filter)
{
	free(filter->memory);
	*filter = (struct dleft){};
}

/* An odd factor and the exclusive-or of a shift are permutations of the fingerprints. */
static inline struct dleft_place dleft_place(const struct dleft *filter, __u64 hash, unsigned int table)
{
	static const __u64 factor[DLEFT_TABLES] = { 0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9,
						    0xd6e8feb86659fd93 };
	const unsigned int bits = filter->bucket_bits + DLEFT_REMAINDER_BITS;
	__u64 x = (hash >> (64 - bits)) * factor[table] & ((1ULL << bits) - 1), bucket;
	struct dleft_place place;

	x ^= x >> bits / 2;
	bucket = ((__u64)table << filter->bucket_bits) + (x >> DLEFT_REMAINDER_BITS);
	place.bit = bucket * DLEFT_BUCKET_BITS;
	place.remainder = x & ((1 << DLEFT_REMAINDER_BITS) - 1);
	for (unsigned int i = 0; i < DLEFT_WORDS; i++)
		place.word[i] = baseline_get(filter->memory, place.bit + i * DLEFT_WORD_BITS, DLEFT_WORD_BITS);
	return place;
}

/* 1 in each cell of a word that is filled. */
static inline __u64 dleft_filled(__u64 word)
{
	return (word | word >> 1) & DLEFT_ONE;
}

/* How many cells of a bucket are filled. */
static inline unsigned int dleft_load(const struct dleft_place *place)
{
	__u64 filled = 0;

	for (unsigned int i = 0; i < DLEFT_WORDS; i++)
		filled += dleft_filled(place->word[i]);
	/* The multiply adds all cells up in the last. */
	return (filled * DLEFT_ONE >> (DLEFT_WORD_BITS - DLEFT_CELL_BITS)) & ((1 << DLEFT_CELL_BITS) - 1);
}

/* 1 in each cell of a word that holds the remainder. Carries stay in their cells. */
static inline __u64 dleft_match(__u64 word, __u64 remainder)
{
	const __u64 low = DLEFT_TOP - DLEFT_ONE;
	const __u64 other = (word ^ (remainder << DLEFT_COUNT_BITS) * DLEFT_ONE) & ~(DLEFT_ONE * DLEFT_COUNT_MAX);
	const __u64 equal = ~(((other & low) + low) | other) & DLEFT_TOP;

	return equal >> (DLEFT_CELL_BITS - 1) & dleft_filled(word);
}

static inline bool dleft_contains(const struct dleft *filter, __u64 hash)
{
	__u64 match = 0;

	for (unsigned int table = 0; table < DLEFT_TABLES; table++) {
		const struct dleft_place place = dleft_place(filter, hash, table);

		for (unsigned int i = 0; i < DLEFT_WORDS; i++)
			match |= dleft_match(place.word[i], place.remainder);
	}
	return match;
}

/* The lowest cell among those with a 1: the first bit of its count. */
static inline __u64 dleft_cell_bit(const struct dleft_place *place, unsigned int word, __u64 cells)
{
	return place->bit + word * DLEFT_WORD_BITS + __builtin_ctzll(cells);
}

/* Changes by `change` how often the key is said to be there. Whether it is there at all. */
static inline bool dleft_recount(struct dleft *filter, const struct dleft_place *place, int change)
{
	for (unsigned int i = 0; i < DLEFT_WORDS; i++) {
		const __u64 match = dleft_match(place->word[i], place->remainder);
		__u64 bit, count;

		if (!match)
			continue;
		bit = dleft_cell_bit(place, i, match);
		count = baseline_get(filter->memory, bit, DLEFT_COUNT_BITS);
		if (count != DLEFT_COUNT_MAX)
			baseline_set(filter->memory, bit, DLEFT_COUNT_BITS, count + change);
		return true;
	}
	return false;
}

static inline int dleft_insert(struct dleft *filter, __u64 hash)
{
	struct dleft_place place[DLEFT_TABLES];
	unsigned int least = 0, word = 0;
	__u64 free_cells;

	for (unsigned int table = 0; table < DLEFT_TABLES; table++)
		place[table] = dleft_place(filter, hash, table);
	for (unsigned int table = 0; table < DLEFT_TABLES; table++) {
		if (dleft_recount(filter, &place[table], 1))
			return 0;
		if (dleft_load(&place[table]) < dleft_load(&place[least]))
			least = table;
	}
	if (dleft_load(&place[least]) == DLEFT_CELLS)
		return -ENOSPC;
	while (!(free_cells = dleft_filled(place[least].word[word]) ^ DLEFT_ONE))
		word++;
	baseline_set(filter->memory, dleft_cell_bit(&place[least], word, free_cells), DLEFT_CELL_BITS,
		     place[least].remainder << DLEFT_COUNT_BITS | 1);
	return 0;
}

static inline int dleft_delete(struct dleft *filter, __u64 hash)
{
	for (unsigned int table = 0; table < DLEFT_TABLES; table++) {
		const struct dleft_place place = dleft_place(filter, hash, table);

		if (dleft_recount(filter, &place, -1))
			return 0;
	}
	return -ENOENT;
}

#endif
