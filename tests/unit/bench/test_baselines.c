// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tests the other filters that the benchmarks compare with: what was inserted is found, what was deleted is
 * gone, and false positives are as rare as the papers say.
 */
#include "unit/test.h"
#include "bench/baseline/blocked_bloom.h"
#include "bench/baseline/bloom.h"
#include "bench/baseline/dleft.h"
#include "bench/baseline/quotient.h"

#define ITEMS 200000
#define ABSENT 4000000
#define FPR_TOLERANCE 0.1 /* of the rate: at least 10 standard deviations of the count */
#define HASHES 9
#define BITS_PER_ITEM 13

static uint64_t seed;

static int setup(void **state)
{
	(void)state;
	seed = seed_of_run();
	return 0;
}

/* SplitMix64: Steele, Lea, Flood, OOPSLA 2014. A permutation, so different numbers have different hashes. */
static __u64 hash_of(__u64 number)
{
	__u64 x = (number ^ seed << 40) * 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static double power(double base, __u64 exponent)
{
	double result = 1;

	for (; exponent; exponent >>= 1, base *= base)
		if (exponent & 1)
			result *= base;
	return result;
}

static void assert_rate(size_t found, double expected)
{
	const double rate = (double)found / ABSENT;

	if (rate < expected * (1 - FPR_TOLERANCE) || rate > expected * (1 + FPR_TOLERANCE))
		fail_msg("false-positive rate %g, expected %g", rate, expected);
}

/* Inserts ITEMS, finds all of them, and counts false positives among ABSENT others. */
#define FILL_AND_COUNT(name, filter) \
	({ \
		size_t missed = 0, found = 0; \
		for (__u64 i = 0; i < ITEMS; i++) \
			assert_int_equal(name##_insert(filter, hash_of(i)), 0); \
		for (__u64 i = 0; i < ITEMS; i++) \
			missed += !name##_contains(filter, hash_of(i)); \
		for (__u64 i = ITEMS; i < ITEMS + ABSENT; i++) \
			found += name##_contains(filter, hash_of(i)); \
		assert_int_equal(missed, 0); \
		found; \
	})

TEST(test_bloom)
{
	struct bloom filter;

	assert_int_equal(bloom_open(&filter, ITEMS * BITS_PER_ITEM, HASHES), 0);
	assert_false(bloom_contains(&filter, hash_of(0)));
	assert_rate(FILL_AND_COUNT(bloom, &filter), power(1 - power(1 - 1. / filter.bits, ITEMS * HASHES), HASHES));
	bloom_close(&filter);
}

/* The rate of a Bloom filter, averaged over the number of items in a block. */
static double blocked_rate(__u64 blocks)
{
	double probability = power(1 - 1. / blocks, ITEMS), rate = 0;

	for (__u64 items = 0; items < BLOCKED_BLOOM_BITS; items++) {
		double bit = 1 - power(1 - 1. / BLOCKED_BLOOM_BITS, items * HASHES);

		rate += probability * power(bit, HASHES);
		probability *= (double)(ITEMS - items) / (items + 1) / (blocks - 1);
	}
	return rate;
}

TEST(test_blocked_bloom)
{
	const __u64 blocks = ITEMS * BITS_PER_ITEM / BLOCKED_BLOOM_BITS;
	struct blocked_bloom filter;

	assert_int_equal(blocked_bloom_open(&filter, blocks, HASHES), 0);
	assert_false(blocked_bloom_contains(&filter, hash_of(0)));
	assert_rate(FILL_AND_COUNT(blocked_bloom, &filter), blocked_rate(blocks));
	blocked_bloom_close(&filter);
}

TEST(test_quotient)
{
	const unsigned int quotient_bits = 18, remainder_bits = 9;
	struct quotient filter;

	assert_int_equal(quotient_open(&filter, quotient_bits, remainder_bits), 0);
	assert_rate(FILL_AND_COUNT(quotient, &filter), (double)ITEMS / (1 << (quotient_bits + remainder_bits)));
	quotient_close(&filter);
}

TEST(test_dleft)
{
	const unsigned int bucket_bits = 13;
	struct dleft filter;

	assert_int_equal(dleft_open(&filter, bucket_bits), 0);
	assert_rate(FILL_AND_COUNT(dleft, &filter), (double)ITEMS / (1 << (bucket_bits + DLEFT_REMAINDER_BITS)));
	dleft_close(&filter);
}

static size_t bytes_set(const unsigned char *memory, size_t bytes)
{
	size_t set = 0;

	for (size_t i = 0; i < bytes; i++)
		set += memory[i] != 0;
	return set;
}

/*
 * Compares with a plain count of each possible fingerprint. The filter is so small that clusters wrap around
 * its end. It is filled up to all but one slot and emptied again.
 */
TEST(test_quotient_equals_counts)
{
	enum { QUOTIENT_BITS = 5, REMAINDER_BITS = 2, KEYS = 1 << (QUOTIENT_BITS + REMAINDER_BITS) };
	const size_t bytes = (REMAINDER_BITS + QUOTIENT_META_BITS) << QUOTIENT_BITS >> 3;
	unsigned int count[KEYS] = {}, used = 0;
	struct quotient filter;

	assert_int_equal(quotient_open(&filter, QUOTIENT_BITS, REMAINDER_BITS), 0);
	for (__u64 step = 0; step < 400000; step++) {
		const __u64 random = hash_of(step), tide = step / 1000 % 4;
		const unsigned int key = random % KEYS;
		const __u64 hash = (__u64)key >> REMAINDER_BITS << (64 - QUOTIENT_BITS) |
				   (key & ((1 << REMAINDER_BITS) - 1));

		if ((random >> 32) % 4 > tide) {
			const bool is_full = used == filter.mask;

			assert_int_equal(quotient_insert(&filter, hash), is_full ? -ENOSPC : 0);
			count[key] += !is_full;
			used += !is_full;
		} else {
			assert_int_equal(quotient_delete(&filter, hash), count[key] ? 0 : -ENOENT);
			used -= count[key] > 0;
			count[key] -= count[key] > 0;
		}
		/* Nothing after the last slot may be written. */
		assert_int_equal(bytes_set(filter.memory + bytes, 8), 0);
		for (__u64 other = 0; other < KEYS; other++)
			assert_int_equal(quotient_contains(&filter, other >> REMAINDER_BITS << (64 - QUOTIENT_BITS) |
									    (other & ((1 << REMAINDER_BITS) - 1))),
					 count[other] > 0);
	}
	quotient_close(&filter);
}

/* Deletes two of three items: the third stays. Then deletes the third: the memory is empty. */
#define DELETE_ALL(name, filter, items) \
	do { \
		size_t missed = 0; \
		for (__u64 i = 0; i < (items); i++) \
			assert_int_equal(name##_insert(filter, hash_of(i)), 0); \
		for (__u64 i = 0; i < (items); i++) \
			if (i % 3) \
				assert_int_equal(name##_delete(filter, hash_of(i)), 0); \
		for (__u64 i = 0; i < (items); i += 3) \
			missed += !name##_contains(filter, hash_of(i)); \
		assert_int_equal(missed, 0); \
		for (__u64 i = 0; i < (items); i += 3) \
			assert_int_equal(name##_delete(filter, hash_of(i)), 0); \
		assert_int_equal(name##_delete(filter, hash_of(0)), -ENOENT); \
	} while (0)

TEST(test_quotient_deletes)
{
	struct quotient filter;

	assert_int_equal(quotient_open(&filter, 18, 9), 0);
	DELETE_ALL(quotient, &filter, ITEMS);
	assert_int_equal(filter.used, 0);
	assert_int_equal(bytes_set(filter.memory, (1 << 18) * 12 / 8), 0);
	quotient_close(&filter);
}

/* A fingerprint that occurs often enough to saturate its count stays; all others go. */
TEST(test_dleft_deletes)
{
	const unsigned int bucket_bits = 12, fingerprint_bits = bucket_bits + DLEFT_REMAINDER_BITS;
	unsigned char *times = calloc(1 << fingerprint_bits, 1);
	__u64 filled = 0, saturated = 0;
	struct dleft filter;

	assert_non_null(times);
	for (__u64 i = 0; i < ITEMS / 4; i++)
		saturated += ++times[hash_of(i) >> (64 - fingerprint_bits)] == DLEFT_COUNT_MAX;
	free(times);
	assert_int_equal(dleft_open(&filter, bucket_bits), 0);
	DELETE_ALL(dleft, &filter, ITEMS / 4);
	for (__u64 i = 0; i < (__u64)DLEFT_WORDS * DLEFT_TABLES << bucket_bits; i++)
		filled += __builtin_popcountll(
			dleft_filled(baseline_get(filter.memory, i * DLEFT_WORD_BITS, DLEFT_WORD_BITS)));
	assert_int_equal(filled, saturated);
	dleft_close(&filter);
}

/* A counted fingerprint goes with its last deletion. Once its count is saturated, it never goes. */
TEST(test_dleft_counts)
{
	struct dleft filter;

	for (unsigned int times = 1; times <= DLEFT_COUNT_MAX + 1; times++) {
		assert_int_equal(dleft_open(&filter, 4), 0);
		for (unsigned int i = 0; i < times; i++)
			assert_int_equal(dleft_insert(&filter, hash_of(0)), 0);
		for (unsigned int i = 0; i < times; i++) {
			assert_true(dleft_contains(&filter, hash_of(0)));
			assert_int_equal(dleft_delete(&filter, hash_of(0)), 0);
		}
		assert_int_equal(dleft_contains(&filter, hash_of(0)), times >= DLEFT_COUNT_MAX);
		dleft_close(&filter);
	}
}

/* An insert that finds all four buckets full changes nothing. All items are still found. */
TEST(test_dleft_full)
{
	const size_t bytes = (DLEFT_TABLES << 6) * DLEFT_BUCKET_BITS / 8;
	unsigned char before[(DLEFT_TABLES << 6) * DLEFT_BUCKET_BITS / 8];
	struct dleft filter;
	__u64 number = 0;

	assert_int_equal(dleft_open(&filter, 6), 0);
	do
		memcpy(before, filter.memory, bytes);
	while (!dleft_insert(&filter, hash_of(number++)));
	assert_memory_equal(before, filter.memory, bytes);
	assert_in_range(number, DLEFT_TABLES * DLEFT_CELLS * 64 / 2, DLEFT_TABLES * DLEFT_CELLS * 64);
	for (__u64 i = 0; i + 1 < number; i++)
		assert_true(dleft_contains(&filter, hash_of(i)));
	dleft_close(&filter);
}

TEST_MAIN(setup, NULL)
