// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Makes a target equal to its store: sets it up if it is new, repairs it if it differs, and gives it a larger
 * table if the rules do not fit.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "filter/hints.h"
#include "filter/internal.h"

/*
 * Makes the table equal to the store in place. The wanted hints are collected separately. The hints in use
 * get the bits of new entries before these are in the table, and keep the bits of old entries until these are
 * gone. Shortcuts are cleared first, because any entry may go.
 */
static int reconcile(struct target *target, struct store *store, struct table_difference *difference,
		     struct reason *reason)
{
	__u8 *in_use = target_hints(target), *wanted = calloc(ABI_HINTS, sizeof(*wanted));
	struct target_entries entries;
	int error;

	if (!wanted)
		return reason_set(reason, -ENOMEM, "no memory for hints");
	error = target_entries_open(&entries, target, store, NULL, false, reason);
	entries.hints = wanted;
	if (!error)
		error = target_entries_collect(&entries, reason);
	if (!error) {
		hints_clear_all_shortcuts(in_use);
		hints_add(in_use, wanted);
		error = table_reconcile(&target->table, entries.entry, entries.count, difference);
		if (error == -ENOSPC)
			target_say_full(target, entries.count, reason);
		else if (error)
			reason_set(reason, error, "no memory to fill the table");
	}
	if (!error) {
		hints_replace(in_use, wanted);
		target_entries_set_shortcuts(&entries);
	}
	target_entries_close(&entries);
	free(wanted);
	return error;
}

int target_fill(struct target *target, struct store *store, struct table_difference *difference, struct reason *reason)
{
	struct abi_config *config = target->filter.config;
	struct table_difference ignored;
	struct store_info info;
	int error = store_info(store, &info);

	if (error)
		return target_say_store_unread(error, reason);
	config->generation = ABI_GENERATION_DIRTY;
	/*
	 * Entries are deleted in no order. If all go, publish the empty list of shapes first; otherwise an
	 * exception might go before its rule.
	 */
	error = info.rules ? 0 : target_publish(target, store, reason);
	if (!error)
		error = reconcile(target, store, difference ? difference : &ignored, reason);
	if (!error)
		error = target_publish(target, store, reason);
	if (error)
		return error;
	target_own(target)->plan = info.plan;
	target_set_generation(target, info.generation);
	return 0;
}

static int grow(struct target *target, struct store *store, const struct store_info *info, struct reason *reason)
{
	__u64 slots = target_slots_to_grow_to(target, info->keys);
	int error;

	error = target_rebuild(target, store, slots, reason);
	if (!error)
		target->filter.config->generation = info->generation;
	return error;
}

static int fill_new(struct target *target, struct store *store, struct reason *reason)
{
	struct target_entries entries;
	int error = target_entries_open(&entries, target, store, NULL, true, reason);

	if (!error)
		error = target_build(target, &entries, reason);
	if (!error)
		error = target_publish(target, store, reason);
	target_entries_close(&entries);
	return error;
}

/* Sets ABI_RUN_SET_UP last, because from then on packets use the table. */
static int set_up(struct target *target, struct store *store, const char *name, const struct store_info *info,
		  struct reason *reason)
{
	struct abi_config *config = target->filter.config;
	int error;

	config->version = ABI_VERSION;
	config->options = target->filter.options;
	/* The maps are as another loader made them: lay out two tables. */
	if (target_tables(&target->filter) == 1 && 2 * table_slots(&target->table) <= target_all_slots(&target->filter))
		target_lay_out(config, ABI_TABLES, target_all_slots(&target->filter) / ABI_TABLES);
	config->geometry = target_own(target)->geometry = target->table.geometry;
	target_own(target)->plan = info->plan;
	memcpy(config->store_id, info->id, sizeof(config->store_id));
	strncpy(config->name, name, sizeof(config->name) - 1);
	error = target_configure(target, store, reason);
	if (error)
		return error;
	if (!target_holds(target, info->keys))
		return grow(target, store, info, reason);
	error = fill_new(target, store, reason);
	if (error)
		return error;
	config->generation = info->generation;
	config->magic = ABI_MAGIC;
	__atomic_fetch_or(&config->run, ABI_RUN_SET_UP, __ATOMIC_RELEASE);
	return 0;
}

/*
 * Repairs in place if the plan (the targets of shapes) is the same. With another plan, entries would go
 * before those that replace them come, so it makes a new table if it can.
 */
static int repair(struct target *target, struct store *store, const struct store_info *info, struct reason *reason)
{
	const bool is_same_plan = target_own(target)->plan == info->plan;
	int error;

	if (!is_same_plan && target_can_prepare(target, target_slots_to_grow_to(target, info->keys)))
		return grow(target, store, info, reason);
	error = target_fill(target, store, NULL, reason);
	return error == -ENOSPC ? grow(target, store, info, reason) : error;
}

int target_update(struct target *target, struct store *store, const char *name, struct reason *reason)
{
	const struct abi_config *config = target->filter.config;
	struct store_info info;
	int error = store_info(store, &info);

	if (error)
		return target_say_store_unread(error, reason);
	/*
	 * Either may be missing if a tool died during set-up; the filter passes everything until this ends.
	 */
	if (!config->magic || !(config->run & ABI_RUN_SET_UP)) {
		target->state = TARGET_SET_UP;
		return set_up(target, store, name, &info, reason);
	}
	if (memcmp(config->store_id, info.id, sizeof(info.id)))
		return target_say_other_store(&target->filter, reason);
	target->state = config->generation == info.generation ? TARGET_UP_TO_DATE : TARGET_REPAIRED;
	target->table.used = target_own(target)->used;
	error = target->state == TARGET_REPAIRED ? repair(target, store, &info, reason) : 0;
	return error ? error : target_configure(target, store, reason);
}
