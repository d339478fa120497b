/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The shapes that rules use and how many keys each has, at most ABI_SHAPES_MAX of one family, in
 * one order: those that pass first. Plain memory; knows neither store nor table.
 */
#ifndef XDP_CUCKOO_SHAPE_LIST_H
#define XDP_CUCKOO_SHAPE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "rule.h"

#define SHAPE_LIST_MAX (FLOW_FAMILIES * ABI_SHAPES_MAX)

struct shape_list {
	size_t count;
	struct rule_shape shape[SHAPE_LIST_MAX];
	__u64 keys[SHAPE_LIST_MAX]; /* never 0 */
};

/* Whether the shape is in the list, or its family has room for it. */
bool shape_list_fits(const struct shape_list *list, const struct rule_shape *shape);

/* Counts `keys` more keys of a shape that fits. */
void shape_list_add(struct shape_list *list, const struct rule_shape *shape, __u64 keys);

/* Counts one key less; the last one takes the shape with it. 0; -ENOENT where it is not there. */
int shape_list_remove(struct shape_list *list, const struct rule_shape *shape);

#endif
