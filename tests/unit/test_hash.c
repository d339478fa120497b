// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The keyed hash against published vectors and against a byte-wise SipHash-c-d of its own, and the
 * arithmetic of buckets, of every layout, against plain loops.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "semisort.h"
#include "siphash.h"

#define WORDS_MAX FLOW_KEY_WORDS_MAX
#define STEP_SHIFT_MAX 56 /* 2^8 buckets */

/* ---- SipHash-c-d after the paper, over bytes ---- */

static uint64_t rotate(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static void rounds(uint64_t v[4], int count)
{
	while (count--) {
		v[0] += v[1], v[2] += v[3];
		v[1] = rotate(v[1], 13), v[3] = rotate(v[3], 16);
		v[1] ^= v[0], v[3] ^= v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1], v[0] += v[3];
		v[1] = rotate(v[1], 17), v[3] = rotate(v[3], 21);
		v[1] ^= v[2], v[3] ^= v[0];
		v[2] = rotate(v[2], 32);
	}
}

static uint64_t little_endian(const uint8_t *byte, size_t count)
{
	uint64_t word = 0;

	while (count--)
		word = word << 8 | byte[count];
	return word;
}

/* `tag`, unless NULL: what follows the hash, as the second half of the 128-bit output does. */
static uint64_t siphash_bytes(int c, int d, const uint8_t key[16], const uint8_t *byte,
			      size_t count, uint64_t *tag)
{
	uint64_t k0 = little_endian(key, 8), k1 = little_endian(key + 8, 8);
	uint64_t v[4], last = (uint64_t)count << 56, hash;
	size_t at = 0;

	/* "somepseudorandomlygeneratedbytes", as big-endian words. */
	v[0] = k0 ^ 0x736f6d6570736575;
	v[1] = k1 ^ 0x646f72616e646f6d;
	v[2] = k0 ^ 0x6c7967656e657261;
	v[3] = k1 ^ 0x7465646279746573;
	for (; at + 8 <= count; at += 8) {
		uint64_t word = little_endian(byte + at, 8);

		v[3] ^= word;
		rounds(v, c);
		v[0] ^= word;
	}
	last |= little_endian(byte + at, count - at);
	v[3] ^= last;
	rounds(v, c);
	v[0] ^= last;
	v[2] ^= 0xff;
	rounds(v, d);
	hash = v[0] ^ v[1] ^ v[2] ^ v[3];
	v[1] ^= 0xdd;
	rounds(v, d);
	if (tag)
		*tag = v[0] ^ v[1] ^ v[2] ^ v[3];
	return hash;
}

/*
 * Vectors of SipHash-2-4: the paper's appendix A (15 bytes) and the authors' vectors.h. Of 1-3: the
 * tests of Rust's core::hash. Key 00 01 .. 0f, input 00 01 .. of the length given.
 */
static const struct vector {
	int c, d;
	size_t bytes;
	uint64_t hash;
} vectors[] = {
	{ 2, 4, 0, 0x726fdb47dd0e0e31 },  { 2, 4, 1, 0x74f839c593dc67fd },
	{ 2, 4, 7, 0xab0200f58b01d137 },  { 2, 4, 8, 0x93f5f5799a932462 },
	{ 2, 4, 15, 0xa129ca6149be45e5 }, { 2, 4, 63, 0x958a324ceb064572 },
	{ 1, 3, 0, 0xabac0158050fc4dc },  { 1, 3, 1, 0xc9f49bf37d57ca93 },
	{ 1, 3, 8, 0x369095118d299a8e },  { 1, 3, 16, 0xcc4fdd1a7d908b66 },
	{ 1, 3, 24, 0xf464aeb267349c8c }, { 1, 3, 32, 0x81157b6c16a7b60d },
	{ 1, 3, 40, 0xc1d2363299e41531 }, { 1, 3, 63, 0x9d199062b7bbb3a8 },
};

static void test_siphash_vectors(void **state)
{
	uint8_t byte[64];

	(void)state;
	for (size_t i = 0; i < sizeof(byte); i++)
		byte[i] = i;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		const struct vector *vector = &vectors[i];
		struct siphash_key key;
		__u64 word[WORDS_MAX] = {};

		assert_int_equal(
			siphash_bytes(vector->c, vector->d, byte, byte, vector->bytes, NULL),
			vector->hash);
		if (vector->c != 1 || vector->bytes > sizeof(word))
			continue;
		memcpy(&key, byte, sizeof(key));
		memcpy(word, byte, vector->bytes);
		assert_int_equal(siphash13(&key, word, vector->bytes), vector->hash);
	}
}

static void test_siphash_equals_bytewise(void **state)
{
	uint64_t seed = getenv("SEED") ? strtoull(getenv("SEED"), NULL, 0) : 1, draws = 0;
	uint8_t seed_key[16] = {};

	(void)state;
	print_message("# SEED=%llu\n", (unsigned long long)seed);
	memcpy(seed_key, &seed, sizeof(seed));
	for (unsigned int i = 0; i < 60000; i++) {
		unsigned int bytes = i % (8 * WORDS_MAX + 1);
		uint64_t random[2 + WORDS_MAX];
		struct siphash_state state13;
		struct siphash_key key;
		__u64 word[WORDS_MAX] = {};
		uint64_t tag;

		for (size_t j = 0; j < 2 + WORDS_MAX; j++, draws++)
			random[j] = siphash_bytes(2, 4, seed_key, (uint8_t *)&draws, sizeof(draws),
						  NULL);
		memcpy(&key, random, sizeof(key));
		memcpy(word, random + 2, bytes);
		state13 = siphash13_state(&key, word, bytes);
		assert_int_equal(
			siphash13(&key, word, bytes),
			siphash_bytes(1, 3, (uint8_t *)random, (uint8_t *)word, bytes, &tag));
		assert_int_equal(siphash_hash(&state13), siphash13(&key, word, bytes));
		assert_int_equal(siphash_tag(state13), tag);
	}
}

/* ---- which buckets ---- */

/* Layouts: those of running tables, and the least and most of what experiments use. */
static const struct bucket_layout layouts[] = {
	{ 4, 16, 16, 0 }, { 4, 32, 32, 0 }, { 4, 8, 8, 0 },   { 4, 17, 0, 0 },	{ 1, 2, 8, 0 },
	{ 2, 7, 8, 0 },	  { 8, 8, 8, 0 },   { 1, 12, 16, 0 }, { 8, 16, 16, 0 }, { 8, 13, 16, 0 },
	{ 1, 32, 32, 0 }, { 2, 24, 32, 0 }, { 4, 5, 0, 0 },   { 4, 13, 0, 0 },
};

#define LAYOUTS (sizeof(layouts) / sizeof(layouts[0]))

/*
 * Buckets, and how many pieces they are; the largest and the smallest, and between powers of two.
 */
static const struct {
	__u32 buckets, pieces;
} geometries[] = {
	{ 1U << 28, 1 }, { 15U << 24, 15 }, { 9U << 24, 9 }, { 9U << 13, 9 },
	{ 5U << 14, 5 }, { 1U << 16, 1 },   { 1U << 8, 1 },
};

static uint64_t random_of(uint64_t number)
{
	static const struct siphash_key key = { { 1, 2 } };
	const __u64 word = number;

	return siphash13(&key, &word, sizeof(word));
}

static struct bucket_geometry geometry_of(size_t i)
{
	const __u32 piece = geometries[i].buckets / geometries[i].pieces;

	return (struct bucket_geometry){ geometries[i].buckets, 64 - __builtin_ctz(piece) };
}

/* The lowest hash that has this bucket for its first, and this fingerprint. */
static __u64 hash_of(struct bucket_geometry geometry, struct bucket_layout layout, __u32 bucket,
		     __u32 fingerprint)
{
	return (__u64)fingerprint << (64 - layout.fingerprint_bits) |
	       (((__u64)bucket << 32) + geometry.buckets - 1) / geometry.buckets;
}

static void test_either_bucket_leads_to_the_other(void **state)
{
	size_t wrong = 0;

	(void)state;
	for (size_t g = 0; g < sizeof(geometries) / sizeof(geometries[0]); g++)
		for (size_t i = 0; i < LAYOUTS * 20000; i++) {
			const struct bucket_geometry geometry = geometry_of(g);
			const struct bucket_layout layout = layouts[i % LAYOUTS];
			const __u32 piece = geometry.buckets / geometries[g].pieces;
			const struct bucket_pair pair = bucket_pair(random_of(i), geometry, layout);
			const struct bucket_pair back = bucket_pair(
				hash_of(geometry, layout, pair.second, pair.fingerprint), geometry,
				layout);

			wrong += pair.first >= geometry.buckets ||
				 pair.second >= geometry.buckets ||
				 pair.first / piece != pair.second / piece ||
				 back.first != pair.second || back.second != pair.first ||
				 back.fingerprint != pair.fingerprint;
		}
	assert_int_equal(wrong, 0);
}

/* Each bucket is the first of as many hashes as any other; the ends are the ends. */
static void test_first_buckets_spread(void **state)
{
	enum { BUCKETS = 9 << 5, HASHES = BUCKETS * 10000 };
	const struct bucket_geometry geometry = { BUCKETS, 64 - 5 };
	static unsigned int keys_of[BUCKETS];

	(void)state;
	for (size_t i = 0; i < HASHES; i++)
		keys_of[bucket_pair(random_of(i), geometry, layouts[0]).first]++;
	for (size_t bucket = 0; bucket < BUCKETS; bucket++)
		assert_in_range(keys_of[bucket], 9500, 10500);
	assert_int_equal(bucket_pair(0, geometry, layouts[0]).first, 0);
	assert_int_equal(bucket_pair(0xffffffff, geometry, layouts[0]).first, BUCKETS - 1);
}

/* Every step belongs to about as many fingerprints as any other. */
static void test_steps_spread(void **state)
{
	unsigned int fingerprints_of[1 << (64 - STEP_SHIFT_MAX)] = {};

	(void)state;
	for (__u32 fingerprint = 1; fingerprint <= 0xffff; fingerprint++)
		fingerprints_of[bucket_step(fingerprint, STEP_SHIFT_MAX)]++;
	for (size_t step = 0; step < sizeof(fingerprints_of) / sizeof(fingerprints_of[0]); step++)
		assert_in_range(fingerprints_of[step], 250, 262);
}

static void test_fingerprint_is_never_zero(void **state)
{
	const struct bucket_geometry geometry = { 1 << 8, STEP_SHIFT_MAX };

	(void)state;
	for (size_t i = 0; i < LAYOUTS; i++)
		for (__u64 top = 0; top < 1ULL << layouts[i].fingerprint_bits && top < 0x20000;
		     top++) {
			__u64 hash = top << (64 - layouts[i].fingerprint_bits) | 0x123;

			assert_int_equal(bucket_pair(hash, geometry, layouts[i]).fingerprint,
					 top ? top : 1);
		}
}

/* ---- what is in a bucket ---- */

/* A bucket of these fingerprints. A semi-sorted one sorts them. */
static struct bucket bucket_of(struct bucket_layout layout, __u32 fingerprint[])
{
	struct bucket bucket = {};

	if (!layout.lane_bits) {
		bucket.word[0] = semisort_word(fingerprint, layout);
		return bucket;
	}
	for (unsigned int slot = 0; slot < layout.slots; slot++)
		bucket.word[slot * layout.lane_bits / 64] |= (__u64)fingerprint[slot]
							     << slot * layout.lane_bits % 64;
	return bucket;
}

/* Fingerprints that borrows and carries could confuse with `about`, and free slots. */
static void draw_near(struct bucket_layout layout, __u32 about, uint64_t random,
		      __u32 fingerprint[])
{
	const __u32 mask = (1ULL << layout.fingerprint_bits) - 1, top = mask / 2 + 1;
	const __u32 near[] = {
		about, about + 1, about - 1, about ^ top, about ^ top ^ 1, 0, 1, mask
	};

	for (unsigned int slot = 0; slot < layout.slots; slot++, random >>= 3)
		fingerprint[slot] = near[random % 8] & mask;
}

static void test_match_and_get_agree_with_a_loop(void **state)
{
	const __u16 *prefixes = semisort_prefixes();
	size_t wrong = 0;

	(void)state;
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

/* Every fingerprint of 16 bits, also 0 (a free slot), beside its neighbours in all orders. */
static void test_match_of_16_bits_is_exact(void **state)
{
	size_t wrong = 0;

	(void)state;
	for (__u32 wanted = 0; wanted <= 0xffff; wanted++)
		for (uint64_t order = 0; order < 1 << 12; order += 5) {
			__u32 fingerprint[BUCKET_SLOTS];
			bool is_held = false;

			draw_near(layouts[0], wanted, order, fingerprint);
			for (unsigned int slot = 0; slot < BUCKET_SLOTS; slot++)
				is_held |= fingerprint[slot] == wanted;
			wrong += !bucket_match(bucket_of(layouts[0], fingerprint), layouts[0],
					       wanted, NULL) == is_held;
		}
	assert_int_equal(wrong, 0);
}

/* The codes are 0 to 3,875, each once, and lead back to the prefixes; the others to none. */
static void test_semisort_codes(void **state)
{
	enum { CODES = 3876 };
	const __u16 *prefixes = semisort_prefixes();
	static bool is_seen[BUCKET_SORTED_CODES];
	unsigned int count = 0;

	(void)state;
	for (__u32 number = 0; number <= 0xffff; number++) {
		const __u32 prefix[BUCKET_SLOTS] = { number & 15, number >> 4 & 15,
						     number >> 8 & 15, number >> 12 };
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

static void test_semisort_of_nothing_is_zero(void **state)
{
	__u32 none[BUCKET_SLOTS] = {};

	(void)state;
	assert_int_equal(semisort_word(none, bucket_layout(BUCKET_17)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_siphash_vectors),
		cmocka_unit_test(test_siphash_equals_bytewise),
		cmocka_unit_test(test_either_bucket_leads_to_the_other),
		cmocka_unit_test(test_first_buckets_spread),
		cmocka_unit_test(test_steps_spread),
		cmocka_unit_test(test_fingerprint_is_never_zero),
		cmocka_unit_test(test_match_and_get_agree_with_a_loop),
		cmocka_unit_test(test_match_of_16_bits_is_exact),
		cmocka_unit_test(test_semisort_codes),
		cmocka_unit_test(test_semisort_of_nothing_is_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
