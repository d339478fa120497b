// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tells the packet path which shapes to look up, and whether to read hints. The top of include/abi.h explains both words.
 * A shape is published when it is in the list that packets use; a key of another shape is found by no packet yet.
 */
#include <errno.h>
#include <string.h>

#include "base/waiting.h"
#include "filter/hints.h"
#include "filter/internal.h"

void filter_forget_shapes(struct filter *filter)
{
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		const struct abi_shape_list *list = abi_shapes(filter_abi_table(filter), family);
		struct filter_shapes *shapes = &filter->shapes[family];

		for (shapes->count = 0; shapes->count < list->count; shapes->count++) {
			const struct abi_shape *shape = abi_shape_at(list, shapes->count);

			shapes->shape[shapes->count] = rule_shape_of_compiled(shape, family);
			shapes->hint[shapes->count] = shape->hint;
		}
	}
}

int filter_assign_hint(struct filter *filter, const struct rule_shape *shape, __u64 *hint)
{
	struct filter_shapes *shapes = &filter->shapes[shape->family];

	for (size_t i = 0; i < shapes->count; i++)
		if (!memcmp(&shapes->shape[i], shape, sizeof(*shape))) {
			*hint = shapes->hint[i];
			return 0;
		}
	if (shapes->count == sizeof(shapes->hint) / sizeof(shapes->hint[0]))
		return -E2BIG;
	*hint = hints_choose(shapes->hint, shapes->count, shape);
	shapes->shape[shapes->count] = *shape;
	shapes->hint[shapes->count++] = *hint;
	return 0;
}

/* For each family: fills the idle list, flips, and waits until no packet uses the old list. */
static int publish_all(struct filter *filter, const struct abi_shape_list wanted[FLOW_FAMILIES], struct reason *reason)
{
	struct abi_table *table = filter_abi_table(filter);
	int error = 0;

	for (enum flow_family family = 0; family < FLOW_FAMILIES && !error; family++) {
		const __u64 active = table->shapes_active[family] & 1;

		if (!memcmp(&table->shapes[family][active], &wanted[family], sizeof(*wanted)))
			continue;
		table->shapes[family][!active] = wanted[family];
		__atomic_store_n(&table->shapes_active[family], !active, __ATOMIC_RELEASE);
		if (!filter->shares_maps && filter->kernel.attachments_count) /* packets may use the table */
			error = grace_wait();
	}
	return error ? reason_set(reason, error, "cannot wait for a grace period: %s", strerror(-error)) : 0;
}

int filter_publish_shapes(struct filter *filter, struct store *store, struct reason *reason)
{
	struct abi_shape_list wanted[FLOW_FAMILIES];
	struct rule_shape probed[ABI_SHAPES_MAX];
	struct shape_list shapes;
	bool has_rates = false;
	int error = store_shapes(store, &shapes);

	if (error)
		return store_unread_reason(error, reason);
	for (size_t i = 0; i < shapes.count; i++)
		has_rates |= (shapes.entry[i].shape.fields & RULE_RATE) != 0;
	error = filter_sync_rates(filter, store, has_rates, reason);
	if (error)
		return error;
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		const struct abi_shape_list *in_use = abi_shapes(filter_abi_table(filter), family);
		struct abi_shape_list *list = &wanted[family];

		*list = (struct abi_shape_list){ .count = shape_list_probed(&shapes, family, probed) };
		for (size_t i = 0; i < list->count && !error; i++) {
			struct abi_shape *shape = &list->shape[abi_shape_place(1ULL << i)];

			rule_shape_compile(&probed[i], shape);
			error = filter_assign_hint(filter, &probed[i], &shape->hint);
		}
		if (error)
			return reason_set(reason, error,
					  "the change has too many kinds of rules; split it into smaller changes");
		hints_compile(list, family, filter->kernel.options.has_counts, filter_hints(filter).shift);
		list->reads_hints = in_use->reads_hints;
		/* Reading many hints takes longer than a small change, and tells little new if the shapes are the same. */
		if (filter_hints(filter).shift == ABI_HINT_SHIFT_MOST || memcmp(list, in_use, sizeof(*list)))
			list->reads_hints = hints_pay(filter_hints(filter), list, family);
	}
	return publish_all(filter, wanted, reason);
}

/* ---- shapes of pass rules, before the commit of a change ---- */

/*
 * Whether new shapes of pass rules must be published first: a packet may find a drop rule, by its shape or, if it reads
 * hints, by a shortcut. If the list has no room, they wait for filter_publish_shapes().
 */
static bool has_passing(const struct filter_shapes *shapes, const struct abi_shape_list *list)
{
	const bool has_dropping = (__u32)__builtin_popcountll(list->passing) < list->count || list->reads_hints;

	for (size_t i = list->count; i < shapes->count && has_dropping && shapes->count <= ABI_SHAPES_MAX; i++)
		if (shapes->shape[i].action == RULE_PASS)
			return true;
	return false;
}

bool filter_has_pass_shapes_to_publish(const struct filter *filter)
{
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++)
		if (has_passing(&filter->shapes[family], abi_shapes(filter_abi_table(filter), family)))
			return true;
	return false;
}

int filter_publish_pass_shapes(struct filter *filter, struct reason *reason)
{
	struct abi_shape_list wanted[FLOW_FAMILIES];

	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		const struct filter_shapes *shapes = &filter->shapes[family];
		struct abi_shape_list *list = &wanted[family];

		*list = *abi_shapes(filter_abi_table(filter), family);
		if (!has_passing(shapes, list))
			continue;
		*list = (struct abi_shape_list){};
		for (size_t i = 0; i < RULE_RANKS * shapes->count; i++) {
			const size_t from = i % shapes->count;
			const struct rule_shape *what = &shapes->shape[from];
			struct abi_shape *shape;

			if (rule_rank(what->action, what->fields) != i / shapes->count)
				continue;
			shape = &list->shape[abi_shape_place(1ULL << list->count)];
			rule_shape_compile(what, shape);
			shape->hint = shapes->hint[from];
			list->count++;
		}
		hints_compile(list, family, filter->kernel.options.has_counts, filter_hints(filter).shift);
		list->reads_hints = hints_pay(filter_hints(filter), list, family);
	}
	return publish_all(filter, wanted, reason);
}
