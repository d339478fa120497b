// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "shape_list.h"

#include <errno.h>
#include <string.h>

_Static_assert(sizeof(struct rule_shape) == 5, "shapes are compared as bytes: no padding");

static int shape_compare(const struct rule_shape *a, const struct rule_shape *b)
{
	if (a->action != b->action)
		return a->action == RULE_PASS ? -1 : 1;
	return memcmp(a, b, sizeof(*a));
}

/* Where the shape is, or where it would go. */
static size_t shape_place(const struct shape_list *list, const struct rule_shape *shape)
{
	size_t at = 0;

	while (at < list->count && shape_compare(&list->shape[at], shape) < 0)
		at++;
	return at;
}

static bool shape_is_at(const struct shape_list *list, size_t at, const struct rule_shape *shape)
{
	return at < list->count && shape_compare(&list->shape[at], shape) == 0;
}

/* Moves the entry at `from`, and all behind it, to `to`. */
static void shape_shift(struct shape_list *list, size_t from, size_t to)
{
	size_t entries = list->count - from;

	memmove(&list->shape[to], &list->shape[from], entries * sizeof(list->shape[0]));
	memmove(&list->keys[to], &list->keys[from], entries * sizeof(list->keys[0]));
	list->count = to + entries;
}

bool shape_list_fits(const struct shape_list *list, const struct rule_shape *shape)
{
	size_t of_family = 0;

	if (shape_is_at(list, shape_place(list, shape), shape))
		return true;
	for (size_t i = 0; i < list->count; i++)
		of_family += list->shape[i].family == shape->family;
	return of_family < ABI_SHAPES_MAX;
}

void shape_list_add(struct shape_list *list, const struct rule_shape *shape, __u64 keys)
{
	size_t at = shape_place(list, shape);

	if (!shape_is_at(list, at, shape)) {
		shape_shift(list, at, at + 1);
		list->shape[at] = *shape;
		list->keys[at] = 0;
	}
	list->keys[at] += keys;
}

int shape_list_remove(struct shape_list *list, const struct rule_shape *shape)
{
	size_t at = shape_place(list, shape);

	if (!shape_is_at(list, at, shape))
		return -ENOENT;
	if (--list->keys[at] == 0)
		shape_shift(list, at + 1, at);
	return 0;
}
