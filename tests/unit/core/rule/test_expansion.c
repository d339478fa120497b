// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Prefix expansion: the keys that one key expands to match the same flows as that key. Each flow matches
 * exactly one of them, and each leads back to the first key.
 */
#include "unit/test.h"
#include "bench/random.h"
#include "rule/rule.h"

#define RUNS 400
#define WHOLE_BITS 10 /* of up to 2^10 keys all are checked; of more, some */
#define FLOWS 40

static bool is_equal(const struct rule_key *a, const struct rule_key *b)
{
	return !memcmp(&a->shape, &b->shape, sizeof(a->shape)) && !memcmp(&a->key, &b->key, sizeof(a->key));
}

static void assert_equal(const struct rule_key *a, const struct rule_key *b)
{
	assert_memory_equal(&a->shape, &b->shape, sizeof(a->shape));
	assert_memory_equal(&a->key, &b->key, sizeof(a->key));
}

static unsigned int address_bits(enum flow_family family)
{
	return family == FLOW_IPV4 ? 32 : 128;
}

static void draw_address(union flow_addr *address, enum flow_family family, uint64_t *random)
{
	address->word[0] = random_next(random);
	address->word[1] = random_next(random);
	if (family == FLOW_IPV4)
		*address = rule_ipv4_address(address->v4);
}

static struct flow draw_flow(enum flow_family family, uint64_t *random)
{
	struct flow flow = { .family = family,
			     .sport = random_next(random),
			     .dport = random_next(random),
			     .proto = random_below(random, 2) ? 6 : 17,
			     .port_kind = FLOW_PORTS };

	draw_address(&flow.src, family, random);
	draw_address(&flow.dst, family, random);
	return flow;
}

/* The key by which the packet path looks a flow up in a shape. */
static struct rule_key key_of_flow(const struct flow *flow, const struct rule_shape *shape)
{
	struct rule_key key = { .shape = *shape };
	struct abi_shape compiled;

	rule_shape_compile(shape, &compiled);
	flow_pack(flow, &key.key);
	for (unsigned int i = 0; i < FLOW_KEY_WORDS_MAX; i++)
		key.key.word[i] &= compiled.mask[i];
	key.key.word[flow_key_last(shape->family)] |= compiled.id;
	return key;
}

static struct rule_shape draw_shape(uint64_t *random)
{
	struct rule_shape shape = { .family = random_below(random, 2),
				    .action = random_below(random, 2),
				    .fields = random_below(random, RULE_DPORT << 1) };
	const unsigned int bits = address_bits(shape.family);

	/* Mostly one of the two; an empty shape is a shape, too. */
	if (random_below(random, 4))
		shape.src_len = random_below(random, bits + 1);
	if (random_below(random, 2))
		shape.dst_len = random_below(random, bits + 1);
	return shape;
}

/* Another shape that the first one expands to, by a few bits or by many. */
static struct rule_shape draw_target(const struct rule_shape *shape, uint64_t *random)
{
	const unsigned int most = random_below(random, 4) ? WHOLE_BITS / 2 : 128;
	const unsigned int bits = address_bits(shape->family);
	struct rule_shape to = *shape;

	if (to.src_len)
		to.src_len += random_below(random, 1 + (bits - to.src_len < most ? bits - to.src_len : most));
	if (to.dst_len)
		to.dst_len += random_below(random, 1 + (bits - to.dst_len < most ? bits - to.dst_len : most));
	return to;
}

/* Flips one bit of the address. */
static void change_bit(union flow_addr *address, unsigned int bit)
{
	address->byte[bit / 8] ^= 0x80 >> bit % 8;
}

/* Flows of the key: each matches exactly one of the keys that it expands to. */
static void assert_covers(const struct rule_key *expanded, __u64 count, const struct rule_shape *to,
			  const struct flow *flow)
{
	const struct rule_key wanted = key_of_flow(flow, to);
	__u64 met = 0;

	for (__u64 i = 0; i < count; i++)
		met += is_equal(&expanded[i], &wanted);
	assert_int_equal(met, 1);
}

/* A flow that equals `flow` in the bits of the shape, and is random elsewhere. */
static struct flow draw_like(const struct flow *flow, const struct rule_shape *shape, uint64_t *random)
{
	struct flow like = draw_flow(shape->family, random);
	const union flow_addr src = rule_network(&flow->src, shape->src_len);
	const union flow_addr dst = rule_network(&flow->dst, shape->dst_len);

	for (unsigned int i = 0; i < 2; i++) {
		like.src.word[i] ^= rule_network(&like.src, shape->src_len).word[i] ^ src.word[i];
		like.dst.word[i] ^= rule_network(&like.dst, shape->dst_len).word[i] ^ dst.word[i];
	}
	if (shape->fields & RULE_PROTO)
		like.proto = flow->proto;
	if (shape->fields & RULE_SPORT)
		like.sport = flow->sport;
	if (shape->fields & RULE_DPORT)
		like.dport = flow->dport;
	return like;
}

/* A flow that differs in one bit of the shape's prefixes; false: the shape has no prefix. */
static bool draw_unlike(const struct flow *flow, const struct rule_shape *shape, uint64_t *random, struct flow *unlike)
{
	const unsigned int bits = shape->src_len + shape->dst_len;
	const unsigned int bit = bits ? random_below(random, bits) : 0;

	*unlike = draw_like(flow, shape, random);
	if (bit < shape->src_len)
		change_bit(&unlike->src, bit);
	else if (bits)
		change_bit(&unlike->dst, bit - shape->src_len);
	return bits;
}

static void assert_whole_expansion(const struct flow *flow, const struct rule_key *key, const struct rule_shape *to,
				   uint64_t *random)
{
	static struct rule_key expanded[1 << WHOLE_BITS];
	const __u64 count = 1ULL << rule_expansion_bits(&key->shape, to);

	for (__u64 i = 0; i < count; i++)
		expanded[i] = rule_expand(key, to, i);
	for (int i = 0; i < FLOWS; i++) {
		struct flow like = draw_like(flow, &key->shape, random), unlike;
		struct rule_key other;

		assert_covers(expanded, count, to, &like);
		if (!draw_unlike(flow, &key->shape, random, &unlike))
			continue;
		other = key_of_flow(&unlike, to);
		for (__u64 k = 0; k < count; k++)
			assert_false(is_equal(&expanded[k], &other));
	}
}

/* The key of `to`, which expands to the shape of `key`, that covers all flows of `key`. */
static struct rule_key shortened(const struct rule_key *key, const struct rule_shape *to)
{
	struct rule rule = rule_of_key(key);
	struct rule_key keys[RULE_KEYS_MAX];

	rule.src_len = to->src_len;
	rule.dst_len = to->dst_len;
	rule.src = rule_network(&rule.src, to->src_len);
	rule.dst = rule_network(&rule.dst, to->dst_len);
	assert_int_equal(rule_keys(&rule, keys), 1);
	return keys[0];
}

/* Key number `i` is a key of the wider shape, leads back, and differs from all other keys. */
static void assert_one(const struct rule_key *key, const struct rule_shape *to, __u64 i, __u64 other)
{
	const struct rule_key expanded = rule_expand(key, to, i), twin = rule_expand(key, to, other);
	const struct rule_key back = shortened(&expanded, &key->shape);

	assert_memory_equal(&expanded.shape, to, sizeof(*to));
	assert_equal(&back, key);
	assert_int_equal(is_equal(&expanded, &twin), i == other);
}

static void expand_random(uint64_t *random)
{
	const struct rule_shape shape = draw_shape(random), to = draw_target(&shape, random);
	const struct flow flow = draw_flow(shape.family, random);
	const struct rule_key key = key_of_flow(&flow, &shape);
	const unsigned int bits = rule_expansion_bits(&shape, &to);
	const __u64 last = bits < 64 ? (1ULL << bits) - 1 : ~0ULL;

	assert_true(rule_can_expand(&shape, &to));
	assert_int_equal(bits, to.src_len + to.dst_len - shape.src_len - shape.dst_len);
	for (int i = 0; i < FLOWS; i++)
		assert_one(&key, &to, random_next(random) & last, random_next(random) & last);
	assert_one(&key, &to, 0, last);
	assert_one(&key, &to, last, last);
	if (bits <= WHOLE_BITS)
		assert_whole_expansion(&flow, &key, &to, random);
}

TEST(test_expansions_cover_exactly)
{
	uint64_t random = seed_of_run();

	for (int run = 0; run < RUNS; run++)
		expand_random(&random);
}

/* Pairs of shapes, and whether the first expands to the second. */
static const struct {
	struct rule_shape from, to;
	bool can;
} pairs[] = {
	{ { .src_len = 16 }, { .src_len = 16 }, true },
	{ { .src_len = 16 }, { .src_len = 17 }, true },
	{ { .src_len = 1 }, { .src_len = 32 }, true },
	{ { .src_len = 17 }, { .src_len = 16 }, false },
	{ { .src_len = 16, .dst_len = 8 }, { .src_len = 20, .dst_len = 24 }, true },
	{ { .src_len = 16, .dst_len = 8 }, { .src_len = 20, .dst_len = 7 }, false },
	{ { .src_len = 16, .dst_len = 8 }, { .src_len = 15, .dst_len = 9 }, false },
	/* A rule without a prefix stays without one. */
	{ {}, {}, true },
	{ {}, { .src_len = 1 }, false },
	{ { .src_len = 16 }, { .src_len = 16, .dst_len = 1 }, false },
	{ { .dst_len = 16 }, { .dst_len = 17 }, true },
	{ { .dst_len = 16 }, { .src_len = 16 }, false },
	/* Other fields: not the same kind of rule. */
	{ { .src_len = 16 }, { .src_len = 17, .action = RULE_PASS }, false },
	{ { .src_len = 16, .fields = RULE_PROTO }, { .src_len = 17, .fields = RULE_PROTO }, true },
	{ { .src_len = 16, .fields = RULE_PROTO }, { .src_len = 17 }, false },
	{ { .src_len = 16 }, { .src_len = 17, .fields = RULE_DPORT }, false },
	{ { .src_len = 16 }, { .family = FLOW_IPV6, .src_len = 17 }, false },
	{ { .family = FLOW_IPV6, .src_len = 16 }, { .family = FLOW_IPV6, .src_len = 128 }, true },
};

TEST(test_what_can_expand)
{
	for (size_t i = 0; i < COUNT(pairs); i++)
		assert_int_equal(rule_can_expand(&pairs[i].from, &pairs[i].to), pairs[i].can);
}

/* A rule, its keys, and the rules of these keys are the same, except for a family that had to be chosen. */
TEST(test_keys_lead_back_to_rules)
{
	uint64_t random = seed_of_run();

	for (int run = 0; run < RUNS; run++) {
		const struct rule_shape shape = draw_shape(&random);
		const struct flow flow = draw_flow(shape.family, &random);
		const struct rule_key key = key_of_flow(&flow, &shape);
		const struct rule rule = rule_of_key(&key);
		struct rule_key keys[RULE_KEYS_MAX];

		assert_int_equal(rule_keys(&rule, keys), 1);
		assert_equal(&keys[0], &key);
	}
}

/* Two halves of 10.0.0.0/8, as text. */
TEST(test_as_text)
{
	const struct rule_shape to = { .src_len = 9 };
	struct reason reason;
	struct rule rule, half;
	struct rule_key key[RULE_KEYS_MAX], expanded;
	char text[RULE_TEXT_BYTES];

	assert_int_equal(rule_parse("10.0.0.0/8", &rule, &reason), 0);
	assert_int_equal(rule_keys(&rule, key), 1);
	expanded = rule_expand(&key[0], &to, 0);
	half = rule_of_key(&expanded);
	assert_string_equal(rule_format(&half, text), "src 10.0.0.0/9");
	expanded = rule_expand(&key[0], &to, 1);
	half = rule_of_key(&expanded);
	assert_string_equal(rule_format(&half, text), "src 10.128.0.0/9");
}

/* Blocks of ports and of lengths expand as prefixes do. */
TEST(test_blocks_as_text)
{
	char text[RULE_TEXT_BYTES], expected[RULE_TEXT_BYTES];
	struct rule_key key[RULE_KEYS_MAX], expanded;
	struct rule_shape to;
	struct reason reason;
	struct rule rule, part;

	assert_int_equal(rule_parse("10.0.0.1 proto udp sport 4096/8 dport 256/12 length 1024/12", &rule, &reason), 0);
	assert_int_equal(rule_keys(&rule, key), 1);
	to = key->shape;
	to.details.sport_free = 4;
	to.details.dport_free = 0;
	to.details.length_bits = 16;
	assert_true(rule_can_expand(&key->shape, &to));
	assert_int_equal(rule_expansion_bits(&key->shape, &to), 12);
	assert_int_equal(rule_expansion_bits(&to, &to), 0);
	for (unsigned int i = 0; i < 1 << 12; i++) {
		expanded = rule_expand(key, &to, i);
		part = rule_of_key(&expanded);
		snprintf(expected, sizeof(expected), "proto udp src 10.0.0.1 sport %u/12 dport %u length %u",
			 4096 + 16 * (i & 15), 256 + (i >> 4 & 15), 1024 + (i >> 8));
		assert_string_equal(rule_format(&part, text), expected);
	}
}

TEST_MAIN(NULL, NULL)
