// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fills an empty table: inserts whose memory is asked for some keys ahead. */
#include "table_core.h"

FLOW_INLINE int build(struct table *table, struct bucket_layout layout,
		      const struct siphash_value *keys, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int error;

		if (i + CORE_AHEAD < count)
			core_prefetch(table, layout, &keys[i + CORE_AHEAD]);
		error = core_insert(table, layout, &keys[i]);
		if (error)
			return error;
	}
	return 0;
}

int table_build(struct table *table, const struct siphash_value *keys, size_t count)
{
	return CORE_CALL(build, table, keys, count);
}
