// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fills an empty table: inserts whose memory is asked for some keys ahead. */
#include "table_core.h"

FLOW_INLINE int build(struct table *table, struct bucket_layout layout,
		      const struct table_entry *entries, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int error;

		if (i + CORE_AHEAD < count)
			core_prefetch(table, layout, &entries[i + CORE_AHEAD].key);
		error = core_insert(table, layout, &entries[i].key, entries[i].expires);
		if (error)
			return error;
	}
	return 0;
}

/* Now that nothing moves any more, each key takes the number of its slot: see struct abi_counted. */
static void number_by_slots(const struct table *table)
{
	const struct bucket_layout layout = core_exact();

	for (__u64 slot = 0; slot < table_slots(table); slot++) {
		const struct table_place place = { slot / BUCKET_SLOTS, slot % BUCKET_SLOTS };
		const bool is_filled = table_load(table, layout, place);

		if (is_filled)
			table_record_at(table, slot)->number = slot;
		*table_counter(table, slot) = (struct abi_counter){ 0, is_filled ? ABI_RULE_TAKEN : 0 };
	}
}

int table_build(struct table *table, const struct table_entry *entries, size_t count)
{
	const int error = CORE_CALL(build, table, entries, count);

	if (!error && table->memory.has_counts)
		number_by_slots(table);
	return error;
}
