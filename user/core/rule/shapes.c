// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rule/shapes.h"

#include <errno.h>
#include <string.h>

_Static_assert(sizeof(struct rule_shape) == 10, "shapes are compared as bytes: no padding");

unsigned int rule_rank(enum rule_action action, __u8 fields)
{
	if (action == RULE_DROP)
		return fields & RULE_RATE ? 2 : 1;
	return action == RULE_PASS ? 0 : RULE_RANKS - 1;
}

static int compare_ranks(const struct rule_shape *a, const struct rule_shape *b)
{
	return (int)rule_rank(a->action, a->fields) - (int)rule_rank(b->action, b->fields);
}

bool rule_shape_equal(const struct rule_shape *a, const struct rule_shape *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* The index of the shape, or the index where it belongs. */
static size_t shape_place(const struct shape_list *list, const struct rule_shape *shape)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		const size_t middle = (low + high) / 2;
		const struct rule_shape *at = &list->entry[middle].shape;
		const int order = compare_ranks(at, shape);

		if ((order ? order : memcmp(at, shape, sizeof(*at))) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool shape_is_at(const struct shape_list *list, size_t at, const struct rule_shape *shape)
{
	return at < list->count && rule_shape_equal(&list->entry[at].shape, shape);
}

const struct shape_list_entry *shape_list_find(const struct shape_list *list, const struct rule_shape *shape)
{
	const size_t at = shape_place(list, shape);

	return shape_is_at(list, at, shape) ? &list->entry[at] : NULL;
}

/* ---- probed shapes ---- */

/*
 * The number of keys counts as a power of two, so that small changes rarely change the order of look-ups. Shapes that are
 * equal in both keep the order of the list.
 */
size_t shape_list_probed(const struct shape_list *list, enum flow_family family, struct rule_shape *probed)
{
	struct rule_shape found[ABI_SHAPES_MAX];
	__u64 keys[ABI_SHAPES_MAX];
	size_t count = 0, at;

	for (size_t i = 0; i < list->count; i++) {
		const struct shape_list_entry *entry = &list->entry[i];

		if (entry->shape.family != family)
			continue;
		for (at = 0; at < count && !rule_shape_equal(&found[at], &entry->probed_as); at++)
			;
		if (at == ABI_SHAPES_MAX)
			continue;
		if (at == count)
			keys[count++] = 0;
		found[at] = entry->probed_as;
		keys[at] += entry->keys;
	}
	for (size_t i = 0; i < count; i++) {
		const __u64 own = keys[i];

		for (at = i; at; at--) {
			const int order = compare_ranks(&found[i], &probed[at - 1]);

			if (order ? order > 0 : __builtin_clzll(own) >= __builtin_clzll(keys[at - 1]))
				break;
			probed[at] = probed[at - 1];
			keys[at] = keys[at - 1];
		}
		probed[at] = found[i];
		keys[at] = own;
	}
	return count;
}

double rule_expansion_factor(const struct rule_shape *from, const struct rule_shape *to)
{
	const unsigned int bits = rule_expansion_bits(from, to);

	return bits < 63 ? 1ULL << bits : 0x1p63;
}

__u64 shape_list_keys(const struct shape_list *list)
{
	double keys = 0;

	for (size_t i = 0; i < list->count; i++)
		keys += list->entry[i].keys * rule_expansion_factor(&list->entry[i].shape, &list->entry[i].probed_as);
	return keys < 0x1p62 ? keys : 1ULL << 62;
}

void shape_list_mark_shared(struct shape_list *list, const struct rule_shape *probed_as)
{
	struct shape_list_entry *last = NULL;
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (!rule_shape_equal(&list->entry[i].probed_as, probed_as))
			continue;
		last = &list->entry[i];
		last->is_shared = true;
		count++;
	}
	/* A shape without prefixes has the keys of rules for one family and of rules for both families. */
	if (count == 1)
		last->is_shared = !last->shape.src_len && !last->shape.dst_len;
}

/* ---- counting ---- */

static void insert(struct shape_list *list, size_t at, const struct shape_list_entry *entry)
{
	memmove(&list->entry[at + 1], &list->entry[at], (list->count - at) * sizeof(*entry));
	list->entry[at] = *entry;
	list->count++;
	shape_list_mark_shared(list, &entry->probed_as);
}

static void drop(struct shape_list *list, size_t at)
{
	const struct rule_shape probed_as = list->entry[at].probed_as;

	list->count--;
	memmove(&list->entry[at], &list->entry[at + 1], (list->count - at) * sizeof(list->entry[0]));
	shape_list_mark_shared(list, &probed_as);
}

int shape_list_add(struct shape_list *list, const struct rule_shape *shape, __u64 keys)
{
	const size_t at = shape_place(list, shape);
	struct shape_list_entry new = { .shape = *shape, .keys = keys };
	bool has_place;

	if (shape_is_at(list, at, shape)) {
		list->entry[at].keys += keys;
		return 0;
	}
	if (list->count == SHAPE_LIST_MAX)
		return -E2BIG;
	has_place = shape_list_choose(list, shape, &new.probed_as);
	insert(list, at, &new);
	if (!shape_list_fits(list, shape->family)) {
		drop(list, at);
		return -E2BIG;
	}
	list->must_plan |= !has_place;
	return 0;
}

int shape_list_restore(struct shape_list *list, const struct shape_list_entry *entry)
{
	const size_t at = shape_place(list, &entry->shape);

	if (list->count == SHAPE_LIST_MAX || shape_is_at(list, at, &entry->shape) ||
	    !rule_can_expand(&entry->shape, &entry->probed_as))
		return -EBADMSG;
	insert(list, at, entry);
	return 0;
}

int shape_list_remove(struct shape_list *list, const struct rule_shape *shape)
{
	const size_t at = shape_place(list, shape);

	if (!shape_is_at(list, at, shape))
		return -ENOENT;
	if (--list->entry[at].keys == 0)
		drop(list, at);
	return 0;
}
