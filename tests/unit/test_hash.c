// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The keyed hash against published vectors and against a byte-wise SipHash-c-d of its own, and the
 * arithmetic of buckets against plain loops.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bucket.h"
#include "siphash.h"

#define WORDS_MAX FLOW_KEY_WORDS_MAX
#define STEP_SHIFT_MIN 36 /* 2^28 buckets */
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

static uint64_t siphash_bytes(int c, int d, const uint8_t key[16], const uint8_t *byte,
			      size_t count)
{
	uint64_t k0 = little_endian(key, 8), k1 = little_endian(key + 8, 8);
	uint64_t v[4], last = (uint64_t)count << 56;
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
	return v[0] ^ v[1] ^ v[2] ^ v[3];
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

		assert_int_equal(siphash_bytes(vector->c, vector->d, byte, byte, vector->bytes),
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
		struct siphash_key key;
		__u64 word[WORDS_MAX] = {};

		for (size_t j = 0; j < 2 + WORDS_MAX; j++, draws++)
			random[j] = siphash_bytes(2, 4, seed_key, (uint8_t *)&draws, sizeof(draws));
		memcpy(&key, random, sizeof(key));
		memcpy(word, random + 2, bytes);
		assert_int_equal(siphash13(&key, word, bytes),
				 siphash_bytes(1, 3, (uint8_t *)random, (uint8_t *)word, bytes));
	}
}

/* ---- buckets ---- */

static void test_either_bucket_leads_to_the_other(void **state)
{
	size_t wrong = 0;

	(void)state;
	for (__u32 shift = STEP_SHIFT_MIN; shift <= STEP_SHIFT_MAX; shift++)
		for (__u64 fingerprint = 1; fingerprint <= 0xffff; fingerprint++) {
			__u64 mask = (1ULL << (64 - shift)) - 1;
			__u64 hash =
				fingerprint << 48 | (fingerprint * 0x2545f4914f6cdd1d >> 16 & mask);
			struct bucket_pair pair = bucket_pair(hash, mask, shift);
			struct bucket_pair back =
				bucket_pair(fingerprint << 48 | pair.second, mask, shift);

			wrong += pair.first > mask || pair.second > mask ||
				 pair.fingerprint != fingerprint || pair.first != (hash & mask) ||
				 back.first != pair.second || back.second != pair.first;
		}
	assert_int_equal(wrong, 0);
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
	(void)state;
	for (__u64 top = 0; top <= 0xffff; top++)
		assert_int_equal(bucket_pair(top << 48 | 0x123456789abc, 0xff, 56).fingerprint,
				 top ? top : 1);
}

static bool holds(__u64 bucket, __u16 fingerprint)
{
	for (unsigned int slot = 0; slot < BUCKET_SLOTS; slot++)
		if ((__u16)(bucket >> 16 * slot) == fingerprint)
			return true;
	return false;
}

/* Every fingerprint, also 0 (a free slot), among those that borrows and carries could confuse. */
static void test_match_is_exact(void **state)
{
	size_t wrong = 0;

	(void)state;
	for (__u32 fingerprint = 0; fingerprint <= 0xffff; fingerprint++) {
		const __u16 near[] = { fingerprint,	     fingerprint + 1,	   fingerprint - 1,
				       fingerprint ^ 0x8000, fingerprint ^ 0x8001, 0 };
		const unsigned int choices = sizeof(near) / sizeof(near[0]);

		for (unsigned int a = 0; a < choices; a++)
			for (unsigned int b = 0; b < choices; b++)
				for (unsigned int c = 0; c < choices; c++)
					for (unsigned int d = 0; d < choices; d++) {
						__u64 bucket = (__u64)near[a] << 48 |
							       (__u64)near[b] << 32 |
							       (__u64)near[c] << 16 | near[d];

						wrong += !bucket_match(bucket, fingerprint) ==
							 holds(bucket, fingerprint);
					}
	}
	assert_int_equal(wrong, 0);
}

static void test_set_changes_one_slot(void **state)
{
	const __u64 bucket = 0x8000ffff00010000;

	(void)state;
	for (unsigned int slot = 0; slot < BUCKET_SLOTS; slot++)
		for (__u32 fingerprint = 0; fingerprint <= 0xffff; fingerprint += 5) {
			__u64 set = bucket_set(bucket, slot, fingerprint);

			for (unsigned int i = 0; i < BUCKET_SLOTS; i++)
				assert_int_equal(bucket_get(set, i),
						 i == slot ? fingerprint
							   : (__u16)(bucket >> 16 * i));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_siphash_vectors),
		cmocka_unit_test(test_siphash_equals_bytewise),
		cmocka_unit_test(test_either_bucket_leads_to_the_other),
		cmocka_unit_test(test_steps_spread),
		cmocka_unit_test(test_fingerprint_is_never_zero),
		cmocka_unit_test(test_match_is_exact),
		cmocka_unit_test(test_set_changes_one_slot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
