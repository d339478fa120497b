// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Compares sets of keys with a plain array. */
#include "change/key_set.h"
#include "unit/store_fixture.h"

#define RUNS 40
#define KEYS_MAX 1500 /* the set grows several times on the way */

static struct rule_key key_of(const char *text)
{
	const struct rule rule = rule_of(text);
	struct rule_key keys[RULE_KEYS_MAX];

	rule_keys(&rule, keys);
	return keys[0];
}

/* The keys differ only a little: in shape, address, one bit of it, or port. */
static struct rule_key random_key(void)
{
	static const char *const texts[] = {
		"10.0.0.0",     "10.0.0.0/16",        "10.0.0.0 action pass",
		"dst 10.0.0.0", "proto udp 10.0.0.0", "proto tcp 10.0.0.0 dport 1",
		"2001:db8::",   "2001:db8::/64",      "dst 2001:db8::",
	};
	struct rule_key key = key_of(texts[below(COUNT(texts))]);
	const size_t words = flow_key_last(key.shape.family);
	const unsigned int number = below(400);

	key.key.word[below(words)] ^= (__u64)(number & 15) << 48 | number >> 4;
	return key;
}

static bool same_key(const struct rule_key *a, const struct rule_key *b)
{
	return !memcmp(&a->shape, &b->shape, sizeof(a->shape)) && !memcmp(&a->key, &b->key, sizeof(a->key));
}

struct array {
	struct rule_key key[KEYS_MAX];
	size_t count;
};

static bool array_has(const struct array *array, const struct rule_key *key)
{
	for (size_t i = 0; i < array->count; i++)
		if (same_key(&array->key[i], key))
			return true;
	return false;
}

static void array_add(struct array *array, const struct rule_key *key)
{
	if (!array_has(array, key))
		array->key[array->count++] = *key;
}

/* Set and array have the same keys in the same order. */
static void agrees(const struct key_set *set, const struct array *array)
{
	assert_int_equal(set->count, array->count);
	for (size_t i = 0; i < array->count; i++) {
		assert_true(same_key(&set->key[i], &array->key[i]));
		assert_true(key_set_has(set, &array->key[i]));
	}
}

static void fill(struct key_set *set, struct array *array, size_t tries)
{
	for (size_t i = 0; i < tries; i++) {
		const struct rule_key key = random_key(), other = random_key();

		assert_int_equal(key_set_has(set, &key), array_has(array, &key));
		assert_int_equal(key_set_add(set, &key), 0);
		array_add(array, &key);
		assert_true(key_set_has(set, &key));
		assert_int_equal(key_set_has(set, &other), array_has(array, &other));
	}
	agrees(set, array);
}

TEST(test_against_an_array)
{
	struct array *array = calloc(1, sizeof(*array));
	struct key_set set = {};

	for (int run = 0; run < RUNS; run++) {
		fill(&set, array, below(KEYS_MAX));
		key_set_clear(&set);
		for (size_t i = 0; i < array->count; i++)
			assert_false(key_set_has(&set, &array->key[i]));
		array->count = 0;
		if (!below(3))
			key_set_close(&set);
	}
	key_set_close(&set);
	free(array);
}

TEST(test_growth)
{
	struct rule_key key = key_of("10.0.0.0");
	struct key_set set = {};
	const __u64 first = key.key.word[0];

	assert_false(key_set_has(&set, &key));
	for (size_t i = 0; i < 100000; i++) {
		key.key.word[0] = first + i;
		assert_false(key_set_has(&set, &key));
		assert_int_equal(key_set_add(&set, &key), 0);
		assert_int_equal(key_set_add(&set, &key), 0);
		assert_int_equal(set.count, i + 1);
	}
	for (size_t i = 0; i < 100000; i++) {
		key.key.word[0] = first + i;
		assert_true(key_set_has(&set, &key));
		assert_int_equal(set.key[i].key.word[0], first + i);
	}
	key_set_close(&set);
	assert_false(key_set_has(&set, &key));
	key_set_close(&set);
}

/* Keys with the same words but different families are different, also where their places collide. */
TEST(test_families_are_apart)
{
	const struct rule rule = rule_of("proto 0");
	struct rule_key keys[RULE_KEYS_MAX], key;
	struct key_set set = {};

	assert_int_equal(rule_keys(&rule, keys), 2);
	assert_memory_equal(&keys[0].key, &keys[1].key, sizeof(keys[0].key));
	for (int run = 0; run < 10 * RUNS; run++) {
		for (int i = 0; i < 60; i++) {
			key = keys[0];
			key.key.word[0] = random_next(&random_state);
			assert_int_equal(key_set_add(&set, &key), 0);
		}
		for (size_t i = 0; i < set.count; i++) {
			key = set.key[i];
			key.shape = keys[1].shape;
			assert_false(key_set_has(&set, &key));
		}
		key_set_clear(&set);
	}
	key_set_close(&set);
}

TEST_MAIN(seed, NULL)
