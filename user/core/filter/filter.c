// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A filter and its table: where the table is in the maps, opening and closing both, waiting for
 * packets that use them. Changes no key. The top of include/abi.h explains "table", "slot",
 * "record" and "tick".
 */
#include <errno.h>
#include <string.h>

#include "base/waiting.h"
#include "filter/internal.h"

void filter_lay_out(const struct kernel_filter *kernel, unsigned int tables, struct filter_parts slots)
{
	for (unsigned int i = 0; i < tables; i++) {
		struct abi_table *table = &kernel->config->table[i];

		table->first_slot = i * slots.records;
		table->first_bucket = table->first_slot / BUCKET_SLOTS;
		table->addresses.first_slot = tables * slots.records + i * slots.addresses;
		table->addresses.first_bucket = table->addresses.first_slot / BUCKET_SLOTS;
		table->first_rate_line = i * ABI_RATE_LINES;
		table->hint_shift = ABI_HINT_SHIFT_MOST;
		while (table->hint_shift > ABI_HINT_SHIFT_LEAST &&
		       tables * ABI_HINTS(table->hint_shift - 1) <= kernel->map[KERNEL_HINTS].bytes)
			table->hint_shift--;
		for (enum flow_family family = 0; family < FLOW_FAMILIES; family++)
			table->first_hint[family] = (i * FLOW_FAMILIES + family) * ABI_HINT_INDEXES(table->hint_shift);
	}
}

struct hints filter_hints_of(const struct kernel_filter *kernel)
{
	return filter_hints_in(kernel, abi_active(kernel->config));
}

struct bucket_geometry filter_geometry(const struct kernel_filter *kernel)
{
	if (abi_active(kernel->config)->geometry.buckets)
		return abi_active(kernel->config)->geometry;
	return table_geometry(filter_all_slots(kernel) / (kernel->options.is_alone ? 1 : ABI_TABLES));
}

static __u64 bytes_of_buckets(const struct kernel_filter *kernel, __u64 buckets)
{
	return table_bucket_bytes(kernel->options.format, (struct bucket_geometry){ .buckets = buckets });
}

static int map_buckets(const struct kernel_filter *kernel, __u64 first, __u64 buckets)
{
	const __u64 start = bytes_of_buckets(kernel, first);

	return kernel_map_part(&kernel->map[KERNEL_BUCKETS], start, bytes_of_buckets(kernel, first + buckets) - start);
}

static __u64 first_slot(const struct abi_table *in_config, enum filter_part part)
{
	return part == FILTER_ADDRESSES ? in_config->addresses.first_slot : in_config->first_slot;
}

/* Maps the buckets, records and, if asked for, counters of `slots` slots of a part from `slot` on. */
static int map_slots(const struct kernel_filter *kernel, const struct abi_table *in_config, enum filter_part part,
		     __u64 slot, __u64 slots, bool has_counters)
{
	const __u64 first = first_slot(in_config, part) + slot;
	int error = slots ? map_buckets(kernel, first / BUCKET_SLOTS, slots / BUCKET_SLOTS) : 0;

	if (kernel->options.is_exact && part == FILTER_RECORDS && slots && !error)
		error = kernel_map_part(&kernel->map[KERNEL_RECORDS], first * sizeof(__u64), slots * sizeof(__u64));
	if (kernel->options.has_counts && has_counters && slots && !error)
		error = kernel_map_part(&kernel->map[KERNEL_COUNTS], first * sizeof(struct abi_counter),
					slots * sizeof(struct abi_counter));
	return error;
}

static int map_tables(const struct kernel_filter *kernel, const struct abi_table *in_config,
		      const struct filter_tables *tables, bool has_counters)
{
	int error = 0;

	for (enum filter_part part = 0; part < FILTER_PARTS && !error; part++)
		error = map_slots(kernel, in_config, part, 0, table_slots(&tables->part[part]), has_counters);
	return error;
}

int filter_map_entries(const struct filter *filter)
{
	return map_tables(&filter->kernel, filter_abi_table(filter), &filter->tables, false);
}

/* See `reach` in table.h. */
static int reach(const struct table *table, __u64 slot, __u64 slots)
{
	const enum filter_part part = table->format == BUCKET_ADDRESS ? FILTER_ADDRESSES : FILTER_RECORDS;
	const struct filter *filter = (const void *)((const char *)(table - part) - offsetof(struct filter, tables));
	const struct abi_table *in_config = filter_abi_table(filter);
	const int error = slots ? map_slots(&filter->kernel, in_config, part, slot, slots, true) :
				  map_buckets(&filter->kernel, first_slot(in_config, part) / BUCKET_SLOTS,
					      table->geometry.buckets);

	return error ? -ENOMEM : 0;
}

static int open_part(const struct kernel_filter *kernel, struct abi_table *in_config, enum filter_part part,
		     struct bucket_geometry geometry, struct table *table)
{
	const struct abi_options *options = &kernel->options;
	const struct kernel_map *buckets = &kernel->map[KERNEL_BUCKETS], *records = &kernel->map[KERNEL_RECORDS],
				*counts = &kernel->map[KERNEL_COUNTS];
	const __u64 first = first_slot(in_config, part), end = first + table_slots_of(geometry);
	const struct table_memory memory = {
		.bucket = (char *)buckets->memory + bytes_of_buckets(kernel, first / BUCKET_SLOTS),
		.record = options->is_exact && part == FILTER_RECORDS ? (__u64 *)records->memory + first : NULL,
		.counter = options->has_counts ? (struct abi_counter *)counts->memory + first : NULL,
		.sequence = &in_config->sequence,
	};

	if (options->format >= BUCKET_FORMATS || bytes_of_buckets(kernel, end / BUCKET_SLOTS) > buckets->bytes ||
	    (memory.record && end > records->entries) || (memory.counter && end > counts->entries) ||
	    (part == FILTER_ADDRESSES &&
	     (!geometry.buckets || in_config->addresses.reciprocal != address_reciprocal(geometry.buckets))))
		return -EINVAL;
	return table_open(table, part == FILTER_RECORDS ? options->format : BUCKET_ADDRESS, geometry, &memory);
}

static int open_tables(const struct kernel_filter *kernel, struct abi_table *in_config, struct bucket_geometry geometry,
		       struct filter_tables *tables)
{
	const __u64 hints = kernel->map[KERNEL_HINTS].bytes;
	int error;

	*tables = (struct filter_tables){};
	/* A filter that another tool has just loaded has no layout yet, so there is none to check. */
	if ((in_config->hint_shift || kernel->config->magic) &&
	    (in_config->hint_shift < ABI_HINT_SHIFT_LEAST || in_config->hint_shift > ABI_HINT_SHIFT_MOST ||
	     in_config->first_hint[0] > hints || in_config->first_hint[0] + ABI_HINTS(in_config->hint_shift) > hints))
		return -EINVAL;
	error = open_part(kernel, in_config, FILTER_RECORDS, geometry, &tables->part[FILTER_RECORDS]);
	if (kernel->options.has_addresses && !error)
		error = open_part(kernel, in_config, FILTER_ADDRESSES, in_config->addresses.geometry,
				  &tables->part[FILTER_ADDRESSES]);
	return error;
}

int filter_open_tables(const struct kernel_filter *kernel, struct filter_tables *tables)
{
	struct abi_config *config = kernel->config;
	struct abi_table *in_config = &config->table[config->active % ABI_TABLES];
	int error = open_tables(kernel, in_config, filter_geometry(kernel), tables);

	if (!error)
		error = map_tables(kernel, in_config, tables, true);
	if (error)
		filter_tables_close(tables);
	return error;
}

void filter_tables_close(struct filter_tables *tables)
{
	for (enum filter_part part = 0; part < FILTER_PARTS; part++)
		table_close(&tables->part[part]);
}

int filter_open_table_memory(struct filter *filter, struct bucket_geometry geometry)
{
	const int error = open_tables(&filter->kernel, filter_abi_table(filter), geometry, &filter->tables);

	for (enum filter_part part = 0; part < FILTER_PARTS; part++)
		filter->tables.part[part].reach = filter->tables.part[part].search ? reach : NULL;
	filter_note_readers(filter);
	return error;
}

int filter_reopen(struct filter *filter, struct reason *reason)
{
	int error;

	filter_tables_close(&filter->tables);
	filter->which = filter->kernel.config->active % ABI_TABLES;
	error = filter_open_table_memory(filter, filter_geometry(&filter->kernel));
	if (!error) {
		filter_read_used(filter);
		filter_read_published(filter);
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
	filter_tables_close(&filter->tables);
	if (!filter->shares_maps)
		kernel_close(&filter->kernel);
}

void filter_give_back(struct filter *filter, struct kernel_filter *kernel)
{
	*kernel = filter->kernel;
	filter->kernel = (struct kernel_filter){};
	filter_close(filter);
}

/* ---- packets that use it ---- */

/*
 * The reader is the BPF program. It reads the sequence, the first bucket of a key, the second, and the sequence again.
 * If an entry moved meanwhile, the sequence has changed (table/publish_order.h). The loads must keep this order.
 * Some processors reorder them, unless the program makes each load depend on the one before. If neither the
 * processor nor the program keeps the order, the writer waits in each move until all look-ups that have begun are over.
 *
 * Two kinds of table have no readers, and need no wait: a successor that is in the same maps but not yet in use, and
 * the table of a filter that is not set up, because then the program looks up nothing.
 */
static bool must_wait_for_readers(const struct filter *filter)
{
	const bool has_readers = !filter->shares_maps && filter->kernel.config->run & ABI_RUN_SET_UP;

	return has_readers && !ABI_LOADS_IN_ORDER && !filter->kernel.options.orders_loads;
}

void filter_note_readers(struct filter *filter)
{
	for (enum filter_part part = 0; part < FILTER_PARTS; part++)
		filter->tables.part[part].waits_for_readers = must_wait_for_readers(filter);
}

int filter_wait_for_packets(const struct filter *filter, struct reason *reason)
{
	const bool has_packets = !filter->shares_maps && filter->kernel.attachments_count;
	const int error = has_packets ? grace_wait() : 0;

	return error ? reason_set(reason, error, "cannot wait for a grace period: %s", strerror(-error)) : 0;
}

/* ---- what the config says of it ---- */

void filter_save_counts(struct filter *filter)
{
	struct abi_table *in_config = filter_abi_table(filter);
	const struct filter_parts keys = filter_keys_with(filter, (struct filter_parts){});

	in_config->used = keys.records;
	in_config->addresses.used = keys.addresses;
	for (struct table *table = filter->tables.part; table < filter->tables.part + FILTER_PARTS; table++) {
		in_config->moves += table->moves;
		table->moves = 0;
		if (in_config->longest_path < table->longest_path)
			in_config->longest_path = table->longest_path;
	}
	if (!filter->shares_maps)
		filter->kernel.config->used = keys.records + keys.addresses;
}

void filter_read_used(struct filter *filter)
{
	filter->table.used = filter_abi_table(filter)->used;
	filter->tables.part[FILTER_ADDRESSES].used = filter_abi_table(filter)->addresses.used;
}

void filter_set_generation(struct filter *filter, __u64 generation)
{
	filter_save_counts(filter);
	__atomic_store_n(&filter->kernel.config->generation, generation, __ATOMIC_RELEASE);
}

/* ---- reasons ---- */

int filter_unmapped_reason(struct reason *reason)
{
	return reason_set(reason, -ENOMEM, "no memory to map the filter's table");
}

int filter_other_store_reason(const struct kernel_filter *kernel, struct reason *reason)
{
	return reason_set(reason, -ESTALE,
			  "the filter '%s' on %s is filled from another store; give the --state it was "
			  "loaded with",
			  kernel->config->name, kernel->attachments[0].interface);
}
