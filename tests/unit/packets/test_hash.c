// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Compares the keyed hash with the paper's formula and its promise, and the arithmetic of buckets with plain
 * loops, for every layout.
 */
#include <math.h>
#include <stdbool.h>

#include "unit/test.h"
#include "hash.h"
#include "unit/random_fill.h"
#include "table/semisort.h"

#define STEP_SHIFT_MAX 56 /* 2^8 buckets */

/* ---- the hash, after the paper ---- */

/*
 * The upper half of (m1 + sum of (m2i + s2i-1)(m2i+1 + s2i)) mod 2^64. The first character of each pair is
 * the whole word.
 */
static uint32_t multilinear(uint64_t offset, const uint64_t *factor, const uint64_t *character, size_t count)
{
	const unsigned __int128 modulus = (unsigned __int128)1 << 64;
	unsigned __int128 sum = offset;

	for (size_t i = 0; i < count; i += 2) {
		const unsigned __int128 left = ((unsigned __int128)factor[i] + character[i]) % modulus;
		const unsigned __int128 right = ((unsigned __int128)factor[i + 1] + character[i + 1]) % modulus;

		sum = (sum + left * right % modulus) % modulus;
	}
	return sum >> 32;
}

static uint32_t lane_of(const struct hash_input *input, unsigned int lane)
{
	const size_t words = input->family == FLOW_IPV4 ? 2 : 5;
	uint64_t character[2 * FLOW_KEY_WORDS_MAX] = { 0 };
	uint64_t factor[2 * FLOW_KEY_WORDS_MAX];
	const __u64 *offset = input->family == FLOW_IPV4 ? input->secret->ipv4_offset : input->secret->ipv6_offset;

	for (size_t i = 0; i < words; i++) {
		uint64_t word = input->word[i] & input->mask[i];

		if (i == words - 1)
			word |= input->last;
		character[2 * i] = word;
		character[2 * i + 1] = word >> 32;
		factor[2 * i] = input->secret->factor[i][lane][0];
		factor[2 * i + 1] = input->secret->factor[i][lane][1];
	}
	if (character[2 * words - 2] >> 63) {
		character[2 * words] = input->word[5] & input->mask[5];
		character[2 * words + 1] = character[2 * words] >> 32;
		factor[2 * words] = input->secret->factor[5][lane][0];
		factor[2 * words + 1] = input->secret->factor[5][lane][1];
		return multilinear(offset[lane], factor, character, 2 * words + 2);
	}
	return multilinear(offset[lane], factor, character, 2 * words);
}

TEST(test_hash_is_multilinear)
{
	uint64_t random = seed_of_run();

	for (int i = 0; i < 100000; i++) {
		struct hash_secret secret;
		__u64 word[FLOW_KEY_WORDS_MAX], mask[FLOW_KEY_WORDS_MAX];
		struct hash_input input = { &secret, word, mask, 0, random_below(&random, 2) };
		uint64_t mixed;

		random_fill(&random, &secret, sizeof(secret));
		for (size_t w = 0; w < FLOW_KEY_WORDS_MAX; w++) {
			word[w] = random_next(&random);
			mask[w] = random_next(&random) | random_next(&random);
		}
		input.last = random_next(&random);
		mixed = (uint64_t)lane_of(&input, 0) << 32 | lane_of(&input, 1);
		mixed = (mixed ^ mixed >> 32) * 0x9e3779b97f4a7c15;
		assert_int_equal(hash_of(&input), mixed ^ mixed >> 29);
		/* The tag: the third lane, then the lowest bits of the upper half of the hash. */
		mixed ^= mixed >> 29;
		assert_int_equal(hash_tag(&input, mixed), (uint64_t)lane_of(&input, 2) << 32 | (mixed >> 32 & 0xf)
												       << 28);
	}
}

/* Two numbers are alike if their lowest or their highest LIKE_BITS bits are equal. */
#define LIKE_BITS 8

static bool is_like(__u64 difference)
{
	return !(difference & 0xff) || !(difference >> (64 - LIKE_BITS));
}

/* Pairs of keys that differ very little or in a regular way, and a pair of both families. */
static const struct {
	enum flow_family family[2];
	__u64 word[2][FLOW_KEY_WORDS_MAX];
} pairs[] = {
	{ { FLOW_IPV4, FLOW_IPV4 }, { { 1 }, { 0 } } },
	{ { FLOW_IPV4, FLOW_IPV4 }, { { 1ULL << 31 }, { 0 } } },
	{ { FLOW_IPV4, FLOW_IPV4 }, { { 0, 1ULL << 63 }, { 0 } } },
	{ { FLOW_IPV4, FLOW_IPV4 }, { { 0x0100000002, 1 }, { 0x0200000001, 1 } } },
	{ { FLOW_IPV4, FLOW_IPV4 }, { { 1, 2 }, { 2, 1 } } },
	{ { FLOW_IPV6, FLOW_IPV6 }, { { 0, 0, 0, 0, 1 }, { 0 } } },
	{ { FLOW_IPV6, FLOW_IPV6 }, { { 1, 0, 2 }, { 2, 0, 1 } } },
	{ { FLOW_IPV6, FLOW_IPV6 }, { { 0, 1ULL << 63 }, { 0 } } },
	{ { FLOW_IPV4, FLOW_IPV6 }, { { 0 }, { 0 } } },
};

/*
 * Strong universality: over random secrets, every difference between the hashes of two given keys is equally
 * likely. The same is true of their tags, and of hash and tag together.
 */
TEST(test_no_two_keys_meet_more_often_than_by_chance)
{
	enum { SECRETS = 200000 };
	const double share = 2.0 / (1 << LIKE_BITS) - 1.0 / (1 << 2 * LIKE_BITS);
	static const __u64 mask[FLOW_KEY_WORDS_MAX] = { ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL };
	uint64_t random = seed_of_run();

	for (size_t p = 0; p < COUNT(pairs); p++) {
		double hashes = 0, tags = 0, both = 0;

		for (int i = 0; i < SECRETS; i++) {
			struct hash_secret secret;
			struct hash_input a = { &secret, pairs[p].word[0], mask, 0, pairs[p].family[0] };
			struct hash_input b = { &secret, pairs[p].word[1], mask, 0, pairs[p].family[1] };
			bool hash_is_like, tag_is_like;
			__u64 lane; /* of the tag */

			random_fill(&random, &secret, sizeof(secret));
			hash_is_like = is_like(hash_of(&a) ^ hash_of(&b));
			lane = (hash_tag(&a, hash_of(&a)) ^ hash_tag(&b, hash_of(&b))) >> 32;
			tag_is_like = is_like(lane << 32 | lane);
			hashes += hash_is_like;
			tags += tag_is_like;
			both += hash_is_like && tag_is_like;
		}
		/* Six standard deviations. */
		assert_true(fabs(hashes - SECRETS * share) < 6 * sqrt(SECRETS * share));
		assert_true(fabs(tags - SECRETS * share) < 6 * sqrt(SECRETS * share));
		assert_true(fabs(both - SECRETS * share * share) < 6 * sqrt(SECRETS * share * share));
	}
}

/* ---- the two buckets of a hash ---- */

/* The layouts of running tables, and the extremes of those in experiments. */
static const struct bucket_layout layouts[] = {
	{ 4, 16, 16, 0, 0 }, { 4, 32, 32, 0, 0 }, { 4, 8, 8, 0, 0 },   { 4, 17, 0, 0, 0 },  { 1, 2, 8, 0, 0 },
	{ 2, 7, 8, 0, 0 },   { 8, 8, 8, 0, 0 },   { 1, 12, 16, 0, 0 }, { 8, 16, 16, 0, 0 }, { 8, 13, 16, 0, 0 },
	{ 1, 32, 32, 0, 0 }, { 2, 24, 32, 0, 0 }, { 4, 5, 0, 0, 0 },   { 4, 13, 0, 0, 0 },
};

#define LAYOUTS COUNT(layouts)

/* Numbers of buckets and pieces: the largest, the smallest, and some between powers of two. */
static const struct {
	__u32 buckets, pieces;
} geometries[] = {
	{ 1U << 28, 1 }, { 15U << 24, 15 }, { 9U << 24, 9 }, { 9U << 13, 9 },
	{ 5U << 14, 5 }, { 1U << 16, 1 },   { 1U << 8, 1 },
};

static uint64_t random_of(uint64_t number)
{
	uint64_t state = number * RANDOM_STEP;

	return random_next(&state);
}

static struct bucket_geometry geometry_of(size_t i)
{
	const __u32 piece = geometries[i].buckets / geometries[i].pieces;

	return (struct bucket_geometry){ geometries[i].buckets, 64 - __builtin_ctz(piece) };
}

/* The lowest hash with this first bucket and this fingerprint. */
static __u64 hash_with(struct bucket_geometry geometry, struct bucket_layout layout, __u32 bucket, __u32 fingerprint)
{
	return (__u64)fingerprint << (64 - layout.fingerprint_bits) |
	       (((__u64)bucket << 32) + geometry.buckets - 1) / geometry.buckets;
}

TEST(test_either_bucket_leads_to_the_other)
{
	size_t wrong = 0;

	for (size_t g = 0; g < COUNT(geometries); g++)
		for (size_t i = 0; i < LAYOUTS * 20000; i++) {
			const struct bucket_geometry geometry = geometry_of(g);
			const struct bucket_layout layout = layouts[i % LAYOUTS];
			const __u32 piece = geometry.buckets / geometries[g].pieces;
			const struct bucket_pair pair = bucket_pair(random_of(i), geometry, layout);
			const struct bucket_pair back =
				bucket_pair(hash_with(geometry, layout, pair.second, pair.fingerprint), geometry,
					    layout);

			wrong += pair.first >= geometry.buckets || pair.second >= geometry.buckets ||
				 pair.first / piece != pair.second / piece || back.first != pair.second ||
				 back.second != pair.first || back.fingerprint != pair.fingerprint;
		}
	assert_int_equal(wrong, 0);
}

/* Each bucket is the first of about equally many hashes. The lowest and highest hash have the end buckets. */
TEST(test_first_buckets_spread)
{
	enum { BUCKETS = 9 << 5, HASHES = BUCKETS * 10000 };
	const struct bucket_geometry geometry = { BUCKETS, 64 - 5 };
	static unsigned int keys_of[BUCKETS];

	for (size_t i = 0; i < HASHES; i++)
		keys_of[bucket_pair(random_of(i), geometry, layouts[0]).first]++;
	for (size_t bucket = 0; bucket < BUCKETS; bucket++)
		assert_in_range(keys_of[bucket], 9500, 10500);
	assert_int_equal(bucket_pair(0, geometry, layouts[0]).first, 0);
	assert_int_equal(bucket_pair(0xffffffff, geometry, layouts[0]).first, BUCKETS - 1);
}

/* Each step belongs to about equally many fingerprints. */
TEST(test_steps_spread)
{
	unsigned int fingerprints_of[1 << (64 - STEP_SHIFT_MAX)] = {};

	for (__u32 fingerprint = 1; fingerprint <= 0xffff; fingerprint++)
		fingerprints_of[bucket_step(fingerprint, STEP_SHIFT_MAX)]++;
	for (size_t step = 0; step < COUNT(fingerprints_of); step++)
		assert_in_range(fingerprints_of[step], 250, 262);
}

TEST(test_fingerprint_is_never_zero)
{
	const struct bucket_geometry geometry = { 1 << 8, STEP_SHIFT_MAX };

	for (size_t i = 0; i < LAYOUTS; i++)
		for (__u64 top = 0; top < 1ULL << layouts[i].fingerprint_bits && top < 0x20000; top++) {
			__u64 hash = top << (64 - layouts[i].fingerprint_bits) | 0x123;

			assert_int_equal(bucket_pair(hash, geometry, layouts[i]).fingerprint, top ? top : 1);
		}
}

/* ---- the contents of a bucket ---- */

/* A bucket with these fingerprints. A semi-sorted bucket sorts them. */
static struct bucket bucket_of(struct bucket_layout layout, __u32 fingerprint[])
{
	struct bucket bucket = {};

	if (!layout.lane_bits) {
		bucket.word[0] = semisort_word(fingerprint, layout);
		return bucket;
	}
	for (unsigned int slot = 0; slot < layout.slots; slot++)
		bucket.word[slot * layout.lane_bits / 64] |= (__u64)fingerprint[slot] << slot * layout.lane_bits % 64;
	return bucket;
}

/* Free slots, and fingerprints that a borrow or carry could confuse with `about`. */
static void draw_near(struct bucket_layout layout, __u32 about, uint64_t random, __u32 fingerprint[])
{
	const __u32 mask = (1ULL << layout.fingerprint_bits) - 1, top = mask / 2 + 1;
	const __u32 near[] = { about, about + 1, about - 1, about ^ top, about ^ top ^ 1, 0, 1, mask };

	for (unsigned int slot = 0; slot < layout.slots; slot++, random >>= 3)
		fingerprint[slot] = near[random % 8] & mask;
}

TEST(test_match_and_get_agree_with_a_loop)
{
	const __u16 *prefixes = semisort_prefixes();
	size_t wrong = 0;

	for (size_t i = 0; i < LAYOUTS * 200000; i++) {
		const struct bucket_layout layout = layouts[i % LAYOUTS];
		const __u32 mask = (1ULL << layout.fingerprint_bits) - 1;
		const __u32 wanted = i / LAYOUTS % 7 ? random_of(i) & mask : 0;
		__u32 fingerprint[8];
		struct bucket bucket;
		bool is_held = false;

		draw_near(layout, wanted, random_of(~i), fingerprint);
		bucket = bucket_of(layout, fingerprint);
		for (unsigned int slot = 0; slot < layout.slots; slot++) {
			is_held |= fingerprint[slot] == wanted;
			wrong += bucket_get(bucket, layout, slot, prefixes) != fingerprint[slot];
		}
		wrong += !bucket_match(bucket, layout, wanted, prefixes) == is_held;
	}
	assert_int_equal(wrong, 0);
}

/* Every fingerprint of 16 bits, and 0 (a free slot), among similar fingerprints in many orders. */
TEST(test_match_of_16_bits_is_exact)
{
	size_t wrong = 0;

	for (__u32 wanted = 0; wanted <= 0xffff; wanted++)
		for (uint64_t order = 0; order < 1 << 12; order += 5) {
			__u32 fingerprint[BUCKET_SLOTS];
			bool is_held = false;

			draw_near(layouts[0], wanted, order, fingerprint);
			for (unsigned int slot = 0; slot < BUCKET_SLOTS; slot++)
				is_held |= fingerprint[slot] == wanted;
			wrong += !bucket_match(bucket_of(layouts[0], fingerprint), layouts[0], wanted, NULL) == is_held;
		}
	assert_int_equal(wrong, 0);
}

/* The codes are 0 to 3,875, each is used once and leads back to its prefixes. All other codes lead to 0. */
TEST(test_semisort_codes)
{
	enum { CODES = 3876 };
	const __u16 *prefixes = semisort_prefixes();
	static bool is_seen[BUCKET_SORTED_CODES];
	unsigned int count = 0;

	for (__u32 number = 0; number <= 0xffff; number++) {
		const __u32 prefix[BUCKET_SLOTS] = { number & 15, number >> 4 & 15, number >> 8 & 15, number >> 12 };
		__u32 code;

		if (prefix[0] > prefix[1] || prefix[1] > prefix[2] || prefix[2] > prefix[3])
			continue;
		code = semisort_code(prefix);
		assert_in_range(code, 0, CODES - 1);
		assert_false(is_seen[code]);
		is_seen[code] = true;
		assert_int_equal(prefixes[code], number);
		count++;
	}
	assert_int_equal(count, CODES);
	for (unsigned int code = CODES; code < BUCKET_SORTED_CODES; code++)
		assert_int_equal(prefixes[code], 0);
}

TEST(test_semisort_of_nothing_is_zero)
{
	__u32 none[BUCKET_SLOTS] = {};

	assert_int_equal(semisort_word(none, bucket_layout(BUCKET_17)), 0);
}

TEST_MAIN(NULL, NULL)
