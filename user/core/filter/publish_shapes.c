// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tells the packet path which shapes to look up, and whether to read hints. The top of include/abi.h explains both words.
 * A shape is published when it is in the list that packets use; a key of another shape is found by no packet yet.
 */
#include <errno.h>
#include <string.h>

#include "filter/hints.h"
#include "filter/internal.h"

void filter_read_published(struct filter *filter)
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

bool filter_publishes_pass(const struct filter *filter)
{
	const struct abi_table *table = filter_abi_table(filter);

	return abi_shapes(table, FLOW_IPV4)->passing || abi_shapes(table, FLOW_IPV6)->passing;
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

/* Fills the idle list of each family that differs, flips, and waits until no packet uses the old lists. */
static int publish_all(struct filter *filter, const struct abi_shape_list wanted[FLOW_FAMILIES], struct reason *reason)
{
	struct abi_table *table = filter_abi_table(filter);
	bool is_changed = false;

	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		const __u64 active = table->shapes_active[family] & 1;

		if (!memcmp(&table->shapes[family][active], &wanted[family], sizeof(*wanted)))
			continue;
		table->shapes[family][!active] = wanted[family];
		__atomic_store_n(&table->shapes_active[family], !active, __ATOMIC_RELEASE);
		is_changed = true;
	}
	return is_changed ? filter_wait_for_packets(filter, reason) : 0;
}

/*
 * Lists the store's shapes of a family, and with `keeps` the published ones beside them, in the order of their ranks. 0;
 * -E2BIG.
 */
static int list_shapes(struct filter *filter, const struct shape_list *shapes, enum flow_family family, bool keeps,
		       bool has_ends, struct abi_shape_list *list)
{
	const struct abi_shape_list *in_use = abi_shapes(filter_abi_table(filter), family);
	struct rule_shape probed[ABI_SHAPES_MAX], all[(FILTER_PARTS + 1) * ABI_SHAPES_MAX];
	const size_t of_store = shape_list_probed(shapes, family, probed);
	size_t wanted = 0, count, known, at = 0;
	int error = 0;

	for (size_t i = 0; i < of_store; i++) {
		const enum filter_part part = filter_part_of(filter, &probed[i], false);

		all[wanted++] = filter_shape_in(&probed[i], part);
		if (part == FILTER_ADDRESSES && has_ends)
			all[wanted++] = probed[i];
	}
	count = wanted;
	for (size_t i = 0; i < in_use->count; i++) {
		const struct rule_shape shape = rule_shape_of_compiled(abi_shape_at(in_use, i), family);

		for (known = 0; known < wanted && memcmp(&all[known], &shape, sizeof(shape)); known++)
			;
		at += known < wanted;
		if (known == wanted && keeps)
			all[count++] = shape;
	}
	*list = *in_use;
	if (keeps && at == wanted) /* nothing is new */
		return 0;
	if (count > ABI_SHAPES_MAX)
		return -E2BIG;
	*list = (struct abi_shape_list){ .reads_hints = in_use->reads_hints };
	for (size_t i = 0; i < RULE_RANKS * count && !error; i++) {
		const struct rule_shape *what = &all[i % count];
		struct abi_shape *shape = &list->shape[abi_shape_place(1ULL << list->count)];

		if (rule_rank(what->action, what->fields) != i / count)
			continue;
		rule_shape_compile(what, shape);
		error = filter_assign_hint(filter, what, &shape->hint);
		list->count++;
	}
	hints_compile(list, family, filter->kernel.options.has_counts, filter_hints(filter).shift);
	return error;
}

/* list_shapes() for both families, and when to read hints. */
static int list_all(struct filter *filter, struct store *store, const struct shape_list *shapes, bool keeps,
		    struct abi_shape_list wanted[FLOW_FAMILIES], struct reason *reason)
{
	const bool reads_always = !keeps && filter_hints(filter).shift == ABI_HINT_SHIFT_MOST;
	struct store_info info;
	int error = store_unread_reason(store_info(store, &info), reason);

	for (enum flow_family family = 0; family < FLOW_FAMILIES && !error; family++) {
		const struct abi_shape_list *in_use = abi_shapes(filter_abi_table(filter), family);
		struct abi_shape_list *list = &wanted[family];

		error = list_shapes(filter, shapes, family, keeps, info.timed, list);
		if (error)
			return reason_set(reason, error,
					  "the change has too many kinds of rules; split it into smaller changes");
		/* Reading many hints takes longer than a small change, and tells little new if the shapes are the same. */
		if (reads_always || memcmp(list, in_use, sizeof(*list)))
			list->reads_hints = hints_pay(filter_hints(filter), list, family);
	}
	return error;
}

int filter_check_shapes(struct filter *filter, struct store *store, struct reason *reason)
{
	struct abi_shape_list wanted[FLOW_FAMILIES];
	struct shape_list shapes;
	int error = store_unread_reason(store_shapes(store, &shapes), reason);

	return error ? error : list_all(filter, store, &shapes, false, wanted, reason);
}

/* Rates get places before their shape is published, and lose them after it has gone. */
int filter_publish_shapes(struct filter *filter, struct store *store, bool keeps, struct reason *reason)
{
	struct abi_shape_list wanted[FLOW_FAMILIES];
	struct shape_list shapes;
	int error = store_unread_reason(store_shapes(store, &shapes), reason);

	if (!error && !filter->shares_maps)
		error = filter_sync_rates(filter, store, true, reason);
	/* What a process that died has left takes the room. */
	if (error == -ENOSPC && !keeps)
		error = filter_sync_rates(filter, store, false, reason);
	if (!error)
		error = list_all(filter, store, &shapes, keeps, wanted, reason);
	if (!error)
		error = publish_all(filter, wanted, reason);
	return error || keeps ? error : filter_sync_rates(filter, store, false, reason);
}
