// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The probed shape of each shape, while shapes come and go. */
#include "unit/shape_list_fixture.h"

TEST(test_up_to_8_shapes_are_probed_as_themselves)
{
	struct shape_list list = {};
	__u8 length;

	for (length = 17; length <= 24; length++)
		add(&list, drop4(length), 1);
	for (length = 17; length <= 24; length++)
		assert_int_equal(target_of(&list, drop4(length)).src_len, length);
	/* Another family and shapes without a prefix do not matter. */
	add(&list, source(FLOW_IPV6, RULE_DROP, 48), 1);
	assert_int_equal(target_of(&list, source(FLOW_IPV6, RULE_DROP, 48)).src_len, 48);
	assert_sound(&list);
}

/* Order: shapes that pass, then those with most keys, then by shape. */
TEST(test_order_of_probed_shapes)
{
	static const struct {
		__u8 length;
		enum rule_action action;
		__u64 keys;
	} added[] = {
		{ 8, RULE_DROP, 10 },  { 16, RULE_DROP, 12 }, { 24, RULE_DROP, 1000 },
		{ 32, RULE_DROP, 20 }, { 8, RULE_PASS, 1 },   { 32, RULE_PASS, 3 },
	};
	static const unsigned int order[] = { 5, 4, 2, 3, 0, 1 };
	struct rule_shape targets[ABI_SHAPES_MAX];
	struct shape_list list = {};

	for (size_t i = 0; i < 6; i++)
		add(&list, source(FLOW_IPV4, added[i].action, added[i].length), added[i].keys);
	assert_int_equal(shape_list_probed(&list, FLOW_IPV4, targets), 6);
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(targets[i].src_len, added[order[i]].length);
		assert_int_equal(targets[i].action, added[order[i]].action);
	}
}

/* /16 is 1 bit shorter than /17. /10 is 7 bits shorter, which is too much. /32 is longer than all. */
TEST(test_further_shapes_join_the_nearest)
{
	struct shape_list list = {};

	for (__u8 length = 17; length <= 24; length++)
		add(&list, drop4(length), 1);
	add(&list, drop4(16), 5);
	assert_int_equal(target_of(&list, drop4(16)).src_len, 17);
	add(&list, drop4(17 - SHAPE_LIST_JOIN_BITS), 1);
	assert_int_equal(target_of(&list, drop4(17 - SHAPE_LIST_JOIN_BITS)).src_len, 17);
	add(&list, drop4(17 - SHAPE_LIST_JOIN_BITS - 1), 1);
	assert_int_equal(target_of(&list, drop4(10)).src_len, 10);
	add(&list, drop4(32), 1);
	assert_int_equal(target_of(&list, drop4(32)).src_len, 32);
	/* A pass rule and a rule with a port cannot share a key with these. */
	add(&list, source(FLOW_IPV4, RULE_PASS, 16), 1);
	assert_int_equal(target_of(&list, source(FLOW_IPV4, RULE_PASS, 16)).src_len, 16);
	add(&list, (struct rule_shape){ .fields = RULE_DPORT, .src_len = 16 }, 1);
	assert_int_equal(count_targets(&list, FLOW_IPV4), 12);
	assert_int_equal(shape_list_keys(&list), 8 + 5 * 2 + 64 + 4);
	assert_sound(&list);
}

TEST(test_the_last_key_takes_the_shape_with_it)
{
	const struct rule_shape shape = drop4(24), other = drop4(16);
	struct shape_list list = {};

	assert_int_equal(shape_list_remove(&list, &shape), -ENOENT);
	add(&list, shape, 1);
	add(&list, other, 1);
	add(&list, shape, 2);
	assert_int_equal(shape_list_find(&list, &shape)->keys, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(shape_list_remove(&list, &shape), 0);
	assert_int_equal(shape_list_remove(&list, &shape), -ENOENT);
	assert_null(shape_list_find(&list, &shape));
	assert_int_equal(list.count, 1);
	assert_int_equal(shape_list_remove(&list, &other), 0);
	assert_int_equal(list.count, 0);
	assert_int_equal(shape_list_keys(&list), 0);
}

/*
 * A probed shape stays while another shape is expanded to it, even when its own rules go. They may come
 * back.
 */
TEST(test_a_probed_shape_outlives_the_shape_it_was_made_for)
{
	const struct rule_shape target = drop4(17);
	struct shape_list list = {};

	for (__u8 length = 17; length <= 24; length++)
		add(&list, drop4(length), 1);
	add(&list, drop4(16), 1);
	assert_true(shape_list_find(&list, &target)->is_shared);
	assert_int_equal(shape_list_remove(&list, &target), 0);
	assert_int_equal(target_of(&list, drop4(16)).src_len, 17);
	assert_int_equal(count_targets(&list, FLOW_IPV4), 8);
	assert_sound(&list);
	add(&list, target, 1);
	assert_int_equal(target_of(&list, target).src_len, 17);
	assert_int_equal(count_targets(&list, FLOW_IPV4), 8);
	assert_sound(&list);
}

/* Shape number n; none of them expands to another. */
static struct rule_shape unlike(enum flow_family family, unsigned int n, __u8 length)
{
	const bool has_src = n / (RULE_ACTIONS * 8) != 1, has_dst = n >= RULE_ACTIONS * 8;

	return (struct rule_shape){ .family = family,
				    .action = n / 8 % RULE_ACTIONS,
				    .fields = n % 8,
				    .src_len = has_src ? length : 0,
				    .dst_len = has_dst ? length : 0 };
}

TEST(test_65_shapes_that_cannot_join_are_refused)
{
	struct shape_list list = {}, before;
	struct rule_shape more = { .family = FLOW_IPV4, .fields = RULE_DPORT };

	for (unsigned int n = 0; n < ABI_SHAPES_MAX; n++)
		add(&list, unlike(FLOW_IPV4, n, 32), 1);
	before = list;
	assert_int_equal(shape_list_add(&list, &more, 1), -E2BIG);
	assert_unchanged(&list, &before);
	more.family = FLOW_IPV6;
	assert_int_equal(shape_list_add(&list, &more, 1), 0);
	more = unlike(FLOW_IPV4, 7, 32);
	assert_int_equal(shape_list_add(&list, &more, 1), 0);
	assert_int_equal(shape_list_plan(&list), 0);
	assert_int_equal(count_targets(&list, FLOW_IPV4), ABI_SHAPES_MAX);
	assert_sound(&list);
}

/* Lengths of a kind join where nothing else is left, but not if that makes too many keys. */
TEST(test_lengths_far_apart_join_when_they_must)
{
	const struct rule_shape too_far = unlike(FLOW_IPV4, 5, 32 - SHAPE_LIST_EXPAND_BITS - 1);
	struct shape_list list = {}, before;

	for (unsigned int n = 0; n < ABI_SHAPES_MAX; n++)
		add(&list, unlike(FLOW_IPV4, n, 32), 1);
	before = list;
	assert_int_equal(shape_list_add(&list, &too_far, 1), -E2BIG);
	assert_unchanged(&list, &before);
	add(&list, unlike(FLOW_IPV4, 5, 32 - SHAPE_LIST_EXPAND_BITS), 3);
	assert_true(list.must_plan);
	assert_int_equal(shape_list_plan(&list), 0);
	assert_false(list.must_plan);
	assert_int_equal(shape_list_keys(&list), ABI_SHAPES_MAX + (3 << SHAPE_LIST_EXPAND_BITS));
	assert_sound(&list);
}

/* A stored entry is restored as it was; an impossible one is refused. */
TEST(test_restore)
{
	struct shape_list_entry entry = { drop4(16), drop4(20), false, 3 };
	struct shape_list list = {};

	assert_int_equal(shape_list_restore(&list, &entry), 0);
	assert_int_equal(shape_list_restore(&list, &entry), -EBADMSG);
	assert_int_equal(target_of(&list, drop4(16)).src_len, 20);
	assert_int_equal(shape_list_keys(&list), 3 * 16);
	entry = (struct shape_list_entry){ drop4(17), drop4(16), false, 1 };
	assert_int_equal(shape_list_restore(&list, &entry), -EBADMSG);
	assert_sound(&list);
}

TEST_MAIN(NULL, NULL)
