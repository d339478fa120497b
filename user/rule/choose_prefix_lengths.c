// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Chooses the probed shape of each shape: packets are looked up by its mask. Each probed shape costs a packet
 * one look-up. So several shapes may share a probed shape, and their keys are expanded to it (prefix expansion,
 * rule.h).
 */
#include <errno.h>
#include <math.h>
#include <string.h>

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

int shape_list_choose(const struct shape_list *list, const struct rule_shape *shape, struct rule_shape *probed_as)
{
	struct rule_shape probed[ABI_SHAPES_MAX];
	const size_t count = shape_list_probed(list, shape->family, probed);
	const struct rule_shape *near = nearest_probed(probed, count, shape, SHAPE_LIST_JOIN_BITS);

	/* Another shape may already be expanded to exactly this one. */
	if (near && (count >= SHAPE_LIST_PROBES || rule_shape_equal(near, shape)))
		*probed_as = *near;
	else if (count < ABI_SHAPES_MAX)
		*probed_as = *shape;
	else
		return -E2BIG;
	return 0;
}

/* The probed shapes of one family while unite_cheapest() merges them, with the number of keys of each. */
struct plan {
	size_t count;
	struct rule_shape probed[SHAPE_LIST_MAX];
	double keys[SHAPE_LIST_MAX];
	double keys_added, keys_allowed;
};

/* Merges the two probed shapes that cost least. False where no merge fits into keys_allowed. */
static bool unite_cheapest(struct plan *plan)
{
	double best = INFINITY;
	size_t from = 0, to = 0;

	for (size_t i = 0; i < plan->count; i++)
		for (size_t k = 0; k < plan->count; k++) {
			/* The number of keys that are added if all keys of shape i are expanded to shape k. */
			const double cost =
				plan->keys[i] * (rule_expansion_factor(&plan->probed[i], &plan->probed[k]) - 1);

			if (i != k && rule_can_expand(&plan->probed[i], &plan->probed[k]) && cost < best) {
				best = cost;
				from = i;
				to = k;
			}
		}
	if (plan->keys_added + best > plan->keys_allowed)
		return false;
	plan->keys_added += best;
	plan->keys[to] += plan->keys[from] + best;
	plan->count--;
	plan->probed[from] = plan->probed[plan->count];
	plan->keys[from] = plan->keys[plan->count];
	return true;
}

static int plan_family(struct shape_list *list, enum flow_family family)
{
	struct plan plan = { .keys_allowed = SHAPE_LIST_SPARE };

	for (size_t i = 0; i < list->count; i++) {
		const struct shape_list_entry *entry = &list->entry[i];

		if (entry->shape.family != family)
			continue;
		plan.probed[plan.count] = entry->shape;
		plan.keys[plan.count++] = entry->keys;
		plan.keys_allowed += (SHAPE_LIST_GROWTH - 1.) * entry->keys;
	}
	while (plan.count > SHAPE_LIST_PROBES && unite_cheapest(&plan))
		;
	if (plan.count > ABI_SHAPES_MAX)
		return -E2BIG;
	for (size_t i = 0; i < list->count; i++) {
		struct shape_list_entry *entry = &list->entry[i];

		if (entry->shape.family == family)
			entry->probed_as = *nearest_probed(plan.probed, plan.count, &entry->shape, 256);
	}
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
	shape_list_note_shared(&planned);
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
