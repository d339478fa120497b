/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inserts and deletes an entry, for any layout of buckets: see find_entry.h. */
#ifndef XDP_CUCKOO_TABLE_INSERT_DELETE_H
#define XDP_CUCKOO_TABLE_INSERT_DELETE_H

#include <errno.h>
#include <stdlib.h>

#include "table/find_entry.h"
#include "table/kick_path.h"

/*
 * Opens a table over memory of core_bytes(). The caller sets table->format before it uses CORE_CALL, and closes the
 * table with free(table->search). 0 or -ENOMEM.
 */
FLOW_INLINE int core_open(struct table *table, struct bucket_layout layout, struct bucket_geometry geometry,
			  const struct table_memory *memory)
{
	*table = (struct table){ .geometry = geometry,
				 .memory = *memory,
				 .reciprocal = address_reciprocal(geometry.buckets) };
	if (!layout.lane_bits)
		table->prefixes = semisort_prefixes();
	table->search = malloc(sizeof(*table->search));
	return table->search ? 0 : -ENOMEM;
}

FLOW_INLINE __u64 core_bytes(struct bucket_layout layout, struct bucket_geometry geometry)
{
	return ((__u64)geometry.buckets * bucket_bits(layout) + 63) / 64 * 8;
}

FLOW_INLINE __u64 core_count(const struct table *table, struct bucket_layout layout)
{
	__u64 count = 0;

	for (__u32 i = 0; i < table->geometry.buckets; i++) {
		const struct bucket bucket = table_bucket(table, layout, i);

		for (unsigned int slot = 0; slot < layout.slots; slot++)
			count += bucket_get(bucket, layout, slot, table->prefixes) != 0;
	}
	return count;
}

FLOW_INLINE int core_insert(struct table *table, struct bucket_layout layout, const struct hash_value *key, __u32 end)
{
	const struct bucket_pair pair = core_pair(table, layout, key);
	__u32 fingerprint = pair.fingerprint;
	struct table_place place;
	int error = core_reach_pair(table, layout, &pair);

	if (error)
		return error;
	if (!core_find_free(table, layout, pair.first, &place) && !core_find_free(table, layout, pair.second, &place)) {
		const int at = core_search(table, layout, &pair, &place);

		error = at < 0 ? at : core_reach_path(table, layout, at);
		if (error)
			return error;
		core_move_path(table, layout, at, &place);
	}
	if (place.bucket != pair.first)
		fingerprint ^= layout.side;
	table_publish(table, layout, place, fingerprint, abi_record(key->tag, end));
	table->used++;
	return 0;
}

/* Finds an equal entry elsewhere: in the other bucket, or in the other word of the same bucket. */
FLOW_INLINE bool core_find_twin(const struct table *table, struct bucket_layout layout, struct table_place place,
				__u32 fingerprint, __u64 tag, struct table_place *twin)
{
	const __u32 other = core_other(table, layout, place.bucket, fingerprint);

	*twin = (struct table_place){ other, 0 };
	if ((other != place.bucket || layout.side) &&
	    core_find_entry(table, layout, *twin, fingerprint ^ layout.side, tag, twin))
		return true;
	if (bucket_bits(layout) <= 64)
		return false;
	*twin = (struct table_place){ place.bucket, 0 };
	if (core_find_entry(table, layout, *twin, fingerprint, tag, twin) && twin->slot != place.slot)
		return true;
	twin->slot = place.slot + 1;
	return core_find_entry(table, layout, *twin, fingerprint, tag, twin);
}

/*
 * A twin is an equal entry in another slot. A reader may have read that slot before the twin came. To that reader, the
 * insert of the twin and this erase are a move, so they are announced like a move. In an exact table only a crash
 * leaves a twin.
 */
FLOW_INLINE void core_erase(struct table *table, struct bucket_layout layout, struct table_place place,
			    __u32 fingerprint, __u64 tag)
{
	struct table_place twin;
	const bool has_twin = core_find_twin(table, layout, place, fingerprint, tag, &twin);

	if (has_twin)
		table_announce(table);
	table_store(table, layout, place, 0);
	if (has_twin)
		table_move_count(table, layout, place, twin);
	table->used--;
}

FLOW_INLINE int core_delete(struct table *table, struct bucket_layout layout, const struct hash_value *key)
{
	const struct bucket_pair pair = core_pair(table, layout, key);
	struct table_place place;
	int error = core_reach_pair(table, layout, &pair);

	if (error)
		return error;
	if (!core_find_key(table, layout, &pair, key->tag, &place))
		return -ENOENT;
	core_erase(table, layout, place, table_load(table, layout, place), key->tag);
	return 0;
}

#define CORE_AHEAD 16 /* keys: about as many cache misses as a CPU can wait for at once */

/* Prefetches the memory that a call for this key needs. Loops over many keys call this CORE_AHEAD keys early. */
FLOW_INLINE void core_prefetch(const struct table *table, struct bucket_layout layout, const struct hash_value *key)
{
	const struct bucket_pair pair = core_pair(table, layout, key);

	table_prefetch(table, layout, pair.first);
	table_prefetch(table, layout, pair.second);
}

#endif
