// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Hints: each flow that a key can match has the key's bit; few other bits are set; which bit a shape gets;
 * shortcuts.
 */
#include "unit/test.h"
#include "hint.h"
#include "filter/hints.h"
#include "bench/random.h"

#define RULES 20000
#define FLOWS 32  /* for each rule, that it matches */
#define FINEST 13 /* shift; with ABI_HINT_SHIFT_LEAST the tests would take minutes */

struct fixture {
	uint64_t seed;
	struct hints hints;
};

static int open_hints(void **state)
{
	static struct fixture fixture;

	fixture = (struct fixture){ .seed = seed_of_run() };
	fixture.hints.byte = calloc(ABI_HINTS(FINEST), sizeof(*fixture.hints.byte));
	*state = &fixture;
	return fixture.hints.byte ? 0 : -1;
}

static int close_hints(void **state)
{
	struct fixture *f = *state;

	free(f->hints.byte);
	return 0;
}

/* Runs with few indexes and with many. */
#define HINT_TEST(name) \
	static void name##_with(struct fixture *f, __attribute__((unused)) __u32 shift); \
	TEST_WITH(name, struct fixture *f, NULL, NULL) \
	{ \
		for (f->hints.shift = ABI_HINT_SHIFT_MOST; f->hints.shift >= FINEST; f->hints.shift -= 3) \
			name##_with(f, f->hints.shift); \
	} \
	static void name##_with(struct fixture *f, __attribute__((unused)) __u32 shift)

static void clear(const struct fixture *f)
{
	memset(f->hints.byte, 0, ABI_HINTS(f->hints.shift));
}

static union flow_addr random_address(struct fixture *f)
{
	union flow_addr address;

	address.word[0] = random_next(&f->seed);
	address.word[1] = random_next(&f->seed);
	return address;
}

/* An address with the prefix of one address and the rest of the other. */
static union flow_addr combine(const union flow_addr *prefix, unsigned int length, const union flow_addr *rest)
{
	const union flow_addr network = rule_network(rest, length);
	union flow_addr address = *rest;

	for (size_t i = 0; i < sizeof(address.word) / sizeof(address.word[0]); i++)
		address.word[i] ^= network.word[i] ^ prefix->word[i];
	return address;
}

static struct rule_key random_key(struct fixture *f, enum flow_family family, unsigned int src_len)
{
	const union flow_addr src = random_address(f), dst = random_address(f);
	struct rule rule = { .family = family,
			     .src_len = src_len,
			     .dst_len = 8,
			     .src = rule_network(&src, src_len),
			     .dst = rule_network(&dst, 8) };
	struct rule_key keys[RULE_KEYS_MAX];

	assert_int_equal(rule_keys(&rule, keys), 1);
	return keys[0];
}

/* A flow that the key matches, with random bits after the source prefix. */
static struct flow_key random_flow(struct fixture *f, const struct rule_key *key)
{
	const struct rule rule = rule_of_key(key);
	const union flow_addr any = random_address(f);
	struct flow flow = { .src = combine(&rule.src, rule.src_len, &any),
			     .dst = rule.dst,
			     .family = key->shape.family };
	struct flow_key packed = {};

	flow_pack(&flow, &packed);
	return packed;
}

/* Compares as the packet path does: see shape_key() in bpf/try_shapes.h. */
static bool can_match(const struct rule_key *key, const struct flow_key *flow)
{
	const unsigned int last = flow_key_last(key->shape.family);
	struct abi_shape shape;
	bool is_equal = true;

	rule_shape_compile(&key->shape, &shape);
	for (unsigned int i = 0; i <= last; i++)
		is_equal &= ((flow->word[i] & shape.mask[i]) | (i == last ? shape.id : 0)) == key->key.word[i];
	return is_equal;
}

static __u32 hint_of(const struct fixture *f, enum flow_family family, const struct flow_key *flow)
{
	const __u32 index = hint_index(family, hint_head(family, flow), f->hints.shift);

	assert_true(index < ABI_HINT_INDEXES(f->hints.shift));
	return f->hints.byte[family * ABI_HINT_INDEXES(f->hints.shift) + index];
}

static size_t bits_set(const struct fixture *f)
{
	size_t bits = 0;

	for (size_t i = 0; i < ABI_HINTS(f->hints.shift); i++)
		bits += __builtin_popcount(f->hints.byte[i]);
	return bits;
}

/* Rules with source prefixes of every length, each with one of the bits, all in the same hints. */
HINT_TEST(test_no_match_lacks_its_hint)
{
	clear(f);
	for (unsigned int i = 0; i < RULES; i++) {
		const enum flow_family family = i % FLOW_FAMILIES;
		const unsigned int bits = family == FLOW_IPV4 ? 32 : 128;
		/* Short prefixes set many bits, so they are rare here; else soon all bits were set. */
		const unsigned int least = random_below(&f->seed, 1000) ? bits / 2 : 1;
		const struct rule_key key = random_key(f, family, least + random_below(&f->seed, bits - least + 1));
		const __u64 hint = 1ULL << i % ABI_HINT_BITS;

		hints_mark(f->hints, &key, hint);
		for (unsigned int n = 0; n < FLOWS; n++) {
			const struct flow_key flow = random_flow(f, &key);

			assert_true(can_match(&key, &flow));
			assert_true(hint_of(f, family, &flow) & hint);
		}
		assert_true(hints_allow(f->hints, &key, hint));
	}
}

/* One rule of each length: every matching flow has the bit, and no bit is set without need. */
HINT_TEST(test_as_few_as_can_be)
{
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		const unsigned int bits = family == FLOW_IPV4 ? 32 - shift : HINT_IPV6_BITS;

		for (unsigned int length = 0; length <= (family == FLOW_IPV4 ? 32 : 128); length++) {
			const unsigned int free = length < bits ? bits - length : 0;
			const bool is_everywhere = !length || (family == FLOW_IPV6 && free > 16);
			const size_t most = is_everywhere ? ABI_HINT_INDEXES(shift) : 1U << free;
			const struct rule_key key = random_key(f, family, length);

			clear(f);
			hints_mark(f->hints, &key, 1 << 3);
			assert_in_range(bits_set(f), 1, most);
			for (unsigned int n = 0; n < 1000; n++) {
				const struct flow_key flow = random_flow(f, &key);

				assert_int_equal(hint_of(f, family, &flow), 1 << 3);
			}
			if (family == FLOW_IPV4 || !free)
				assert_int_equal(bits_set(f), most);
		}
	}
}

/* The IPv6 networks of one provider have the same first 16 bits, but few of them share an index. */
HINT_TEST(test_ipv6_networks_spread)
{
	enum { NETWORKS = 8192 };

	clear(f);
	for (unsigned int i = 0; i < NETWORKS; i++) {
		struct rule_key key = random_key(f, FLOW_IPV6, 32);
		const __u8 head[4] = { 0x20, 0x01, i >> 8, i };

		memcpy(key.key.word, head, sizeof(head));
		hints_mark(f->hints, &key, 1);
	}
	assert_in_range(bits_set(f), NETWORKS * 9 / 10, NETWORKS);
}

HINT_TEST(test_always_marks_nothing)
{
	const struct rule_key key = random_key(f, FLOW_IPV4, 0);

	clear(f);
	assert_true(hints_allow(f->hints, &key, ABI_HINT_ALWAYS));
	assert_false(hints_allow(f->hints, &key, 1));
	hints_mark(f->hints, &key, ABI_HINT_ALWAYS);
	assert_int_equal(bits_set(f), 0);
}

HINT_TEST(test_add_and_replace)
{
	__u8 *other = calloc(ABI_HINTS(shift), sizeof(*other));

	assert_non_null(other);
	clear(f);
	for (size_t i = 0; i < ABI_HINTS(f->hints.shift); i += 1 + random_below(&f->seed, 50)) {
		f->hints.byte[i] = random_next(&f->seed) & ABI_HINT_ALL;
		other[i / 2] = random_next(&f->seed) & ABI_HINT_ALL;
	}
	for (size_t i = 0; i < ABI_HINTS(f->hints.shift); i++)
		other[i] |= f->hints.byte[i] & 0xf;
	hints_add(f->hints, other);
	for (size_t i = 0; i < ABI_HINTS(f->hints.shift); i++)
		assert_int_equal(other[i] & ~f->hints.byte[i], 0);
	assert_memory_not_equal(f->hints.byte, other, ABI_HINTS(shift) * sizeof(*other));
	hints_replace(f->hints, other);
	assert_memory_equal(f->hints.byte, other, ABI_HINTS(shift) * sizeof(*other));
	free(other);
}

/* ---- the bit of a shape ---- */

static const struct {
	struct rule_shape shape;
	bool is_always;
} choices[] = {
	{ { .family = FLOW_IPV4, .fields = RULE_DPORT }, true },
	{ { .family = FLOW_IPV4, .dst_len = 32 }, true },
	{ { .family = FLOW_IPV4, .src_len = 1 }, false },
	{ { .family = FLOW_IPV4, .src_len = 32, .dst_len = 32 }, false },
	{ { .family = FLOW_IPV6, .dst_len = 128 }, true },
	{ { .family = FLOW_IPV6, .src_len = 15 }, true },
	{ { .family = FLOW_IPV6, .src_len = 16 }, false },
	{ { .family = FLOW_IPV6, .src_len = 128 }, false },
};

TEST(test_shapes_without_a_source_have_no_bit)
{
	for (size_t i = 0; i < COUNT(choices); i++)
		assert_int_equal(hints_choose(NULL, 0, &choices[i].shape), choices[i].is_always ? ABI_HINT_ALWAYS : 1);
}

/* The most shapes, some without a bit: no bit has two shapes more than another. */
TEST(test_bits_are_shared_evenly)
{
	unsigned int shapes[ABI_HINT_BITS] = {};
	__u64 taken[ABI_SHAPES_MAX];

	for (size_t i = 0; i < ABI_SHAPES_MAX; i++) {
		const struct rule_shape shape = { .family = FLOW_IPV4, .src_len = i % 5 ? i : 0 };

		taken[i] = hints_choose(taken, i, &shape);
		if (i % 5 == 0) {
			assert_int_equal(taken[i], ABI_HINT_ALWAYS);
			continue;
		}
		assert_int_equal(__builtin_popcountll(taken[i]), 1);
		assert_true(taken[i] < ABI_HINT_ALWAYS);
		shapes[__builtin_ctzll(taken[i])]++;
		for (unsigned int bit = 0; bit < ABI_HINT_BITS; bit++)
			assert_true(shapes[bit] + 1 >= shapes[__builtin_ctzll(taken[i])]);
	}
}

/* ---- lists of shapes, and whether hints pay ---- */

static struct abi_shape_list list_of(const __u64 *hint, size_t count, size_t passing)
{
	struct abi_shape_list list = { .count = count };

	for (size_t i = 0; i < count; i++) {
		struct abi_shape *shape = &list.shape[abi_shape_place(1ULL << i)];

		shape->hint = hint[i];
		shape->id = i < passing ? ABI_SHAPE_PASS : 0;
	}
	hints_compile(&list, FLOW_IPV4, false, 16);
	return list;
}

/* Every shape has a place of its own. Any set in which it is the lowest shape leads to that place. */
HINT_TEST(test_places)
{
	bool is_taken[ABI_SHAPES_MAX] = {};

	for (__u32 i = 0; i < ABI_SHAPES_MAX; i++) {
		const __u32 place = abi_shape_place(1ULL << i);

		assert_in_range(place, 0, ABI_SHAPES_MAX - 1);
		assert_false(is_taken[place]);
		is_taken[place] = true;
		assert_int_equal(abi_shape_place(random_next(&f->seed) << i | 1ULL << i), place);
	}
}

TEST(test_candidates)
{
	static const __u64 hint[] = { 1, ABI_HINT_ALWAYS, 2, 1, 64 };
	const struct abi_shape_list list = list_of(hint, 5, 3);

	assert_int_equal(list.passing, 7);
	assert_int_equal(list.candidates[0], 1 << 1);
	assert_int_equal(list.candidates[1], 1 << 0 | 1 << 1 | 1 << 3);
	assert_int_equal(list.candidates[2 | 64], 1 << 1 | 1 << 2 | 1 << 4);
	assert_int_equal(list.candidates[ABI_HINT_ALL], 31);
	assert_int_equal(hints_leave(&list, 1), 1 << 0 | 1 << 1 | 1 << 3);
	assert_int_equal(hints_leave(&list, 1 | ABI_HINT_SHORTCUT), 1 << 0 | 1 << 1);
}

HINT_TEST(test_mean_probes)
{
	static const __u64 hint[] = { 1, ABI_HINT_ALWAYS, 2, 1, 64 };
	const struct abi_shape_list list = list_of(hint, 5, 1);
	__u64 probes = 0;

	clear(f);
	assert_float_equal(hints_mean_probes(f->hints, &list, FLOW_IPV6), 1, 1e-9);
	for (size_t i = 0; i < ABI_HINT_INDEXES(shift); i++) {
		const __u32 byte = random_next(&f->seed) & ABI_HINT_ALL;
		const bool is_short = i % 3 == 0;

		f->hints.byte[FLOW_IPV6 * ABI_HINT_INDEXES(shift) + i] = byte | (is_short ? ABI_HINT_SHORTCUT : 0);
		probes += is_short ? byte & 1 : 1 + 2 * (byte & 1) + (byte >> 1 & 1) + (byte >> 6);
	}
	assert_float_equal(hints_mean_probes(f->hints, &list, FLOW_IPV6), (double)probes / ABI_HINT_INDEXES(shift),
			   shift == ABI_HINT_SHIFT_MOST ? 1e-9 : 0.05);
	assert_float_equal(hints_mean_probes(f->hints, &list, FLOW_IPV4), 1, 1e-9);
}

static void fill(const struct fixture *f, size_t count, __u8 hint)
{
	for (size_t i = 0; i < count; i++)
		f->hints.byte[i] = hint;
}

/* Hints that leave out one shape of four for some indexes, and lists of one or no shape. */
HINT_TEST(test_read_where_it_pays)
{
	static const __u64 hint[] = { ABI_HINT_ALWAYS, 1, 2, 4 };
	const struct abi_shape_list list = list_of(hint, 4, 0), one = list_of(&hint[1], 1, 0),
				    always = list_of(hint, 1, 0), none = list_of(hint, 0, 0);

	fill(f, ABI_HINT_INDEXES(shift), 7);
	assert_false(hints_pay(f->hints, &list, FLOW_IPV4));
	fill(f, ABI_HINT_INDEXES(shift) / 8, 3);
	assert_false(hints_pay(f->hints, &list, FLOW_IPV4));
	fill(f, ABI_HINT_INDEXES(shift) / 2, 3);
	assert_true(hints_pay(f->hints, &list, FLOW_IPV4));
	fill(f, ABI_HINT_INDEXES(shift), 0);
	assert_true(hints_pay(f->hints, &one, FLOW_IPV4));
	assert_false(hints_pay(f->hints, &always, FLOW_IPV4));
	assert_false(hints_pay(f->hints, &none, FLOW_IPV4));
	/* The shape that all packets look up is not looked up behind a shortcut. */
	fill(f, ABI_HINT_INDEXES(shift) / 2, ABI_HINT_SHORTCUT);
	assert_true(hints_pay(f->hints, &always, FLOW_IPV4));
}

/* ---- shortcuts ---- */

static struct rule_key source_key(struct fixture *f, unsigned int src_len)
{
	const struct rule_key with_destination = random_key(f, FLOW_IPV4, src_len);
	struct rule rule = rule_of_key(&with_destination);
	struct rule_key keys[RULE_KEYS_MAX];

	rule.dst_len = 0;
	rule.dst = (union flow_addr){};
	assert_int_equal(rule_keys(&rule, keys), 1);
	return keys[0];
}

static size_t count_shortcuts(const struct fixture *f)
{
	size_t count = 0;

	for (size_t i = 0; i < ABI_HINTS(f->hints.shift); i++)
		count += f->hints.byte[i] >= ABI_HINT_SHORTCUT;
	return count;
}

/*
 * Behind a shortcut only pass rules are looked up; where rules are counted, also rules that have shortcuts.
 */
TEST(test_behind_shortcuts)
{
	static const char *const rules[] = { "src 10.0.0.0/9 action pass", "src 10.0.0.0/16", "src 10.0.0.0/17",
					     "dport 53" };
	struct abi_shape_list list = { .count = 4 };

	for (size_t i = 0; i < 4; i++) {
		struct abi_shape *shape = &list.shape[abi_shape_place(1ULL << i)];
		struct rule_key keys[RULE_KEYS_MAX];
		struct reason reason;
		struct rule rule;

		assert_int_equal(rule_parse(rules[i], &rule, &reason), 0);
		rule_keys(&rule, keys);
		rule_shape_compile(&keys[0].shape, shape);
		shape->hint = ABI_HINT_ALWAYS;
	}
	hints_compile(&list, FLOW_IPV4, false, 16);
	assert_int_equal(hints_leave(&list, ABI_HINT_SHORTCUT), 1);
	hints_compile(&list, FLOW_IPV4, true, 16);
	assert_int_equal(hints_leave(&list, ABI_HINT_SHORTCUT), 1 | 2);
	assert_int_equal(hints_leave(&list, 0), 15);
	hints_compile(&list, FLOW_IPV4, true, 15);
	assert_int_equal(hints_leave(&list, ABI_HINT_SHORTCUT), 1 | 2 | 4);
}

TEST(test_which_shapes_have_shortcuts)
{
	static const struct {
		struct rule_shape shape;
		bool can_shorten;
	} shapes[] = {
		{ { .family = FLOW_IPV4, .src_len = 16 }, true },
		{ { .family = FLOW_IPV4, .src_len = 1 }, true },
		{ { .family = FLOW_IPV4, .src_len = 16, .fields = RULE_NEW }, true },
		{ { .family = FLOW_IPV4, .src_len = 16, .fields = RULE_NEW | RULE_PROTO }, false },
		{ { .family = FLOW_IPV4, .src_len = 17 }, false },
		{ { .family = FLOW_IPV4, .src_len = 0 }, false },
		{ { .family = FLOW_IPV4, .src_len = 8, .dst_len = 8 }, false },
		{ { .family = FLOW_IPV4, .src_len = 8, .fields = RULE_PROTO }, false },
		{ { .family = FLOW_IPV4, .src_len = 8, .action = RULE_PASS }, false },
		{ { .family = FLOW_IPV6, .src_len = 16 }, false },
	};

	for (size_t i = 0; i < COUNT(shapes); i++)
		assert_int_equal(hints_can_shorten(&shapes[i].shape, 16), shapes[i].can_shorten);
}

/* Exactly the flows of the key get shortcuts, and the lower bits do not change. */
HINT_TEST(test_shortcuts)
{
	for (unsigned int length = 1; length <= 32 - shift; length++) {
		const struct rule_key key = source_key(f, length);

		for (size_t i = 0; i < ABI_HINTS(f->hints.shift); i++)
			f->hints.byte[i] = i & ABI_HINT_ALL;
		for (int again = 0; again < 2; again++) {
			hints_set_shortcuts(f->hints, &key);
			assert_int_equal(count_shortcuts(f), 1 << (32 - shift - length));
		}
		for (unsigned int n = 0; n < 1000; n++) {
			const struct flow_key flow = random_flow(f, &key);

			assert_true(hint_of(f, FLOW_IPV4, &flow) & ABI_HINT_SHORTCUT);
		}
		hints_clear_shortcuts(f->hints, &key);
		for (size_t i = 0; i < ABI_HINTS(f->hints.shift); i++)
			assert_int_equal(f->hints.byte[i], i & ABI_HINT_ALL);
		hints_set_shortcuts(f->hints, &key);
		hints_clear_all_shortcuts(f->hints);
		for (size_t i = 0; i < ABI_HINTS(f->hints.shift); i++)
			assert_int_equal(f->hints.byte[i], i & ABI_HINT_ALL);
	}
}

TEST_MAIN(open_hints, close_hints)
