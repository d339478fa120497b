// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fills an empty table: inserts whose memory is asked for some keys ahead, numbered in order. */
#include "table_core.h"

FLOW_INLINE int build_insert(struct table *table, struct bucket_layout layout,
			     const struct siphash_value *key, __u32 number)
{
	const struct bucket_pair pair = core_pair(table, layout, key);
	const struct abi_record record = { .tag = key->tag, .number = number };
	struct table_place place;

	if (!core_find_free(table, layout, pair.first, &place) &&
	    !core_find_free(table, layout, pair.second, &place)) {
		const int at = core_search(table, layout, &pair, &place);

		if (at < 0)
			return at;
		core_move_path(table, layout, at, &place);
	}
	table_publish(table, layout, place, pair.fingerprint, &record);
	table->used++;
	return 0;
}

FLOW_INLINE int build(struct table *table, struct bucket_layout layout,
		      const struct siphash_value *keys, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int error;

		if (i + CORE_AHEAD < count)
			core_prefetch(table, layout, &keys[i + CORE_AHEAD]);
		error = build_insert(table, layout, &keys[i], table->memory.rule ? i : 0);
		if (error)
			return error;
	}
	return 0;
}

int table_build(struct table *table, const struct siphash_value *keys, size_t count)
{
	const int error = CORE_CALL(build, table, keys, count);

	if (!error)
		numbers_take_first(table, count);
	return error;
}
