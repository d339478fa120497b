// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How many keys a table may hold, and how large its successor must be. */
#include <errno.h>
#include <stdio.h>

#include "filter/internal.h"

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

bool filter_holds(const struct filter *filter, __u64 keys)
{
	return keys <= table_slots(&filter->table) * TABLE_LOAD_PERCENT / 100;
}

__u64 filter_slots_to_grow_to(const struct filter *filter, __u64 keys)
{
	const __u64 room = filter_room(&filter->kernel);
	__u64 wanted;

	if (filter_holds(filter, keys))
		return table_slots(&filter->table);
	wanted = table_slots_for(keys + keys / 2);
	/* Use all the room of the maps if that is enough, because new maps need a new program. */
	if (wanted > room && filter_tables(&filter->kernel) == ABI_TABLES && table_slots_for(keys + keys / 8) <= room)
		return room;
	/* If another tool holds the filter, it cannot get other maps. */
	if (wanted > room && kernel_held_attachment(&filter->kernel))
		return room;
	return wanted <= 1ULL << ABI_SLOTS_MAX_LOG2 ? wanted : table_slots_for(keys);
}

int filter_say_full(const struct filter *filter, __u64 keys, struct reason *reason)
{
	const struct kernel_attachment *held = kernel_held_attachment(&filter->kernel);

	if (held) {
		char options[64];

		snprintf(options, sizeof(options), " --capacity N, N at least %llu", 2 * (unsigned long long)keys);
		return kernel_say_held(&filter->kernel, held, options, -ENOSPC, reason,
				       "table full: %llu keys do not fit into %llu slots", (unsigned long long)keys,
				       (unsigned long long)table_slots(&filter->table));
	}
	return reason_set(reason, -ENOSPC,
			  "table full: %llu keys do not fit into %llu slots, and a table holds at most %llu; "
			  "delete rules first",
			  (unsigned long long)keys, (unsigned long long)table_slots(&filter->table),
			  (1ULL << ABI_SLOTS_MAX_LOG2) * TABLE_LOAD_PERCENT / 100);
}
