// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Opens and closes a filter: the tables of a filter, and where they are in its maps. */
#include "filter/filter.h"

#include <errno.h>
#include <string.h>

#include "filter/internal.h"

void filter_lay_out(struct abi_config *config, unsigned int tables, __u64 slots)
{
	for (unsigned int i = 1; i < tables; i++) {
		config->table[i].first_bucket = i * slots / BUCKET_SLOTS;
		config->table[i].first_slot = i * slots;
		config->table[i].first_hint = i * ABI_HINTS;
	}
}

const __u8 *filter_hints_of(const struct kernel_filter *kernel)
{
	return (const __u8 *)kernel->map[KERNEL_HINTS].memory + abi_active(kernel->config)->first_hint;
}

struct bucket_geometry filter_geometry(const struct kernel_filter *kernel)
{
	if (abi_active(kernel->config)->geometry.buckets)
		return abi_active(kernel->config)->geometry;
	return table_geometry(filter_all_slots(kernel) / (kernel->options.is_alone ? 1 : ABI_TABLES));
}

bool filter_is_in_use(const struct filter *filter)
{
	return !filter->shares_maps && filter->kernel.attachments_count;
}

/* Maps the records and counters of `slots` slots from `slot` on. */
static int map_slots(const struct kernel_filter *kernel, const struct abi_table *own, __u64 slot, __u64 slots)
{
	const __u64 first = own->first_slot + slot;
	int error = 0;

	if (kernel->options.is_exact)
		error = kernel_map_part(&kernel->map[KERNEL_RECORDS], first * sizeof(__u64), slots * sizeof(__u64));
	if (kernel->options.has_counts && !error)
		error = kernel_map_part(&kernel->map[KERNEL_COUNTS], first * sizeof(struct abi_counter),
					slots * sizeof(struct abi_counter));
	return error;
}

/* The table's `reach`: see struct table. */
static int reach(const struct table *table, __u64 slot, __u64 slots)
{
	const struct filter *filter = (const void *)((const char *)table - offsetof(struct filter, table));

	return map_slots(&filter->kernel, filter_own(filter), slot, slots) ? -ENOMEM : 0;
}

static int open_table(const struct kernel_filter *kernel, struct abi_table *own, struct bucket_geometry geometry,
		      struct table *table)
{
	const struct abi_options *options = &kernel->options;
	const struct kernel_map *buckets = &kernel->map[KERNEL_BUCKETS], *records = &kernel->map[KERNEL_RECORDS],
				*counts = &kernel->map[KERNEL_COUNTS];
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

int filter_open_table(const struct kernel_filter *kernel, struct table *table)
{
	struct abi_config *config = kernel->config;
	struct abi_table *own = &config->table[config->active % ABI_TABLES];
	int error = open_table(kernel, own, filter_geometry(kernel), table);

	if (!error)
		error = map_slots(kernel, own, 0, table_slots(table));
	if (error)
		table_close(table);
	return error;
}

bool filter_waits_for_readers(const struct filter *filter)
{
	return !ABI_LOADS_IN_ORDER && !filter->kernel.options.orders_loads && !filter->shares_maps &&
	       filter->kernel.config->run & ABI_RUN_SET_UP;
}

int filter_open_own(struct filter *filter, struct bucket_geometry geometry)
{
	const int error = open_table(&filter->kernel, filter_own(filter), geometry, &filter->table);

	filter->table.reach = reach;
	filter->table.waits_for_readers = filter_waits_for_readers(filter);
	return error;
}

int filter_reopen(struct filter *filter, struct reason *reason)
{
	int error;

	table_close(&filter->table);
	filter->which = filter->kernel.config->active % ABI_TABLES;
	error = filter_open_own(filter, filter_geometry(&filter->kernel));
	if (!error) {
		filter->table.used = filter_own(filter)->used;
		filter_forget_shapes(filter);
		return 0;
	}
	/* Commands report -EINVAL as bad input, which this is not. */
	error = reason_set(reason, error == -EINVAL ? -EPROTO : error, "cannot use a table of %u map elements: %s",
			   filter->kernel.map[KERNEL_BUCKETS].entries, strerror(-error));
	filter_close(filter);
	return error;
}

int filter_open(struct filter *filter, struct kernel_filter *kernel, struct reason *reason)
{
	*filter = (struct filter){ .kernel = *kernel };
	*kernel = (struct kernel_filter){};
	return filter_reopen(filter, reason);
}

void filter_close(struct filter *filter)
{
	filter_drop_successor(filter);
	table_close(&filter->table);
	if (!filter->shares_maps)
		kernel_close(&filter->kernel);
}

void filter_give_back(struct filter *filter, struct kernel_filter *kernel)
{
	*kernel = filter->kernel;
	filter->kernel = (struct kernel_filter){};
	filter_close(filter);
}

void filter_note_counts(struct filter *filter)
{
	struct abi_table *own = filter_own(filter);

	own->used = filter->table.used;
	own->moves += filter->table.moves;
	filter->table.moves = 0;
	if (own->longest_path < filter->table.longest_path)
		own->longest_path = filter->table.longest_path;
	if (!filter->shares_maps)
		filter->kernel.config->used = own->used;
}

void filter_set_generation(struct filter *filter, __u64 generation)
{
	filter_note_counts(filter);
	__atomic_store_n(&filter->kernel.config->generation, generation, __ATOMIC_RELEASE);
}

/* ---- reasons ---- */

int filter_say_unmapped(struct reason *reason)
{
	return reason_set(reason, -ENOMEM, "no memory to map the filter's table");
}

int filter_say_other_store(const struct kernel_filter *kernel, struct reason *reason)
{
	return reason_set(reason, -ESTALE,
			  "the filter '%s' on %s is filled from another store; give the --state it was "
			  "loaded with, or unload it first",
			  kernel->config->name, kernel->attachments[0].interface);
}
