// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A filter and its tables: where a table is in the maps, how many keys it may hold, and how one key changes. The top of
 * include/abi.h explains "table", "slot", "record" and "tick".
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "filter/internal.h"

void filter_lay_out(const struct kernel_filter *kernel, unsigned int tables, __u64 slots)
{
	for (unsigned int i = 0; i < tables; i++) {
		struct abi_table *table = &kernel->config->table[i];

		table->first_bucket = i * slots / BUCKET_SLOTS;
		table->first_slot = i * slots;
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

/* Maps the buckets, records and, if asked for, counters of `slots` slots from `slot` on. */
static int map_slots(const struct kernel_filter *kernel, const struct abi_table *in_config, __u64 slot, __u64 slots,
		     bool has_counters)
{
	const __u64 first = in_config->first_slot + slot;
	int error = map_buckets(kernel, in_config->first_bucket + slot / BUCKET_SLOTS, slots / BUCKET_SLOTS);

	if (kernel->options.is_exact && !error)
		error = kernel_map_part(&kernel->map[KERNEL_RECORDS], first * sizeof(__u64), slots * sizeof(__u64));
	if (kernel->options.has_counts && has_counters && !error)
		error = kernel_map_part(&kernel->map[KERNEL_COUNTS], first * sizeof(struct abi_counter),
					slots * sizeof(struct abi_counter));
	return error;
}

int filter_map_entries(const struct filter *filter)
{
	return map_slots(&filter->kernel, filter_abi_table(filter), 0, table_slots(&filter->table), false);
}

/* See `reach` in table.h. */
static int reach(const struct table *table, __u64 slot, __u64 slots)
{
	const struct filter *filter = (const void *)((const char *)table - offsetof(struct filter, table));
	const struct abi_table *in_config = filter_abi_table(filter);

	return (slots ? map_slots(&filter->kernel, in_config, slot, slots, true) :
			map_buckets(&filter->kernel, in_config->first_bucket, table->geometry.buckets)) ?
		       -ENOMEM :
		       0;
}

static int open_table(const struct kernel_filter *kernel, struct abi_table *in_config, struct bucket_geometry geometry,
		      struct table *table)
{
	const struct abi_options *options = &kernel->options;
	const struct kernel_map *buckets = &kernel->map[KERNEL_BUCKETS], *records = &kernel->map[KERNEL_RECORDS],
				*counts = &kernel->map[KERNEL_COUNTS], *hints = &kernel->map[KERNEL_HINTS];
	const __u64 before = bytes_of_buckets(kernel, in_config->first_bucket), slots = table_slots_of(geometry);
	const struct table_memory memory = {
		.bucket = (char *)buckets->memory + before,
		.record = options->is_exact ? (__u64 *)records->memory + in_config->first_slot : NULL,
		.counter = options->has_counts ? (struct abi_counter *)counts->memory + in_config->first_slot : NULL,
		.sequence = &in_config->sequence,
	};

	*table = (struct table){};
	/* A filter that another tool has just loaded has no layout yet, so there is none to check. */
	if ((in_config->hint_shift || kernel->config->magic) &&
	    (in_config->hint_shift < ABI_HINT_SHIFT_LEAST || in_config->hint_shift > ABI_HINT_SHIFT_MOST ||
	     in_config->first_hint[0] > hints->bytes ||
	     in_config->first_hint[0] + ABI_HINTS(in_config->hint_shift) > hints->bytes))
		return -EINVAL;
	if (options->format >= BUCKET_FORMATS || before + bytes_of_buckets(kernel, geometry.buckets) > buckets->bytes ||
	    (memory.record && in_config->first_slot + slots > records->entries) ||
	    (memory.counter && in_config->first_slot + slots > counts->entries))
		return -EINVAL;
	return table_open(table, options->format, geometry, &memory);
}

int filter_open_table(const struct kernel_filter *kernel, struct table *table)
{
	struct abi_config *config = kernel->config;
	struct abi_table *in_config = &config->table[config->active % ABI_TABLES];
	int error = open_table(kernel, in_config, filter_geometry(kernel), table);

	if (!error)
		error = map_slots(kernel, in_config, 0, table_slots(table), true);
	if (error)
		table_close(table);
	return error;
}

/*
 * The reader is the BPF program. It reads the sequence, the first bucket of a key, the second, and the sequence again.
 * If an entry moved meanwhile, the sequence has changed (table/publish_order.h). The loads must keep this order.
 * Some processors reorder them, unless the program makes each load depend on the one before. If neither the
 * processor nor the program keeps the order, the writer waits in each move until all look-ups that have begun are over.
 *
 * Two kinds of table have no readers, and need no wait: a successor that is in the same maps but not yet in use, and
 * the table of a filter that is not set up, because then the program looks up nothing.
 */
bool filter_must_wait_for_readers(const struct filter *filter)
{
	const bool has_readers = !filter->shares_maps && filter->kernel.config->run & ABI_RUN_SET_UP;

	return has_readers && !ABI_LOADS_IN_ORDER && !filter->kernel.options.orders_loads;
}

int filter_open_table_memory(struct filter *filter, struct bucket_geometry geometry)
{
	const int error = open_table(&filter->kernel, filter_abi_table(filter), geometry, &filter->table);

	filter->table.reach = reach;
	filter->table.waits_for_readers = filter_must_wait_for_readers(filter);
	return error;
}

int filter_reopen(struct filter *filter, struct reason *reason)
{
	int error;

	table_close(&filter->table);
	filter->which = filter->kernel.config->active % ABI_TABLES;
	error = filter_open_table_memory(filter, filter_geometry(&filter->kernel));
	if (!error) {
		filter->table.used = filter_abi_table(filter)->used;
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

void filter_save_counts(struct filter *filter)
{
	struct abi_table *in_config = filter_abi_table(filter);

	in_config->used = filter->table.used;
	in_config->moves += filter->table.moves;
	filter->table.moves = 0;
	if (in_config->longest_path < filter->table.longest_path)
		in_config->longest_path = filter->table.longest_path;
	if (!filter->shares_maps)
		filter->kernel.config->used = in_config->used;
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

/* ---- how many keys a table may hold, and how large its successor must be ---- */

__u64 filter_all_slots(const struct kernel_filter *kernel)
{
	return (__u64)kernel->map[KERNEL_BUCKETS].entries * BUCKET_SLOTS * (kernel->options.format == BUCKET_8 ? 2 : 1);
}

unsigned int filter_tables(const struct kernel_filter *kernel)
{
	return kernel->config->table[ABI_TABLES - 1].first_slot ? ABI_TABLES : 1;
}

__u64 filter_room(const struct kernel_filter *kernel)
{
	return filter_tables(kernel) == 1 ? filter_all_slots(kernel) : kernel->config->table[1].first_slot;
}

bool filter_has_room(const struct filter *filter, __u64 keys)
{
	return keys <= table_slots(&filter->table) * TABLE_LOAD_PERCENT / 100;
}

__u64 filter_slots_to_grow_to(const struct filter *filter, __u64 keys)
{
	const __u64 room = filter_room(&filter->kernel);
	__u64 wanted;

	if (filter_has_room(filter, keys))
		return table_slots(&filter->table);
	wanted = table_slots_for(keys + keys / 2);
	/* If the room of the maps takes the keys and an eighth more, use all of it: new maps need a new program. */
	if (wanted > room && filter_tables(&filter->kernel) == ABI_TABLES && table_slots_for(keys + keys / 8) <= room)
		return room;
	/* If another tool holds the filter, it cannot get other maps. */
	if (wanted > room && kernel_held_attachment(&filter->kernel))
		return room;
	return wanted <= 1ULL << ABI_SLOTS_MAX_LOG2 ? wanted : table_slots_for(keys);
}

int filter_full_reason(const struct filter *filter, __u64 keys, struct reason *reason)
{
	const struct kernel_attachment *held = kernel_held_attachment(&filter->kernel);

	if (held) {
		char options[64];

		snprintf(options, sizeof(options), " --capacity N, N at least %llu", 2 * (unsigned long long)keys);
		return kernel_held_reason(&filter->kernel, held, options, -ENOSPC, reason,
					  "table full: %llu keys do not fit into %llu slots", (unsigned long long)keys,
					  (unsigned long long)table_slots(&filter->table));
	}
	return reason_set(reason, -ENOSPC,
			  "table full: %llu keys do not fit into %llu slots, and a table holds at most %llu; "
			  "delete rules first",
			  (unsigned long long)keys, (unsigned long long)table_slots(&filter->table),
			  (1ULL << ABI_SLOTS_MAX_LOG2) * TABLE_LOAD_PERCENT / 100);
}

/* ---- one key ---- */

/* Two processes' estimates of the present tick differ by one at most; 16 leaves a margin. */
#define AHEAD_TICKS 16
#define STOPPED_MS 100 /* more time than this between two reads of clocks: the process was stopped */

/*
 * Reads two clocks: the store's, and that of the ticks. If this process was stopped between the two reads, the rule
 * would end later by that time. Then both are read again.
 */
int filter_tick(const struct store *store, __s64 timeout_ms, __u32 *tick, struct reason *reason)
{
	__s64 lag_ms, left_ms;
	int error;

	do {
		lag_ms = timeout_ms ? store_lag_ms(store) : 0;
		left_ms = timeout_ms - lag_ms;
		/*
		 * ticks_at(0) means never. A rule that ends in 0 ms must not stay for ever: -1 says that it has ended.
		 */
		error = ticks_at(timeout_ms && !left_ms ? -1 : left_ms, tick, reason);
	} while (!error && timeout_ms && store_lag_ms(store) - lag_ms > STOPPED_MS);
	return error;
}

__u32 filter_end(const struct filter *filter, __u32 tick)
{
	const __u32 epoch = filter_abi_table(filter)->epoch;

	/* An end at the epoch becomes 1, because 0 means never. */
	if (!tick || tick - epoch <= ABI_END_MAX)
		return tick ? tick - epoch + (tick == epoch) : 0;
	/* Before the epoch: ended, so 1. Too far ahead for a record: 0, and the tool deletes the entry later. */
	return tick < epoch;
}

bool filter_has_aged(const struct filter *filter, __u32 tick)
{
	const __u32 epoch = filter_abi_table(filter)->epoch;
	struct reason ignored;
	__u32 now;

	if (!tick || ticks_now(&now, &ignored))
		return false;
	/* The epoch may be just after `now`: another process set it, whose estimate of the tick is ahead. */
	return now - epoch > ABI_END_MAX / 2 && epoch - now > AHEAD_TICKS;
}

int filter_insert(struct filter *filter, const struct rule_key *key, __u32 tick)
{
	const struct hash_value value = rule_hash(key, &filter_abi_table(filter)->secret);
	__u64 hint;
	int error = filter_assign_hint(filter, &key->shape, &hint);

	if (error)
		return error;
	/* The hint comes before the key, or packets would skip the look-up. Shortcuts (shape.h) come after the key. */
	hints_mark(filter_hints(filter), key, hint);
	error = table_insert(&filter->table, &value, filter_end(filter, tick));
	if (!error && !tick)
		hints_set_shortcuts(filter_hints(filter), key);
	return error;
}

int filter_delete(struct filter *filter, const struct rule_key *key)
{
	const struct hash_value value = rule_hash(key, &filter_abi_table(filter)->secret);

	hints_clear_shortcuts(filter_hints(filter), key);
	return table_delete(&filter->table, &value);
}

int filter_set_end(struct filter *filter, const struct rule_key *key, __u32 tick, bool *is_later)
{
	const struct hash_value value = rule_hash(key, &filter_abi_table(filter)->secret);
	int error;

	if (!filter->kernel.options.is_exact)
		return 0;
	if (tick)
		hints_clear_shortcuts(filter_hints(filter), key);
	error = table_set_end(&filter->table, &value, filter_end(filter, tick), is_later);
	if (!error && !tick)
		hints_set_shortcuts(filter_hints(filter), key);
	return error;
}
