// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Maps parts of a table's records and counters when they are first needed. A small change needs few parts. */
#include "table/table.h"

#define TABLE_PARTS 64 /* the most; table->reached has a bit for each */
#define TABLE_PART_SLOTS_MIN (1ULL << 16)

int table_reach(struct table *table, __u64 slot)
{
	const __u64 slots = table_slots(table), share = slots / TABLE_PARTS;
	const __u64 part_slots = share > TABLE_PART_SLOTS_MIN ? share : TABLE_PART_SLOTS_MIN;
	const __u64 part = slot / part_slots, first = part * part_slots;
	int error;

	if (!table->reach || table->reached >> part & 1)
		return 0;
	error = table->reach(table, first, slots - first < part_slots ? slots - first : part_slots);
	if (!error)
		table->reached |= 1ULL << part;
	return error;
}

int table_reach_all(struct table *table)
{
	const int error = table->reach ? table->reach(table, 0, table_slots(table)) : 0;

	table->reached = 0; /* a failed call may have unmapped parts */
	if (!error)
		table->reach = NULL;
	return error;
}
