// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sizes: how many slots a table has, how many the maps have room for, how many keys fit, how large
 * a new table and its maps must be. Changes nothing. Three words: *slots* are those of a table; its
 * *room* are the slots that the maps have for it; *parts* are both numbers, of the records and of
 * the addresses (parts.c).
 */
#include <errno.h>
#include <stdio.h>

#include "filter/internal.h"

/* ---- of the present table ---- */

static __u64 slots_of_maps(const struct kernel_filter *kernel)
{
	return (__u64)kernel->map[KERNEL_BUCKETS].entries * BUCKET_SLOTS * (kernel->options.format == BUCKET_8 ? 2 : 1);
}

__u64 filter_all_slots(const struct kernel_filter *kernel)
{
	return kernel->options.has_addresses ? kernel->config->table[0].addresses.first_slot : slots_of_maps(kernel);
}

__u64 filter_tables_slots(const struct filter_tables *tables)
{
	return table_slots(&tables->part[FILTER_RECORDS]) + table_slots(&tables->part[FILTER_ADDRESSES]);
}

struct filter_parts filter_slots_of_parts(const struct kernel_filter *kernel)
{
	return (struct filter_parts){ .records = table_slots_of(filter_geometry(kernel)),
				      .addresses = table_slots_of(abi_active(kernel->config)->addresses.geometry) };
}

__u64 filter_slots(const struct kernel_filter *kernel)
{
	const struct filter_parts slots = filter_slots_of_parts(kernel);

	return slots.records + slots.addresses;
}

unsigned int filter_tables(const struct kernel_filter *kernel)
{
	return kernel->config->table[ABI_TABLES - 1].first_slot ? ABI_TABLES : 1;
}

struct filter_parts filter_room_of_parts(const struct kernel_filter *kernel)
{
	const __u64 records = filter_all_slots(kernel), tables = filter_tables(kernel);

	return (struct filter_parts){ .records = tables == 1 ? records : kernel->config->table[1].first_slot,
				      .addresses = (slots_of_maps(kernel) - records) / tables };
}

__u64 filter_room(const struct kernel_filter *kernel)
{
	const struct filter_parts room = filter_room_of_parts(kernel);

	return room.records + room.addresses;
}

bool filter_has_room(const struct filter *filter, struct filter_parts keys)
{
	const struct table *table = filter->tables.part;

	if (!table[FILTER_ADDRESSES].search) {
		keys.records += keys.addresses - keys.both;
		keys.addresses = 0;
	}
	return keys.records <= table_slots(&table[FILTER_RECORDS]) * TABLE_LOAD_PERCENT / 100 &&
	       keys.addresses <= table_slots(&table[FILTER_ADDRESSES]) * TABLE_LOAD_PERCENT / 100;
}

struct filter_parts filter_keys_with(const struct filter *filter, struct filter_parts more)
{
	return (struct filter_parts){ .records = filter->table.used + more.records,
				      .addresses = filter->tables.part[FILTER_ADDRESSES].used + more.addresses };
}

__u64 filter_slots_to_grow_to(const struct filter *filter, struct filter_parts of)
{
	const __u64 slots = filter_tables_slots(&filter->tables);
	const __u64 room = filter_room(&filter->kernel);
	const __u64 keys = of.records + of.addresses - (filter->kernel.options.has_addresses ? 0 : of.both);
	__u64 wanted;

	if (filter_has_room(filter, of))
		return slots;
	wanted = table_slots_for(keys + keys / 2);
	/* One part is full, and the other has many free slots. */
	if (wanted <= slots)
		wanted = slots + 1;
	/* If the room of the maps takes the keys and an eighth more, use all of it: new maps need a new program. */
	if (wanted > room && room > slots && filter_tables(&filter->kernel) == ABI_TABLES &&
	    table_slots_for(keys + keys / 8) <= room)
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
					  (unsigned long long)filter_slots(&filter->kernel));
	}
	return reason_set(reason, -ENOSPC,
			  "table full: %llu keys do not fit into %llu slots, and a table holds at most %llu; "
			  "delete rules first",
			  (unsigned long long)keys, (unsigned long long)filter_slots(&filter->kernel),
			  (1ULL << ABI_SLOTS_MAX_LOG2) * TABLE_LOAD_PERCENT / 100);
}

/* ---- what the rules of a store need ---- */

int filter_read_need(struct store *store, struct filter_need *need)
{
	struct filter_parts *keys = &need->keys;
	double addresses = 0, factor, most = 1, timed;
	int error = store_info(store, &need->info);

	if (!error)
		error = store_shapes(store, &need->shapes);
	for (size_t i = 0; !error && i < need->shapes.count; i++) {
		const struct shape_list_entry *entry = &need->shapes.entry[i];

		if (!filter_is_address(&entry->shape))
			continue;
		factor = rule_expansion_factor(&entry->shape, &entry->probed_as);
		addresses += entry->keys * factor;
		most = factor > most ? factor : most;
	}
	if (error)
		return error;
	/* Nobody counts the timed ones of these rules alone. */
	timed = need->info.timed * most;
	keys->addresses = addresses;
	keys->both = timed < addresses ? timed : addresses;
	keys->records = need->info.keys - keys->addresses + keys->both;
	return 0;
}

/*
 * Of a part of 2.3 MiB for addresses, few lines stay in the caches, so packets that match nothing wait longer than for a
 * small table with records. So only a table with many such keys has this part.
 */
__u64 filter_addresses_least = 500000;

#define RECORDS_LEAST (1ULL << 14) /* slots, where there is a part for addresses */

/*
 * With the part, the shapes of these rules count twice, and there must be room for that. A part
 * that is there stays: the table gets no smaller, and with records it would take much more memory.
 */
static bool is_wanted(const struct filter_need *need, bool has_now)
{
	const __u64 addresses = need->keys.addresses, timed = need->info.timed;
	struct rule_shape probed[ABI_SHAPES_MAX];

	return (has_now || (addresses > timed && addresses - timed >= filter_addresses_least)) &&
	       shape_list_probed(&need->shapes, FLOW_IPV4, probed) <= ABI_SHAPES_MAX / 2;
}

/* A part that takes the keys stays as large as it is. */
static __u64 slots_of_part(__u64 slots, __u64 keys)
{
	return keys <= slots * TABLE_LOAD_PERCENT / 100 ? slots : table_slots_for(keys + keys / 2);
}

/*
 * Makes the part larger that is full. If there is none, or that is not enough, both get the same
 * share of the free slots, as far as the room of the maps goes if that takes the keys. Beyond it,
 * there are at least `slots`.
 */
static struct filter_parts share_slots(struct filter_parts keys, __u64 slots,
				       const struct filter_parts *room,
				       const struct filter_parts *present)
{
	const struct filter_parts least = { .records = table_slots_for(keys.records),
					    .addresses = table_slots_for(keys.addresses) };
	const bool fits = least.records <= room->records && least.addresses <= room->addresses;
	double share = slots / (double)table_slots_for(keys.records + keys.addresses);
	struct filter_parts plan = { .records = slots_of_part(present->records, keys.records),
				     .addresses = slots_of_part(present->addresses, keys.addresses) };

	share = share > 1 ? share : 1;
	if (!present->records || plan.records + plan.addresses < slots)
		plan = (struct filter_parts){ .records = share * least.records,
					      .addresses = share * least.addresses };
	plan.records = plan.records > RECORDS_LEAST ? plan.records : RECORDS_LEAST;
	plan.records = table_slots_of(table_geometry(plan.records));
	plan.addresses = table_address_slots(plan.addresses);
	if (fits && slots <= room->records + room->addresses) {
		plan.records = plan.records < room->records ? plan.records : room->records;
		plan.addresses = plan.addresses < room->addresses ? plan.addresses : room->addresses;
		return plan.records + plan.addresses < slots ? *room : plan;
	}
	while (plan.records + plan.addresses < slots && plan.addresses < 1ULL << ABI_SLOTS_MAX_LOG2)
		plan.addresses = table_address_slots(plan.addresses + 1);
	return plan;
}

struct filter_parts filter_plan_parts(const struct filter_need *need, const struct filter *present, __u64 slots,
				      struct abi_options *options)
{
	const bool has_now = present && present->kernel.options.has_addresses;
	/* Else the operator makes it smaller. */
	const bool stays = has_now && slots >= filter_slots(&present->kernel);
	const struct filter_parts none = {}, room = has_now ? filter_room_of_parts(&present->kernel) : none;
	const struct filter_parts now = stays ? filter_slots_of_parts(&present->kernel) : none;

	options->has_addresses = options->is_exact && is_wanted(need, stays);
	if (present && kernel_held_attachment(&present->kernel))
		options->has_addresses = has_now;
	if (options->has_addresses)
		return share_slots(need->keys, slots, &room, &now);
	return (struct filter_parts){ .records = slots };
}

/* ---- of a new table, and its maps ---- */

/*
 * Maps get room for a second table, so that a table can be replaced without new maps. This costs memory, so only
 * tables up to a limit get it. Small tables also get room to grow.
 */
#define ROOM_SLOTS_LEAST (1ULL << 17)
#define ROOM_BYTES_MOST (64ULL << 20) /* of one table */

struct kernel_sizes filter_plan_maps(const struct abi_options *options, struct filter_parts slots, __u32 hint_shift)
{
	const bool has_least = options->is_alone || slots.records >= ROOM_SLOTS_LEAST;
	const struct bucket_geometry geometry = table_geometry(has_least ? slots.records : ROOM_SLOTS_LEAST);
	struct kernel_sizes plan = { .options = *options,
				     .tables = 1,
				     .slots = table_slots_of(geometry),
				     .bucket_bytes = table_bucket_bytes(options->format, geometry) +
						     slots.addresses * sizeof(__u16),
				     .addresses = slots.addresses,
				     .hint_shift = hint_shift };

	plan.options.orders_loads = !ABI_LOADS_IN_ORDER; /* of the built-in programs */
	if (!options->is_alone && kernel_sizes_bytes(&plan) <= ROOM_BYTES_MOST)
		plan.tables = ABI_TABLES;
	return plan;
}

/* If the maps have much more room than wanted, new maps are better, because they save memory. */
bool filter_fits_into_maps(const struct filter *filter, struct filter_parts slots)
{
	const struct filter_parts room = filter_room_of_parts(&filter->kernel);
	const __u64 wanted = table_slots_of(table_geometry(slots.records));

	return filter_tables(&filter->kernel) == ABI_TABLES && wanted <= room.records &&
	       slots.addresses <= room.addresses &&
	       (((room.records <= ROOM_SLOTS_LEAST || room.records / 4 <= wanted) &&
		 room.addresses / 4 <= slots.addresses) ||
		kernel_held_attachment(&filter->kernel));
}

bool filter_can_build_successor(const struct filter *filter, __u64 slots)
{
	return (filter_tables(&filter->kernel) == ABI_TABLES && slots <= filter_room(&filter->kernel)) ||
	       !kernel_held_attachment(&filter->kernel);
}
