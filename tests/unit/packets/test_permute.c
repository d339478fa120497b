// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The permutation of prefixes is a bijection and spreads them, and bucket, side and fingerprint are one prefix. */
#include <stdbool.h>

#include "unit/test.h"
#include "fingerprint.h"
#include "table/table.h"
#include "unit/random_fill.h"

#define NUMBERS (1ULL << PERMUTE_BITS)

static struct permute_secret draw_secret(uint64_t *random)
{
	struct permute_secret secret;

	random_fill(random, &secret, sizeof(secret));
	return secret;
}

TEST(test_every_prefix_has_its_own_number)
{
	assert_int_equal(permute_number(0xffffffff, 0xffffffff), NUMBERS - 1);
	assert_int_equal(permute_number(0, 0xffffffff), 1);
	assert_int_equal(permute_number(0xc0000201, 0xffffff00), 0xc0000200ULL << 1 | 0x100);
	assert_int_equal(permute_number(0xc0000201, 0x80000000), 3ULL << 31);
}

TEST(test_the_permutation_can_be_undone)
{
	uint64_t random = seed_of_run();

	for (int i = 0; i < 40; i++) {
		const struct permute_secret secret = draw_secret(&random);

		for (int k = 0; k < 50000; k++) {
			const __u64 number = k < 100 ? (__u64)k :
					     k < 200 ? NUMBERS - k + 99 :
						       random_below(&random, NUMBERS);

			assert_in_range(permute(&secret, number), 0, NUMBERS - 1);
			if (permute_back(&secret, permute(&secret, number)) != number)
				fail_msg("%llx", (unsigned long long)number);
		}
	}
}

/*
 * All numbers of some buckets, for all sizes in use: their fingerprints grow, and lead back to them. The other bucket leads back,
 * too.
 */
TEST(test_place_and_fingerprint_are_the_prefix)
{
	uint64_t random = seed_of_run();
	struct bucket_geometry geometry = { 0 };

	for (__u64 slots = TABLE_ADDRESS_SLOTS_MIN; slots <= 1ULL << ABI_SLOTS_MAX_LOG2;
	     slots = table_slots_of(geometry) + 1) {
		geometry = table_geometry(slots);
		const __u32 reciprocal = address_reciprocal(geometry.buckets);

		for (int i = 0; i < 20; i++) {
			const __u32 bucket = i == 0 ? 0 :
					     i == 1 ? geometry.buckets - 1 :
						      random_below(&random, geometry.buckets);
			__u64 x = ((__u64)bucket * NUMBERS + geometry.buckets - 1) / geometry.buckets;
			struct bucket_pair pair = address_pair(x, geometry, reciprocal);
			__u32 last = 0;

			for (; x < NUMBERS && pair.first == bucket; pair = address_pair(++x, geometry, reciprocal)) {
				if (pair.fingerprint <= last || pair.fingerprint >= BUCKET_SIDE ||
				    pair.second >= geometry.buckets ||
				    address_at(bucket, pair.fingerprint, geometry, reciprocal) != x ||
				    address_at(pair.second, pair.fingerprint | BUCKET_SIDE, geometry, reciprocal) != x)
					fail_msg("%u buckets, %llx", geometry.buckets, (unsigned long long)x);
				for (__u32 none = last + 1; none < pair.fingerprint; none++)
					assert_int_equal(address_at(bucket, none, geometry, reciprocal), NUMBERS);
				last = pair.fingerprint;
			}
			assert_int_not_equal(last, 0);
		}
	}
	assert_int_equal(geometry.buckets, (1U << ABI_SLOTS_MAX_LOG2) / BUCKET_SLOTS);
	assert_int_equal(table_geometry(TABLE_ADDRESS_SLOTS_MIN).buckets, ADDRESS_BUCKETS_MIN);
}

/* The variance of the sizes of the buckets, of which random keys give the mean. */
static double unevenness(const struct permute_secret *secret, __u32 (*number)(__u32 i), __u32 mask, __u32 count)
{
	const struct bucket_geometry geometry = table_geometry(TABLE_ADDRESS_SLOTS_MIN);
	const double mean = (double)count / geometry.buckets;
	__u32 *sizes = calloc(geometry.buckets, sizeof(*sizes));
	double sum = 0;

	for (__u32 i = 0; i < count; i++)
		sizes[address_pair(permute(secret, permute_number(number(i), mask)), geometry, 1).first]++;
	for (__u32 i = 0; i < geometry.buckets; i++)
		sum += (sizes[i] - mean) * (sizes[i] - mean);
	free(sizes);
	return sum / geometry.buckets / mean;
}

static __u32 every(__u32 i)
{
	return 0x0a000000 + i;
}

static __u32 every_16th(__u32 i)
{
	return i << 4;
}

static __u32 every_256th(__u32 i)
{
	return i << 8;
}

static __u32 every_4096th(__u32 i)
{
	return i << 12;
}

static __u32 every_1009th(__u32 i)
{
	return i * 1009;
}

static __u32 every_65537th(__u32 i)
{
	return i * 65537;
}

TEST(test_regular_prefixes_are_spread_like_random_ones)
{
	static const struct {
		const char *name;
		__u32 (*number)(__u32 i);
		__u32 mask, count;
	} regular[] = {
		{ "a run", every, 0xffffffff, 1 << 20 },
		{ "every 16th address", every_16th, 0xffffffff, 1 << 20 },
		{ "every 256th address", every_256th, 0xffffffff, 1 << 20 },
		{ "every 4096th address", every_4096th, 0xffffffff, 1 << 20 },
		{ "every 1009th address", every_1009th, 0xffffffff, 1 << 20 },
		{ "every 65537th address", every_65537th, 0xffffffff, 1 << 16 },
		{ "all /24s of half of the space", every_256th, 0xffffff00, 1 << 20 },
	};
	uint64_t random = seed_of_run();

	for (size_t i = 0; i < COUNT(regular); i++) {
		double worst = 0;

		for (int k = 0; k < 10; k++) {
			const struct permute_secret secret = draw_secret(&random);
			const double value = unevenness(&secret, regular[i].number, regular[i].mask, regular[i].count);

			worst = value > worst ? value : worst;
		}
		print_message("# %s: %.3f at worst\n", regular[i].name, worst);
		assert_true(worst < 1.5);
	}
}

/* The promise, for pairs that an attacker would choose: of 2^24 draws, 2^(24-10) share the first 10 bits. */
TEST(test_no_two_prefixes_meet_more_often_than_by_chance)
{
	enum { DRAWS = 1 << 20, BITS = 10 };
	static const __u64 pairs[][2] = {
		{ 1, 3 },           { 1, 2 }, { 1, 1ULL << 32 | 1 }, { 0, PERMUTE_RIGHT }, { 1ULL << 16, 1ULL << 17 },
		{ 0, NUMBERS - 1 },
	};
	uint64_t random = seed_of_run();

	for (size_t i = 0; i < COUNT(pairs); i++) {
		int met = 0;

		for (int k = 0; k < DRAWS; k++) {
			const struct permute_secret secret = draw_secret(&random);

			met += !((permute(&secret, pairs[i][0]) ^ permute(&secret, pairs[i][1])) >>
				 (PERMUTE_BITS - BITS));
		}
		assert_in_range(met, (DRAWS >> BITS) - 200, (DRAWS >> BITS) + 200);
	}
}

TEST_MAIN(NULL, NULL)
