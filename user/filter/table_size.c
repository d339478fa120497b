// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How many keys a table may hold, and how large its successor must be. */
#include <errno.h>

#include "filter/internal.h"

__u64 target_all_slots(const struct kernel_filter *filter)
{
	return (__u64)filter->map[KERNEL_BUCKETS].entries * BUCKET_SLOTS * (filter->options.format == BUCKET_8 ? 2 : 1);
}

unsigned int target_tables(const struct kernel_filter *filter)
{
	return filter->config->table[ABI_TABLES - 1].first_slot ? ABI_TABLES : 1;
}

__u64 target_room(const struct kernel_filter *filter)
{
	return target_tables(filter) == 1 ? target_all_slots(filter) : filter->config->table[1].first_slot;
}

bool target_holds(const struct target *target, __u64 keys)
{
	return keys <= table_slots(&target->table) * TABLE_LOAD_PERCENT / 100;
}

bool target_has_room(const struct target *target, __u64 keys)
{
	return target_holds(target, target->table.used + keys);
}

__u64 target_slots_to_grow_to(const struct target *target, __u64 keys)
{
	const __u64 room = target_room(&target->filter), slots = table_slots(&target->table);
	__u64 wanted = table_slots_for(keys + keys / 2);

	if (target_holds(target, keys))
		return slots;
	/* Use all the room of the maps if that is enough, because new maps need a new program. */
	if (wanted > room && target_tables(&target->filter) == ABI_TABLES && table_slots_for(keys + keys / 8) <= room)
		return room;
	/* If another tool holds the filter, it cannot get other maps. */
	if (wanted > room && kernel_held_attachment(&target->filter))
		return room;
	return wanted <= 1ULL << ABI_SLOTS_MAX_LOG2 ? wanted : table_slots_for(keys);
}

int target_say_full(const struct target *target, __u64 keys, struct reason *reason)
{
	const struct kernel_attachment *held = kernel_held_attachment(&target->filter);

	if (held)
		return reason_set(reason, -ENOSPC,
				  "table full: %llu keys do not fit into %llu slots, and on '%s' libxdp's dispatcher "
				  "holds the filter; take it off (xdp-loader unload %s -i %u), then load it "
				  "with --capacity %llu or more",
				  (unsigned long long)keys, (unsigned long long)table_slots(&target->table),
				  held->interface, held->interface, held->prog_id, 2 * (unsigned long long)keys);
	return reason_set(reason, -ENOSPC,
			  "table full: %llu keys do not fit into %llu slots, and a table holds at most %llu; "
			  "delete rules first",
			  (unsigned long long)keys, (unsigned long long)table_slots(&target->table),
			  (1ULL << ABI_SLOTS_MAX_LOG2) * TABLE_LOAD_PERCENT / 100);
}
