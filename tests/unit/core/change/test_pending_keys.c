// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Added keys come back for every shape. Touched keys are compared with a plain array. */
#include "change/internal.h"
#include "unit/store_fixture.h"

#define RUNS 40
#define COPIES 500    /* of each added key, with other addresses: the memory grows several times on the way */
#define KEYS_MAX 1500 /* touched; the same */

static const char *const texts[] = {
	"10.0.0.0",
	"10.0.0.0 action pass",
	"dst 10.0.0.0/9",
	"src 10.0.0.0/15 dst 10.0.0.0/31 action pass",
	"proto 0",
	"proto 254 action pass",
	"proto udp dport 65535",
	"proto icmp type 255 code 255",
	"proto tcp src 10.0.0.0 sport 65535 dst 10.0.0.0 dport 65535 action pass",
	"2001:db8::/32",
	"src 2001:db8::/127 dst ::/1 proto udp action pass",
	"proto tcp src 2001:db8:: sport 65535 dst 2001:db8:: dport 65535",
	"proto icmpv6 type 136",
};

#define TEXTS (sizeof(texts) / sizeof(texts[0]))

static struct rule_key added_keys[2 * TEXTS * COPIES];
static size_t added_keys_count;

static void make_added_keys(void)
{
	struct rule_key own[RULE_KEYS_MAX];

	added_keys_count = 0;
	for (size_t i = 0; i < TEXTS * COPIES; i++) {
		const struct rule rule = rule_of(texts[i % TEXTS]);
		const size_t count = rule_keys(&rule, own);

		for (size_t k = 0; k < count; k++) {
			own[k].key.word[0] ^= i / TEXTS << 8;
			added_keys[added_keys_count++] = own[k];
		}
	}
}

/* Keys of a family come in order. The timeout of each key is its index - 5. */
static size_t check_action(const struct pending_keys *pending, enum rule_action action)
{
	struct added_key added = {};
	size_t at = 0, seen = 0;

	for (enum flow_family family = 0; pending_keys_next(pending, action, &added); at++, seen++) {
		if (added.family != family)
			at = 0;
		family = added.family;
		while (added_keys[at].shape.family != family || added_keys[at].shape.action != action)
			at++;
		assert_int_equal(added.timeout_ms, (__s64)at - 5);
		assert_memory_equal(&added.key.shape, &added_keys[at].shape, sizeof(added.key.shape));
		assert_memory_equal(&added.key.key, &added_keys[at].key, sizeof(added.key.key));
	}
	return seen;
}

TEST(test_added_keys_come_back)
{
	struct pending_keys pending = {};

	assert_int_equal(check_action(&pending, RULE_DROP), 0);
	make_added_keys();
	for (size_t i = 0; i < added_keys_count; i++)
		assert_int_equal(pending_keys_add(&pending, &added_keys[i], (__s64)i - 5), 0);
	assert_int_equal(pending.added_count, added_keys_count);
	assert_int_equal(check_action(&pending, RULE_DROP) + check_action(&pending, RULE_PASS), added_keys_count);
	pending_keys_close(&pending);
	assert_int_equal(pending.added_count, 0);
	pending_keys_close(&pending);
}

/* ---- touched keys ---- */

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
	static const char *const some[] = {
		"10.0.0.0",     "10.0.0.0/16",        "10.0.0.0 action pass",
		"dst 10.0.0.0", "proto udp 10.0.0.0", "proto tcp 10.0.0.0 dport 1",
		"2001:db8::",   "2001:db8::/64",      "dst 2001:db8::",
	};
	struct rule_key key = key_of(some[below(sizeof(some) / sizeof(some[0]))]);
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
static void agrees(const struct pending_keys *set, const struct array *array)
{
	assert_int_equal(set->touched_count, array->count);
	for (size_t i = 0; i < array->count; i++) {
		assert_true(same_key(&set->touched[i].key, &array->key[i]));
		assert_non_null(pending_keys_touched(set, &array->key[i]));
	}
}

static void fill(struct pending_keys *set, struct array *array, size_t tries)
{
	for (size_t i = 0; i < tries; i++) {
		const struct rule_key key = random_key(), other = random_key();

		assert_int_equal(pending_keys_touched(set, &key) != NULL, array_has(array, &key));
		assert_int_equal(pending_keys_touch(set, &key, false), 0);
		array_add(array, &key);
		assert_non_null(pending_keys_touched(set, &key));
		assert_int_equal(pending_keys_touched(set, &other) != NULL, array_has(array, &other));
	}
	agrees(set, array);
}

TEST(test_against_an_array)
{
	struct array *array = calloc(1, sizeof(*array));
	struct pending_keys set = {};

	for (int run = 0; run < RUNS; run++) {
		fill(&set, array, below(KEYS_MAX));
		pending_keys_close(&set);
		for (size_t i = 0; i < array->count; i++)
			assert_null(pending_keys_touched(&set, &array->key[i]));
		array->count = 0;
	}
	free(array);
}

TEST(test_growth)
{
	struct rule_key key = key_of("10.0.0.0");
	struct pending_keys set = {};
	const __u64 first = key.key.word[0];

	assert_null(pending_keys_touched(&set, &key));
	for (size_t i = 0; i < 100000; i++) {
		key.key.word[0] = first + i;
		assert_null(pending_keys_touched(&set, &key));
		assert_int_equal(pending_keys_touch(&set, &key, false), 0);
		assert_int_equal(pending_keys_touch(&set, &key, false), 0);
		assert_int_equal(set.touched_count, i + 1);
	}
	for (size_t i = 0; i < 100000; i++) {
		key.key.word[0] = first + i;
		assert_non_null(pending_keys_touched(&set, &key));
		assert_int_equal(set.touched[i].key.key.word[0], first + i);
	}
	pending_keys_close(&set);
	assert_null(pending_keys_touched(&set, &key));
	pending_keys_close(&set);
}

/* Keys with the same words but different families are different, also where their places collide. */
TEST(test_families_are_apart)
{
	const struct rule rule = rule_of("proto 0");
	struct rule_key keys[RULE_KEYS_MAX], key;
	struct pending_keys set = {};

	assert_int_equal(rule_keys(&rule, keys), 2);
	assert_memory_equal(&keys[0].key, &keys[1].key, sizeof(keys[0].key));
	for (int run = 0; run < 10 * RUNS; run++) {
		for (int i = 0; i < 60; i++) {
			key = keys[0];
			key.key.word[0] = random_next(&random_state);
			assert_int_equal(pending_keys_touch(&set, &key, false), 0);
		}
		for (size_t i = 0; i < set.touched_count; i++) {
			key = set.touched[i].key;
			key.shape = keys[1].shape;
			assert_null(pending_keys_touched(&set, &key));
		}
		pending_keys_close(&set);
	}
}

TEST_MAIN(seed, NULL)
