// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Chooses the probed shape of each shape: packets are looked up by its mask. Each probed shape costs a packet
 * one look-up. So several shapes may share a probed shape, and their keys are expanded to it (prefix expansion,
 * rule.h).
 */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <sys/param.h>

#include "rule/shapes.h"

/* The probed shape that `shape` expands to with the fewest keys; NULL where each needs more than 2^`bits`. */
static const struct rule_shape *nearest_probed(const struct rule_shape *probed, size_t count,
					       const struct rule_shape *shape, unsigned int bits)
{
	const struct rule_shape *best = NULL;

	for (size_t i = 0; i < count; i++) {
		if (!rule_can_expand(shape, &probed[i]) || rule_expansion_bits(shape, &probed[i]) > bits)
			continue;
		if (!best || rule_expansion_bits(shape, &probed[i]) < rule_expansion_bits(shape, best))
			best = &probed[i];
	}
	return best;
}

bool shape_list_choose(const struct shape_list *list, const struct rule_shape *shape, struct rule_shape *probed_as)
{
	struct rule_shape probed[ABI_SHAPES_MAX];
	const size_t count = shape_list_probed(list, shape->family, probed);
	const struct rule_shape *near = nearest_probed(probed, count, shape, SHAPE_LIST_JOIN_BITS);

	/* Another shape may already be expanded to exactly this one. */
	if (near && (count >= SHAPE_LIST_PROBES || rule_shape_equal(near, shape)))
		*probed_as = *near;
	else
		*probed_as = *shape;
	return near || count < ABI_SHAPES_MAX;
}

/* ---- whether the shapes fit, in any order ---- */

#define BANDS (128 + 2)

/*
 * Finds probed shapes for shapes that differ only in prefix lengths, sorted by source. The destination lengths are cut
 * into bands of `width`. In each band, from the longest source length downwards, a probed shape takes all lengths
 * that become at most 2^bits keys. Shapes without a destination are a band of their own, and so are those without
 * a source, where the destination takes its place. Returns how many probed shapes there are.
 */
static size_t cover_group(const struct shape_list_entry *group, size_t count, unsigned int bits, unsigned int width,
			  struct rule_shape *probed)
{
	struct rule_shape *last[BANDS] = {}; /* the last probed shape of each band */
	unsigned int shortest[BANDS];        /* length that it takes */
	size_t used = 0;

	while (count-- > 0) {
		const struct rule_shape *shape = &group[count].shape;
		const bool has_both = shape->src_len && shape->dst_len;
		const unsigned int band = shape->src_len ? (shape->dst_len + width - 1) / width : BANDS - 1;
		const unsigned int length = shape->src_len ? shape->src_len : shape->dst_len;
		const unsigned int most = has_both ? bits + 1 - width : bits;

		if (!last[band] || length < shortest[band]) {
			shortest[band] = length > most ? length - most : length > 0;
			last[band] = &probed[used++];
			*last[band] = *shape;
		} else if (last[band]->dst_len < shape->dst_len) {
			last[band]->dst_len = shape->dst_len;
		}
	}
	return used;
}

/*
 * Finds probed shapes for a family, so that no key becomes more than 2^bits. Their number depends only on which
 * shapes the list has, and a part of these shapes never needs more: a set of shapes that fits does so in any order.
 */
static size_t cover(const struct shape_list *list, enum flow_family family, unsigned int bits,
		    struct rule_shape probed[SHAPE_LIST_MAX])
{
	struct rule_shape tried[SHAPE_LIST_MAX];
	size_t used = 0, end;

	for (size_t first = 0; first < list->count; first = end) {
		const struct rule_shape *shape = &list->entry[first].shape;
		const unsigned int most = shape->fields & RULE_RATE ? 0 : bits;
		size_t fewest = SIZE_MAX;

		for (end = first + 1; end < list->count; end++)
			if (memcmp(&list->entry[end].shape, shape, offsetof(struct rule_shape, src_len)))
				break;
		for (unsigned int width = 1; width <= most + 1 && shape->family == family; width++) {
			const size_t count = cover_group(&list->entry[first], end - first, most, width, tried);

			if (count >= fewest)
				continue;
			fewest = count;
			memcpy(&probed[used], tried, count * sizeof(*tried));
		}
		used += shape->family == family ? fewest : 0;
	}
	return used;
}

bool shape_list_fits(const struct shape_list *list, enum flow_family family)
{
	struct rule_shape probed[SHAPE_LIST_MAX];

	return cover(list, family, SHAPE_LIST_EXPAND_BITS, probed) <= ABI_SHAPES_MAX;
}

/* ---- a plan with few keys ---- */

/* The probed shapes of one family while unite_cheapest() unites them. */
struct plan {
	size_t count, left;
	struct rule_shape probed[SHAPE_LIST_MAX];
	double keys[SHAPE_LIST_MAX];  /* 0: it has become a part of another */
	size_t mate[SHAPE_LIST_MAX];  /* the one with which its union adds the fewest keys, */
	double price[SHAPE_LIST_MAX]; /* so many; INFINITY: there is none */
	double keys_all, keys_allowed;
};

/* The number of keys that a union adds; INFINITY: these two cannot be united. */
static double price_of(const struct plan *plan, size_t i, size_t k, struct rule_shape *both)
{
	const struct rule_shape *a = &plan->probed[i], *b = &plan->probed[k];

	*both = *a;
	both->src_len = a->src_len > b->src_len ? a->src_len : b->src_len;
	both->dst_len = a->dst_len > b->dst_len ? a->dst_len : b->dst_len;
	both->details.length_bits = MAX(a->details.length_bits, b->details.length_bits);
	both->details.sport_free = MIN(a->details.sport_free, b->details.sport_free);
	both->details.dport_free = MIN(a->details.dport_free, b->details.dport_free);
	rule_mark_details(&both->fields, &both->details);
	if (!plan->keys[k] || i == k || !rule_can_expand(a, both) || !rule_can_expand(b, both))
		return INFINITY;
	return plan->keys[i] * (rule_expansion_factor(a, both) - 1) +
	       plan->keys[k] * (rule_expansion_factor(b, both) - 1);
}

/* Looks for a better mate of shape i among `count` shapes from k on. */
static void find_mate(struct plan *plan, size_t i, size_t k, size_t count)
{
	struct rule_shape both;

	for (const size_t end = k + count; k < end; k++) {
		const double price = price_of(plan, i, k, &both);

		if (price >= plan->price[i])
			continue;
		plan->price[i] = price;
		plan->mate[i] = k;
	}
}

/* Unites the two probed shapes that cost least. False where no union fits into keys_allowed. */
static bool unite_cheapest(struct plan *plan)
{
	struct rule_shape both;
	size_t from = 0, to;

	for (size_t i = 1; i < plan->count; i++)
		if (plan->price[i] < plan->price[from])
			from = i;
	if (plan->keys_all + plan->price[from] > plan->keys_allowed)
		return false;
	to = plan->mate[from];
	plan->keys_all += price_of(plan, from, to, &both);
	plan->probed[to] = both;
	plan->keys[to] += plan->keys[from] + plan->price[from];
	plan->keys[from] = 0;
	plan->price[from] = INFINITY;
	plan->left--;
	for (size_t i = 0; i < plan->count; i++) {
		const bool is_stale = i == to || plan->mate[i] == to || plan->mate[i] == from;

		if (!plan->keys[i])
			continue;
		if (is_stale)
			plan->price[i] = INFINITY;
		find_mate(plan, i, is_stale ? 0 : to, is_stale ? plan->count : 1);
	}
	return true;
}

static int plan_family(struct shape_list *list, enum flow_family family)
{
	struct rule_shape probed[SHAPE_LIST_MAX];
	struct plan plan = {};
	size_t count = 0;
	double own = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct shape_list_entry *entry = &list->entry[i];

		if (entry->shape.family != family)
			continue;
		plan.price[plan.count] = INFINITY;
		plan.probed[plan.count] = entry->shape;
		plan.keys[plan.count++] = entry->keys;
		own += entry->keys;
	}
	plan.left = plan.count;
	plan.keys_all = own;
	plan.keys_allowed = SHAPE_LIST_GROWTH * own + SHAPE_LIST_SPARE;
	for (size_t i = 0; i < plan.count; i++)
		find_mate(&plan, i, 0, plan.count);
	while (plan.left > SHAPE_LIST_PROBES && unite_cheapest(&plan))
		;
	plan.keys_allowed += own * (1ULL << SHAPE_LIST_EXPAND_BITS);
	while (plan.left > ABI_SHAPES_MAX && unite_cheapest(&plan))
		;
	for (size_t i = 0; i < plan.count; i++)
		if (plan.keys[i])
			probed[count++] = plan.probed[i];
	for (unsigned int bits = 0; count > ABI_SHAPES_MAX && bits < 63; bits++)
		count = cover(list, family, bits, probed);
	if (count > ABI_SHAPES_MAX)
		return -E2BIG;
	for (size_t i = 0; i < list->count; i++)
		if (list->entry[i].shape.family == family)
			list->entry[i].probed_as = *nearest_probed(probed, count, &list->entry[i].shape, 256);
	for (size_t i = 0; i < count; i++)
		shape_list_mark_shared(list, &probed[i]);
	return 0;
}

int shape_list_plan(struct shape_list *list)
{
	struct shape_list planned = *list;
	int error = 0;

	for (enum flow_family family = 0; family < FLOW_FAMILIES && !error; family++)
		error = plan_family(&planned, family);
	if (error)
		return error;
	planned.must_plan = false;
	*list = planned;
	return 0;
}

/* The number of a family's probed shapes above the goal, SHAPE_LIST_PROBES. */
static size_t too_many(const struct shape_list *list, enum flow_family family)
{
	struct rule_shape probed[ABI_SHAPES_MAX];
	const size_t count = shape_list_probed(list, family, probed);

	return count > SHAPE_LIST_PROBES ? count - SHAPE_LIST_PROBES : 0;
}

bool shape_list_is_expanded(const struct shape_list *list)
{
	double own = 0;

	for (size_t i = 0; i < list->count; i++)
		own += list->entry[i].keys;
	return shape_list_keys(list) > SHAPE_LIST_WORSE * own + SHAPE_LIST_SPARE;
}

bool shape_list_plan_pays(const struct shape_list *list)
{
	struct shape_list planned = *list;

	if (shape_list_plan(&planned))
		return false;
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++)
		if (too_many(&planned, family) < too_many(list, family))
			return true;
	return shape_list_keys(list) > SHAPE_LIST_WORSE * shape_list_keys(&planned) + SHAPE_LIST_SPARE;
}
