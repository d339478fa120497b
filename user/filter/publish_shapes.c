// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tells the packet path which shapes to look up, and whether to read hints. */
#include <errno.h>
#include <string.h>

#include "base/grace_period.h"
#include "filter/hints.h"
#include "filter/internal.h"

/* A change starts with the published shapes and their hint bits. */
void target_begin(struct target *target)
{
	target->is_deferred = false;
	target->cause = TARGET_STAYS;
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		const struct abi_shape_list *list = abi_shapes(target_own(target), family);
		struct target_shapes *shapes = &target->shapes[family];

		for (shapes->count = 0; shapes->count < list->count; shapes->count++) {
			const struct abi_shape *shape = abi_shape_at(list, shapes->count);

			shapes->shape[shapes->count] = rule_shape_of_tag(shape->tag, family);
			shapes->hint[shapes->count] = shape->hint;
		}
	}
}

int target_hint(struct target *target, const struct rule_shape *shape, __u64 *hint)
{
	struct target_shapes *shapes = &target->shapes[shape->family];

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

static int compile(struct target *target, const struct shape_list *shapes, enum flow_family family,
		   struct abi_shape_list *wanted)
{
	struct rule_shape targets[ABI_SHAPES_MAX];
	const size_t count = shape_list_probed(shapes, family, targets);
	int error = 0;

	*wanted = (struct abi_shape_list){ .count = count };
	for (size_t i = 0; i < count && !error; i++) {
		struct abi_shape *shape = &wanted->shape[abi_shape_place(1U << i)];

		rule_shape_compile(&targets[i], shape);
		error = target_hint(target, &targets[i], &shape->hint);
	}
	hints_compile(wanted, family, target->filter.options.has_counts);
	wanted->reads_hints = hints_pay(target_hints(target), wanted, family);
	return error;
}

/* For each family: fills the idle list, flips, and waits until no packet uses the old list. */
static int publish_all(struct target *target, const struct abi_shape_list wanted[FLOW_FAMILIES], struct reason *reason)
{
	struct abi_table *table = target_own(target);
	int error = 0;

	for (enum flow_family family = 0; family < FLOW_FAMILIES && !error; family++) {
		const __u64 active = table->shapes_active[family] & 1;

		if (!memcmp(&table->shapes[family][active], &wanted[family], sizeof(*wanted)))
			continue;
		table->shapes[family][!active] = wanted[family];
		__atomic_store_n(&table->shapes_active[family], !active, __ATOMIC_RELEASE);
		error = target_is_in_use(target) ? grace_wait() : 0;
	}
	return error ? reason_set(reason, error, "cannot wait for a grace period: %s", strerror(-error)) : 0;
}

int target_publish(struct target *target, struct store *store, struct reason *reason)
{
	struct abi_shape_list wanted[FLOW_FAMILIES];
	struct shape_list shapes;
	int error = store_shapes(store, &shapes);

	if (error)
		return target_say_store_unread(error, reason);
	for (enum flow_family family = 0; family < FLOW_FAMILIES && !error; family++)
		error = compile(target, &shapes, family, &wanted[family]);
	if (error)
		return reason_set(reason, error,
				  "the change has too many kinds of rules; split it into smaller changes");
	return publish_all(target, wanted, reason);
}

/* ---- shapes of pass rules, before the commit of a change ---- */

/* If the list has no room, new shapes of pass rules wait for target_publish(). */
static bool has_passing(const struct target_shapes *shapes, const struct abi_shape_list *list)
{
	const bool has_dropping = (__u32)__builtin_popcount(list->passing) < list->count;

	for (size_t i = list->count; i < shapes->count && has_dropping && shapes->count <= ABI_SHAPES_MAX; i++)
		if (shapes->shape[i].action == RULE_PASS)
			return true;
	return false;
}

bool target_has_passing_to_publish(const struct target *target)
{
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++)
		if (has_passing(&target->shapes[family], abi_shapes(target_own(target), family)))
			return true;
	return false;
}

static void append(const struct target_shapes *shapes, enum rule_action action, struct abi_shape_list *wanted)
{
	for (size_t i = 0; i < shapes->count; i++) {
		struct abi_shape *shape;

		if (shapes->shape[i].action != action)
			continue;
		shape = &wanted->shape[abi_shape_place(1U << wanted->count)];
		rule_shape_compile(&shapes->shape[i], shape);
		shape->hint = shapes->hint[i];
		wanted->count++;
	}
}

int target_publish_passing(struct target *target, struct reason *reason)
{
	struct abi_shape_list wanted[FLOW_FAMILIES];

	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		const struct target_shapes *shapes = &target->shapes[family];
		const struct abi_shape_list *list = abi_shapes(target_own(target), family);

		wanted[family] = *list;
		if (!has_passing(shapes, list))
			continue;
		wanted[family] = (struct abi_shape_list){};
		append(shapes, RULE_PASS, &wanted[family]);
		append(shapes, RULE_DROP, &wanted[family]);
		hints_compile(&wanted[family], family, target->filter.options.has_counts);
		wanted[family].reads_hints = hints_pay(target_hints(target), &wanted[family], family);
	}
	return publish_all(target, wanted, reason);
}
