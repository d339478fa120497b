// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rule/shapes.h"

#include <errno.h>
#include <math.h>
#include <string.h>

_Static_assert(sizeof(struct rule_shape) == 5, "shapes are compared as bytes: no padding");

static int shape_compare(const struct rule_shape *a, const struct rule_shape *b)
{
	if (a->action != b->action)
		return a->action == RULE_PASS ? -1 : 1;
	return memcmp(a, b, sizeof(*a));
}

static bool shape_equal(const struct rule_shape *a, const struct rule_shape *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* Where the shape is, or where it would go. */
static size_t shape_place(const struct shape_list *list, const struct rule_shape *shape)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (shape_compare(&list->entry[middle].shape, shape) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool shape_is_at(const struct shape_list *list, size_t at, const struct rule_shape *shape)
{
	return at < list->count && shape_equal(&list->entry[at].shape, shape);
}

const struct shape_list_entry *shape_list_find(const struct shape_list *list, const struct rule_shape *shape)
{
	const size_t at = shape_place(list, shape);

	return shape_is_at(list, at, shape) ? &list->entry[at] : NULL;
}

/* ---- targets ---- */

static bool has_before(const struct shape_list *list, size_t end, const struct rule_shape *target)
{
	for (size_t i = 0; i < end; i++)
		if (shape_equal(&list->entry[i].target, target))
			return true;
	return false;
}

/* In powers of two, so that few changes change an order by it. */
static unsigned int magnitude(const struct shape_list *list, const struct rule_shape *target)
{
	__u64 keys = 0;

	for (size_t i = 0; i < list->count; i++)
		if (shape_equal(&list->entry[i].target, target))
			keys += list->entry[i].keys;
	return 64 - __builtin_clzll(keys | 1);
}

static bool comes_before(const struct shape_list *list, const struct rule_shape *a, const struct rule_shape *b)
{
	if (a->action != b->action)
		return a->action == RULE_PASS;
	return magnitude(list, a) > magnitude(list, b);
}

/* Among equals in the order of the first shape of each. */
size_t shape_list_targets(const struct shape_list *list, enum flow_family family, struct rule_shape *targets)
{
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct rule_shape *target = &list->entry[i].target;
		size_t at;

		if (target->family != family || count == ABI_SHAPES_MAX || has_before(list, i, target))
			continue;
		for (at = count++; at && comes_before(list, target, &targets[at - 1]); at--)
			targets[at] = targets[at - 1];
		targets[at] = *target;
	}
	return count;
}

static double expansion(const struct rule_shape *from, const struct rule_shape *to)
{
	const unsigned int bits = rule_expansion_bits(from, to);

	return bits < 63 ? 1ULL << bits : 0x1p63;
}

__u64 shape_list_keys(const struct shape_list *list)
{
	double keys = 0;

	for (size_t i = 0; i < list->count; i++)
		keys += list->entry[i].keys * expansion(&list->entry[i].shape, &list->entry[i].target);
	return keys < 0x1p62 ? keys : 1ULL << 62;
}

/* A shape without any prefix has the keys of rules for one family and of rules for both. */
static bool is_shared(const struct shape_list *list, size_t at)
{
	const struct shape_list_entry *entry = &list->entry[at];

	if (!entry->shape.src_len && !entry->shape.dst_len)
		return true;
	for (size_t i = 0; i < list->count; i++)
		if (i != at && shape_equal(&list->entry[i].target, &entry->target))
			return true;
	return false;
}

static void note_shared(struct shape_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		list->entry[i].is_shared = is_shared(list, i);
}

/* The target at hand that takes the fewest keys; NULL where none does with 2^`bits` for one. */
static const struct rule_shape *nearest_target(const struct rule_shape *targets, size_t count,
					       const struct rule_shape *shape, unsigned int bits)
{
	const struct rule_shape *best = NULL;

	for (size_t i = 0; i < count; i++) {
		if (!rule_can_expand(shape, &targets[i]) || rule_expansion_bits(shape, &targets[i]) > bits)
			continue;
		if (!best || rule_expansion_bits(shape, &targets[i]) < rule_expansion_bits(shape, best))
			best = &targets[i];
	}
	return best;
}

static int choose_target(const struct shape_list *list, const struct rule_shape *shape, struct rule_shape *target)
{
	struct rule_shape targets[ABI_SHAPES_MAX];
	const size_t count = shape_list_targets(list, shape->family, targets);
	const struct rule_shape *near = nearest_target(targets, count, shape, SHAPE_LIST_JOIN_BITS);

	/* Another shape may be expanded to this one already. */
	if (near && (count >= SHAPE_LIST_PROBES || shape_equal(near, shape)))
		*target = *near;
	else if (count < ABI_SHAPES_MAX)
		*target = *shape;
	else
		return -E2BIG;
	return 0;
}

/* ---- counting ---- */

/* Moves the entry at `from`, and all behind it, to `to`. */
static void shift(struct shape_list *list, size_t from, size_t to)
{
	const size_t entries = list->count - from;

	memmove(&list->entry[to], &list->entry[from], entries * sizeof(list->entry[0]));
	list->count = to + entries;
}

static int insert_at(struct shape_list *list, size_t at, const struct rule_shape *shape)
{
	struct shape_list_entry new = { .shape = *shape };
	int error = list->count < SHAPE_LIST_MAX ? choose_target(list, shape, &new.target) : -E2BIG;

	if (error)
		return error;
	shift(list, at, at + 1);
	list->entry[at] = new;
	note_shared(list);
	return 0;
}

int shape_list_add(struct shape_list *list, const struct rule_shape *shape, __u64 keys)
{
	const size_t at = shape_place(list, shape);
	int error = shape_is_at(list, at, shape) ? 0 : insert_at(list, at, shape);

	if (error)
		return error;
	list->entry[at].keys += keys;
	return 0;
}

int shape_list_restore(struct shape_list *list, const struct shape_list_entry *entry)
{
	const size_t at = shape_place(list, &entry->shape);

	if (list->count == SHAPE_LIST_MAX || shape_is_at(list, at, &entry->shape) ||
	    !rule_can_expand(&entry->shape, &entry->target))
		return -EBADMSG;
	shift(list, at, at + 1);
	list->entry[at] = *entry;
	note_shared(list);
	return 0;
}

int shape_list_remove(struct shape_list *list, const struct rule_shape *shape)
{
	const size_t at = shape_place(list, shape);

	if (!shape_is_at(list, at, shape))
		return -ENOENT;
	if (--list->entry[at].keys == 0) {
		shift(list, at + 1, at);
		note_shared(list);
	}
	return 0;
}

/* ---- planning ---- */

/* The targets of one family while they are being united, and the keys that each takes. */
struct plan {
	size_t count;
	struct rule_shape target[SHAPE_LIST_MAX];
	double keys[SHAPE_LIST_MAX];
	double keys_added, keys_allowed;
};

static void plan_begin(struct plan *plan, const struct shape_list *list, enum flow_family family)
{
	*plan = (struct plan){ .keys_allowed = SHAPE_LIST_SPARE };
	for (size_t i = 0; i < list->count; i++) {
		const struct shape_list_entry *entry = &list->entry[i];

		if (entry->shape.family != family)
			continue;
		plan->target[plan->count] = entry->shape;
		plan->keys[plan->count++] = entry->keys;
		plan->keys_allowed += (SHAPE_LIST_GROWTH - 1.) * entry->keys;
	}
}

/* All keys of target `from` become keys of target `to`: what that adds. */
static double plan_cost(const struct plan *plan, size_t from, size_t to)
{
	if (from == to || !rule_can_expand(&plan->target[from], &plan->target[to]))
		return INFINITY;
	return plan->keys[from] * (expansion(&plan->target[from], &plan->target[to]) - 1);
}

/* False where no two targets can become one for what is left to spend. */
static bool plan_unite(struct plan *plan)
{
	double best = INFINITY, cost;
	size_t from = 0, to = 0;

	for (size_t i = 0; i < plan->count; i++)
		for (size_t k = 0; k < plan->count; k++) {
			cost = plan_cost(plan, i, k);
			if (cost < best) {
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
	plan->target[from] = plan->target[plan->count];
	plan->keys[from] = plan->keys[plan->count];
	return true;
}

static int plan_family(struct shape_list *list, enum flow_family family)
{
	struct plan plan;

	plan_begin(&plan, list, family);
	while (plan.count > SHAPE_LIST_PROBES && plan_unite(&plan))
		;
	if (plan.count > ABI_SHAPES_MAX)
		return -E2BIG;
	for (size_t i = 0; i < list->count; i++) {
		struct shape_list_entry *entry = &list->entry[i];

		if (entry->shape.family == family)
			entry->target = *nearest_target(plan.target, plan.count, &entry->shape, 256);
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
	note_shared(&planned);
	*list = planned;
	return 0;
}

/* A family's targets beyond those aimed at. */
static size_t too_many(const struct shape_list *list, enum flow_family family)
{
	struct rule_shape targets[ABI_SHAPES_MAX];
	const size_t count = shape_list_targets(list, family, targets);

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
