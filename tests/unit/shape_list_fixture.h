/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lists of shapes, and a check that every list must pass. */
#ifndef XDP_CUCKOO_TEST_SHAPE_LIST_FIXTURE_H
#define XDP_CUCKOO_TEST_SHAPE_LIST_FIXTURE_H

#include "bench/random.h"
#include "rule/shapes.h"
#include "unit/test.h"

static inline struct rule_shape source(enum flow_family family, enum rule_action action, __u8 length)
{
	return (struct rule_shape){ .family = family, .action = action, .src_len = length };
}

static inline struct rule_shape drop4(__u8 length)
{
	return source(FLOW_IPV4, RULE_DROP, length);
}

static inline void add(struct shape_list *list, struct rule_shape shape, __u64 keys)
{
	assert_int_equal(shape_list_add(list, &shape, keys), 0);
}

static inline struct rule_shape target_of(const struct shape_list *list, struct rule_shape shape)
{
	const struct shape_list_entry *entry = shape_list_find(list, &shape);

	assert_non_null(entry);
	return entry->probed_as;
}

static inline bool is_equal(const struct rule_shape *a, const struct rule_shape *b)
{
	return a->family == b->family && a->action == b->action && a->fields == b->fields && a->src_len == b->src_len &&
	       a->dst_len == b->dst_len;
}

/* Whether another entry is probed as the same shape, or rules of two families share a key of this shape. */
static inline bool is_shared(const struct shape_list *list, const struct shape_list_entry *entry)
{
	for (size_t i = 0; i < list->count; i++)
		if (&list->entry[i] != entry && is_equal(&list->entry[i].probed_as, &entry->probed_as))
			return true;
	return !entry->shape.src_len && !entry->shape.dst_len;
}

static inline size_t count_targets(const struct shape_list *list, enum flow_family family)
{
	struct rule_shape targets[ABI_SHAPES_MAX];

	return shape_list_probed(list, family, targets);
}

/* The probed shapes: shapes that pass come first, each appears once, and each entry's probed shape is among them. */
static inline void assert_targets(const struct shape_list *list, enum flow_family family)
{
	struct rule_shape targets[ABI_SHAPES_MAX];
	const size_t count = shape_list_probed(list, family, targets);
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		assert_int_equal(targets[i].family, family);
		if (i)
			assert_true(rule_rank(targets[i].action, targets[i].fields) >=
				    rule_rank(targets[i - 1].action, targets[i - 1].fields));
		for (size_t k = 0; k < i; k++)
			assert_false(is_equal(&targets[i], &targets[k]));
	}
	for (size_t i = 0; i < list->count; i++)
		for (size_t k = 0; k < count; k++)
			used += is_equal(&list->entry[i].probed_as, &targets[k]);
	for (size_t i = 0; i < list->count; i++)
		used -= list->entry[i].shape.family == family;
	assert_int_equal(used, 0);
}

static inline void assert_sound(const struct shape_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct shape_list_entry *entry = &list->entry[i];

		assert_true(entry->keys > 0);
		assert_true(rule_can_expand(&entry->shape, &entry->probed_as));
		assert_int_equal(entry->is_shared, is_shared(list, entry));
		assert_ptr_equal(shape_list_find(list, &entry->shape), entry);
		if (i)
			assert_true(rule_rank(entry->shape.action, entry->shape.fields) >=
				    rule_rank(entry[-1].shape.action, entry[-1].shape.fields));
	}
	if (list->must_plan)
		return;
	assert_targets(list, FLOW_IPV4);
	assert_targets(list, FLOW_IPV6);
}

static inline void assert_unchanged(const struct shape_list *list, const struct shape_list *before)
{
	assert_int_equal(list->count, before->count);
	assert_memory_equal(list->entry, before->entry, list->count * sizeof(list->entry[0]));
}

#endif
