// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Plans of the shapes that are probed: the limits that they keep, and how close to the best plan they come.
 */
#include "unit/shape_list_fixture.h"

#include <math.h>

#define RUNS 300
#define WORSE_THAN_BEST 3 /* most keys of a plan, in times of the best; 45,000 random lists showed up to 2.12 */

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

/*
 * The fewest keys of any choice of at most `most` of the lengths 1 to 32, where keys[length] keys have that
 * length. By dynamic programming; the longest length is always probed.
 */
static double fewest_keys(const __u64 keys[33], unsigned int most)
{
	double best[33][33]; /* keys of all lengths up to this one, if it is probed shape number n */
	double fewest = INFINITY;

	for (unsigned int n = 0; n <= most; n++)
		for (unsigned int to = 0; to <= 32; to++)
			best[n][to] = n || to ? INFINITY : 0;
	for (unsigned int n = 1; n <= most; n++)
		for (unsigned int to = 1; to <= 32; to++) {
			double added = 0;

			for (unsigned int from = to; from-- > 0;) {
				added += keys[from + 1] * (double)(1ULL << (to - from - 1));
				best[n][to] = smaller(best[n][to], best[n - 1][from] + added);
			}
		}
	for (unsigned int n = 0; n <= most; n++)
		fewest = smaller(fewest, best[n][32]);
	/* Without a /32, a shorter length may be the last. */
	for (unsigned int to = 32; to-- > 0 && !keys[to + 1];)
		for (unsigned int n = 0; n <= most; n++)
			fewest = smaller(fewest, best[n][to]);
	return fewest;
}

/* The best plan of 8 probed shapes for rules that pass and rules that drop. */
static double fewest_of_both(__u64 keys[][33])
{
	double fewest = INFINITY;

	for (unsigned int n = 0; n <= SHAPE_LIST_PROBES; n++)
		fewest = smaller(fewest,
				 fewest_keys(keys[RULE_PASS], n) + fewest_keys(keys[RULE_DROP], SHAPE_LIST_PROBES - n));
	return fewest;
}

/* Like real lists: few short prefixes, many long ones; each length is equally likely. */
static __u64 draw_keys(uint64_t *random, unsigned int length)
{
	const uint64_t most = 1 + (1ULL << (length > 8 ? (length - 8) * 2 / 3 : 0));

	return random_below(random, 4) ? 1 + random_below(random, most) : 0;
}

static void plan_random_list(uint64_t *random, bool has_pass, double *worst)
{
	__u64 keys[2][33] = {}, count = 0;
	struct shape_list list = {};
	double best;

	for (int action = RULE_DROP; action <= (has_pass ? RULE_PASS : RULE_DROP); action++)
		for (__u8 length = 1; length <= 32; length++) {
			struct rule_shape shape = source(FLOW_IPV4, action, length);
			const __u64 drawn = draw_keys(random, length);

			if (!drawn || shape_list_add(&list, &shape, drawn))
				continue;
			keys[action][length] = drawn;
			count += drawn;
		}
	assert_sound(&list);
	assert_int_equal(shape_list_plan(&list), 0);
	assert_sound(&list);
	best = fewest_of_both(keys);
	assert_true(shape_list_keys(&list) <= SHAPE_LIST_GROWTH * count + SHAPE_LIST_SPARE);
	if (count_targets(&list, FLOW_IPV4) > SHAPE_LIST_PROBES) {
		/* It must not stop early without a reason. */
		assert_true(best * WORSE_THAN_BEST > SHAPE_LIST_GROWTH * count + SHAPE_LIST_SPARE);
		return;
	}
	assert_true(shape_list_keys(&list) >= best);
	if (shape_list_keys(&list) > *worst * best)
		*worst = shape_list_keys(&list) / best;
}

TEST(test_plans_are_near_the_best)
{
	uint64_t random = seed_of_run();
	double worst = 1;

	for (int run = 0; run < RUNS; run++)
		plan_random_list(&random, run % 2, &worst);
	print_message("# the most keys beside the fewest possible: %.3f\n", worst);
	assert_true(worst < WORSE_THAN_BEST);
}

/* Numbers of networks of each length from 1 to 32 in real lists. */
static const struct {
	const char *name;
	__u64 keys[33];
	__u64 most; /* keys after planning */
} lists[] = {
	{ "firehol_level1",
	  { [3] = 1, [8] = 3, 1,   4,    2,    7,  4,  15, 21, 176, 25, 73, 136,
	    207,     389,     784, 1039, 1764, 26, 15, 12, 3,  3,   4,  16, 1926 },
	  8500 },
	{ "country_us",
	  { [7] = 2, 13,   16,   37,   71,   144,  263,  588,  1259, 2283, 1319, 1967, 2611,
	    3216,    3354, 4378, 4646, 6877, 1818, 2087, 2571, 2934, 2887, 532,  419,  732 },
	  92000 },
	{ "one of each",
	  { [1] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 },
	  200 },
};

TEST(test_lists_fit_into_8_probes)
{
	for (size_t i = 0; i < COUNT(lists); i++) {
		struct shape_list list = {};

		for (__u8 length = 1; length <= 32; length++)
			if (lists[i].keys[length])
				add(&list, drop4(length), lists[i].keys[length]);
		assert_int_equal(shape_list_plan(&list), 0);
		assert_sound(&list);
		assert_int_equal(count_targets(&list, FLOW_IPV4), SHAPE_LIST_PROBES);
		assert_in_range(shape_list_keys(&list), fewest_keys(lists[i].keys, SHAPE_LIST_PROBES), lists[i].most);
		assert_false(shape_list_plan_pays(&list));
	}
}

/*
 * Lists with a million networks of each length, one, or a random number. Because there are only 2^n
 * networks of n bits, SHAPE_LIST_PROBES probed shapes are always enough, with less than twice as many keys.
 */
TEST(test_any_ipv4_list_fits_into_8_probes)
{
	uint64_t random = seed_of_run();

	for (int run = 0; run < 10 * RUNS; run++) {
		struct shape_list list = {};
		__u64 count = 0;

		for (__u8 length = 1; length <= 32; length++) {
			const __u64 networks = 1ULL << length, most = 1ULL << random_below(&random, 21);
			const __u64 keys = run % 2 ? 1 + random_below(&random, most) : 1000000;

			add(&list, drop4(length), keys < networks ? keys : networks);
			count += keys < networks ? keys : networks;
		}
		assert_int_equal(shape_list_plan(&list), 0);
		assert_int_equal(count_targets(&list, FLOW_IPV4), SHAPE_LIST_PROBES);
		assert_true(shape_list_keys(&list) < 2 * count + SHAPE_LIST_SPARE);
	}
}

/* One shape in 5 has a destination, too. Both actions, both families, ports. Every plan must be valid. */
static struct rule_shape draw_shape(uint64_t *random)
{
	struct rule_shape shape = { .family = random_below(random, 2),
				    .action = random_below(random, 8) ? RULE_DROP : RULE_PASS };
	const unsigned int bits = shape.family == FLOW_IPV4 ? 32 : 128;

	shape.src_len = random_below(random, bits + 1);
	if (!random_below(random, 5))
		shape.dst_len = random_below(random, bits + 1);
	if (!random_below(random, 5))
		shape.fields = random_below(random, RULE_DPORT << 1);
	return shape;
}

static void plan_or_not(struct shape_list *list)
{
	const struct shape_list before = *list;

	if (shape_list_plan(list))
		assert_unchanged(list, &before);
}

static void come_and_go(struct shape_list *list, uint64_t *random)
{
	const struct shape_list before = *list;
	struct rule_shape shape = draw_shape(random);

	if (random_below(random, 3) && list->count) {
		shape = list->entry[random_below(random, list->count)].shape;
		assert_int_equal(shape_list_remove(list, &shape), 0);
	} else if (shape_list_add(list, &shape, 1 + random_below(random, 4))) {
		assert_unchanged(list, &before);
	}
	if (!random_below(random, 50))
		plan_or_not(list);
}

TEST(test_any_shapes_stay_sound)
{
	uint64_t random = seed_of_run();
	struct shape_list list = {};

	for (int i = 0; i < 20 * RUNS; i++) {
		come_and_go(&list, &random);
		assert_sound(&list);
	}
	while (list.count)
		assert_int_equal(shape_list_remove(&list, &list.entry[0].shape), 0);
}

/* Shapes of few kinds and neighbouring lengths, so that many join, and the list is full after far more than 32. */
static struct rule_shape draw_near(uint64_t *random, unsigned int kinds)
{
	const unsigned int kind = random_below(random, kinds), prefixes = kind % 3 + 1;
	struct rule_shape shape = { .family = FLOW_IPV6, .action = kind / 3 % RULE_ACTIONS, .fields = kind / 9 };

	shape.src_len = prefixes & 1 ? 1 + random_below(random, 128 >> random_below(random, 3)) : 0;
	shape.dst_len = prefixes & 2 ? 1 + random_below(random, 128 >> random_below(random, 5)) : 0;
	return shape;
}

static void shuffle(struct shape_list_entry *entries, size_t count, uint64_t *random)
{
	for (size_t i = count; i > 1; i--) {
		const size_t k = random_below(random, i);
		const struct shape_list_entry swapped = entries[i - 1];

		entries[i - 1] = entries[k];
		entries[k] = swapped;
	}
}

/* Also a part of them, also with other numbers of keys. */
static void assert_taken_in_any_order(const struct shape_list *list, uint64_t *random)
{
	struct shape_list shuffled = *list, other = {};

	shuffle(shuffled.entry, shuffled.count, random);
	if (random_below(random, 2))
		shuffled.count -= random_below(random, shuffled.count);
	for (size_t i = 0; i < shuffled.count; i++) {
		add(&other, shuffled.entry[i].shape, 1 + random_below(random, 1 << random_below(random, 20)));
		if (!random_below(random, 10))
			assert_int_equal(shape_list_plan(&other), 0);
	}
	assert_sound(&other);
	assert_int_equal(shape_list_plan(&other), 0);
	assert_sound(&other);
	assert_in_range(count_targets(&other, FLOW_IPV6), 1, ABI_SHAPES_MAX);
}

TEST(test_what_a_list_holds_is_taken_in_any_order)
{
	uint64_t random = seed_of_run();
	unsigned int refused = 0;

	for (int run = 0; run < RUNS / 6; run++) {
		const unsigned int kinds = 1 + random_below(&random, 40);
		struct shape_list list = {};

		for (int i = 0; i < 600; i++) {
			const struct rule_shape shape = draw_near(&random, kinds);

			refused += shape_list_add(&list, &shape, 1) != 0;
		}
		assert_taken_in_any_order(&list, &random);
	}
	assert_true(refused > 0);
}

/*
 * Prefixes that come one by one may take more keys than a plan. Where they take many more, a plan must pay.
 */
TEST(test_a_plan_pays)
{
	struct shape_list list = {};

	for (__u8 length = 17; length <= 24; length++)
		add(&list, drop4(length), 1);
	assert_false(shape_list_plan_pays(&list) || shape_list_is_expanded(&list));
	/* Each of these joins /17, with 64 keys for each of its keys. */
	add(&list, drop4(11), 3000);
	assert_true(shape_list_plan_pays(&list) && shape_list_is_expanded(&list));
	assert_int_equal(shape_list_plan(&list), 0);
	assert_true(shape_list_keys(&list) < 4000);
	assert_false(shape_list_is_expanded(&list));
	assert_int_equal(count_targets(&list, FLOW_IPV4), SHAPE_LIST_PROBES);
	/* The ninth probed shape. */
	add(&list, drop4(32), 1);
	assert_int_equal(count_targets(&list, FLOW_IPV4), SHAPE_LIST_PROBES + 1);
	assert_true(shape_list_plan_pays(&list));
}

/* With both prefixes, the band of lengths that suits the list is found. */
TEST(test_shapes_that_differ_in_one_prefix)
{
	for (int is_src = 0; is_src < 2; is_src++) {
		struct shape_list list = {};

		for (__u8 length = 1; length <= 128; length++)
			add(&list,
			    (struct rule_shape){ .family = FLOW_IPV6,
						 .src_len = is_src ? length : 64,
						 .dst_len = is_src ? 64 : length },
			    1);
		assert_int_equal(shape_list_plan(&list), 0);
		assert_sound(&list);
	}
}

/* Many rules are as many keys without any expansion. */
TEST(test_what_is_expanded)
{
	struct shape_list list = {};

	for (__u8 length = 31; length <= 32; length++)
		add(&list, drop4(length), SHAPE_LIST_SPARE);
	assert_false(shape_list_is_expanded(&list));
}

TEST_MAIN(NULL, NULL)
