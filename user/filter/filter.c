// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Opens and closes a target: the tables of a filter, and where they are in its maps. */
#include "filter/filter.h"

#include <errno.h>
#include <string.h>

#include "filter/internal.h"

void target_lay_out(struct abi_config *config, unsigned int tables, __u64 slots)
{
	for (unsigned int i = 1; i < tables; i++) {
		config->table[i].first_bucket = i * slots / BUCKET_SLOTS;
		config->table[i].first_slot = i * slots;
		config->table[i].first_hint = i * ABI_HINTS;
	}
}

const __u8 *target_hints_of(const struct kernel_filter *filter)
{
	return (const __u8 *)filter->map[KERNEL_HINTS].memory + abi_active(filter->config)->first_hint;
}

struct bucket_geometry target_geometry(const struct kernel_filter *filter)
{
	if (abi_active(filter->config)->geometry.buckets)
		return abi_active(filter->config)->geometry;
	return table_geometry(target_all_slots(filter) / ABI_TABLES);
}

bool target_is_in_use(const struct target *target)
{
	return !target->shares_maps && target->filter.attachments_count;
}

/* Maps the records and counters of `slots` slots from `slot` on. */
static int map_slots(const struct kernel_filter *filter, const struct abi_table *own, __u64 slot, __u64 slots)
{
	const __u64 first = own->first_slot + slot;
	int error = 0;

	if (filter->options.is_exact)
		error = kernel_map_part(&filter->map[KERNEL_RECORDS], first * sizeof(__u64), slots * sizeof(__u64));
	if (filter->options.has_counts && !error)
		error = kernel_map_part(&filter->map[KERNEL_COUNTS], first * sizeof(struct abi_counter),
					slots * sizeof(struct abi_counter));
	return error;
}

/* The table's `reach`: see struct table. */
static int reach(const struct table *table, __u64 slot, __u64 slots)
{
	const struct target *target = (const void *)((const char *)table - offsetof(struct target, table));

	return map_slots(&target->filter, target_own(target), slot, slots) ? -ENOMEM : 0;
}

static int open_table(const struct kernel_filter *filter, struct abi_table *own, struct bucket_geometry geometry,
		      struct table *table)
{
	const struct abi_options *options = &filter->options;
	const struct kernel_map *buckets = &filter->map[KERNEL_BUCKETS], *records = &filter->map[KERNEL_RECORDS],
				*counts = &filter->map[KERNEL_COUNTS];
	const __u64 before =
		table_bucket_bytes(options->format, (struct bucket_geometry){ .buckets = own->first_bucket });
	const __u64 bucket_bytes = table_bucket_bytes(options->format, geometry), slots = table_slots_of(geometry);
	const struct table_memory memory = {
		.bucket = (char *)buckets->memory + before,
		.record = options->is_exact ? (__u64 *)records->memory + own->first_slot : NULL,
		.counter = options->has_counts ? (struct abi_counter *)counts->memory + own->first_slot : NULL,
		.sequence = &own->sequence,
	};
	int error;

	*table = (struct table){};
	if (options->format >= BUCKET_FORMATS || own->first_hint > ABI_HINTS ||
	    before + bucket_bytes > buckets->bytes || (memory.record && own->first_slot + slots > records->entries) ||
	    (memory.counter && own->first_slot + slots > counts->entries))
		return -EINVAL;
	error = kernel_map_part(buckets, before, bucket_bytes);
	return error ? error : table_open(table, options->format, geometry, &memory);
}

int target_open_table(const struct kernel_filter *filter, struct table *table)
{
	struct abi_config *config = filter->config;
	struct abi_table *own = &config->table[config->active % ABI_TABLES];
	int error = open_table(filter, own, target_geometry(filter), table);

	if (!error)
		error = map_slots(filter, own, 0, table_slots(table));
	if (error)
		table_close(table);
	return error;
}

int target_open_own(struct target *target, struct bucket_geometry geometry)
{
	const int error = open_table(&target->filter, target_own(target), geometry, &target->table);

	target->table.reach = reach;
	return error;
}

int target_reopen(struct target *target, struct reason *reason)
{
	int error;

	table_close(&target->table);
	target->which = target->filter.config->active % ABI_TABLES;
	error = target_open_own(target, target_geometry(&target->filter));
	if (!error) {
		target->table.used = target_own(target)->used;
		target_begin(target);
		return 0;
	}
	/* Commands report -EINVAL as bad input, which this is not. */
	error = reason_set(reason, error == -EINVAL ? -EPROTO : error, "cannot use a table of %u map elements: %s",
			   target->filter.map[KERNEL_BUCKETS].entries, strerror(-error));
	target_close(target);
	return error;
}

int target_open(struct target *target, struct kernel_filter *filter, struct reason *reason)
{
	*target = (struct target){ .filter = *filter };
	*filter = (struct kernel_filter){};
	return target_reopen(target, reason);
}

void target_close(struct target *target)
{
	target_drop_successor(target);
	table_close(&target->table);
	if (!target->shares_maps)
		kernel_close(&target->filter);
}

/* ---- a change ---- */

void target_defer(struct target *target, enum target_cause cause)
{
	target->is_deferred = true;
	if (!target->cause)
		target->cause = cause;
}

void target_note_counts(struct target *target)
{
	struct abi_table *own = target_own(target);

	own->used = target->table.used;
	own->moves += target->table.moves;
	target->table.moves = 0;
	if (own->longest_path < target->table.longest_path)
		own->longest_path = target->table.longest_path;
	if (!target->shares_maps)
		target->filter.config->used = own->used;
}

void target_set_generation(struct target *target, __u64 generation)
{
	target_note_counts(target);
	__atomic_store_n(&target->filter.config->generation, generation, __ATOMIC_RELEASE);
}

/* ---- reasons ---- */

int target_say_unmapped(struct reason *reason)
{
	return reason_set(reason, -ENOMEM, "no memory to map the filter's table");
}

int target_say_store_unread(int error, struct reason *reason)
{
	return reason_set(reason, error, "cannot read the store: %s", strerror(-error));
}

int target_say_other_store(const struct kernel_filter *filter, struct reason *reason)
{
	return reason_set(reason, -EEXIST,
			  "the filter '%s' on %s is filled from another store; give the --state it was "
			  "loaded with, or unload it first",
			  filter->config->name, filter->attachments[0].interface);
}
