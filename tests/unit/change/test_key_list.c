// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A list returns the keys that were added, for every shape. */
#include "change/key_list.h"
#include "unit/store_fixture.h"

#define COPIES 500 /* of each, with other addresses: the list grows several times on the way */

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

#define TEXTS COUNT(texts)

static struct rule_key keys[2 * TEXTS * COPIES];
static size_t keys_count;

static void make_keys(void)
{
	struct rule_key own[RULE_KEYS_MAX];

	keys_count = 0;
	for (size_t i = 0; i < TEXTS * COPIES; i++) {
		const struct rule rule = rule_of(texts[i % TEXTS]);
		const size_t count = rule_keys(&rule, own);

		for (size_t k = 0; k < count; k++) {
			own[k].key.word[0] ^= i / TEXTS << 8;
			keys[keys_count++] = own[k];
		}
	}
}

struct reading {
	size_t at[FLOW_FAMILIES], seen;
};

/* Keys of a family come in order. The timeout of each key is its index - 5. */
static int check(const struct rule_key *key, __s64 timeout_ms, void *context)
{
	struct reading *reading = context;
	size_t *at = &reading->at[key->shape.family];

	while (keys[*at].shape.family != key->shape.family)
		++*at;
	assert_int_equal(timeout_ms, (__s64)*at - 5);
	assert_memory_equal(&key->shape, &keys[*at].shape, sizeof(key->shape));
	assert_memory_equal(&key->key, &keys[*at].key, sizeof(key->key));
	++*at;
	reading->seen++;
	return 0;
}

TEST(test_what_goes_in_comes_out)
{
	struct key_list list = {};
	struct reading reading = {};

	make_keys();
	for (size_t i = 0; i < keys_count; i++)
		assert_int_equal(key_list_add(&list, &keys[i], (__s64)i - 5), 0);
	assert_int_equal(list.count, keys_count);
	assert_int_equal(key_list_each(&list, check, &reading), 0);
	assert_int_equal(reading.seen, keys_count);
	key_list_close(&list);
	assert_int_equal(list.count, 0);
	key_list_close(&list);
}

static int stop_at_third(const struct rule_key *key, __s64 timeout_ms, void *context)
{
	(void)key;
	(void)timeout_ms;
	return ++*(int *)context == 3 ? -EAGAIN : 0;
}

TEST(test_a_visitor_ends_it)
{
	struct key_list list = {};
	int visits = 0;

	assert_int_equal(key_list_each(&list, stop_at_third, &visits), 0);
	for (size_t i = 0; i < 10; i++)
		assert_int_equal(key_list_add(&list, &keys[i], 0), 0);
	assert_int_equal(key_list_each(&list, stop_at_third, &visits), -EAGAIN);
	assert_int_equal(visits, 3);
	key_list_close(&list);
}

TEST_MAIN(NULL, NULL)
