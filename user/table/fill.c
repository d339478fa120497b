// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "table/insert_delete.h"

FLOW_INLINE int build(struct table *table, struct bucket_layout layout, const struct table_entry *entries, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int error;

		if (i + CORE_AHEAD < count)
			core_prefetch(table, layout, &entries[i + CORE_AHEAD].key);
		error = core_insert(table, layout, &entries[i].key, entries[i].end);
		if (error)
			return error;
	}
	return 0;
}

/* All counters are 0, so keys may move without them, which is faster. */
int table_build(struct table *table, const struct table_entry *entries, size_t count)
{
	struct abi_counter *counter = table->memory.counter;
	int error;

	table->memory.counter = NULL;
	error = CORE_CALL(build, table, entries, count);
	table->memory.counter = counter;
	return error;
}
