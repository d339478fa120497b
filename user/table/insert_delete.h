/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The engine behind table.h, for any layout of buckets: the layout is a constant at every call, and
 * the compiler makes a copy for each. An insert first looks for the whole path of moves and changes
 * nothing meanwhile; the path is then moved from its free end, so that every entry has a home at
 * any time. Internal to the engine and to experiments with other layouts.
 */
#ifndef XDP_CUCKOO_TABLE_CORE_H
#define XDP_CUCKOO_TABLE_CORE_H

#include <errno.h>
#include <stdlib.h>

#include "table/table.h"
#include "table/publish_order.h"

/* A bucket on the way from one of the key's two, which are their own parents. */
struct table_node {
	__u32 bucket;
	__u16 parent; /* index of the node whose entry would move here */
	__u8 slot;    /* of that entry */
};

#define CORE_AHEAD 16 /* keys: about as many cache misses as a core has under way */

struct table_search {
	unsigned int count;
	struct table_node node[TABLE_SEARCH_NODES];
};

/* The layout of an exact table's buckets. */
FLOW_INLINE struct bucket_layout core_exact(void)
{
	struct bucket_layout layout = bucket_layout(BUCKET_16);

	layout.has_records = 1;
	return layout;
}

/* function(table, layout, ...) with the layout of a running table as a constant. */
#define CORE_CALL(function, table, ...) \
	((table)->memory.record       ? function(table, core_exact(), ##__VA_ARGS__) : \
	 (table)->format == BUCKET_16 ? function(table, bucket_layout(BUCKET_16), ##__VA_ARGS__) : \
	 (table)->format == BUCKET_32 ? function(table, bucket_layout(BUCKET_32), ##__VA_ARGS__) : \
	 (table)->format == BUCKET_8  ? function(table, bucket_layout(BUCKET_8), ##__VA_ARGS__) : \
					function(table, bucket_layout(BUCKET_17), ##__VA_ARGS__))

/*
 * A table of any geometry that bucket.h allows, over memory of core_bytes(). 0 or -ENOMEM. It is
 * closed with free(table->search); its format is for whoever use CORE_CALL.
 */
FLOW_INLINE int core_open(struct table *table, struct bucket_layout layout, struct bucket_geometry geometry,
			  const struct table_memory *memory)
{
	*table = (struct table){ .geometry = geometry, .memory = *memory };
	if (!layout.lane_bits)
		table->prefixes = semisort_prefixes();
	table->search = malloc(sizeof(*table->search));
	return table->search ? 0 : -ENOMEM;
}

FLOW_INLINE __u64 core_bytes(struct bucket_layout layout, struct bucket_geometry geometry)
{
	return ((__u64)geometry.buckets * bucket_bits(layout) + 63) / 64 * 8;
}

FLOW_INLINE struct bucket_pair core_pair(const struct table *table, struct bucket_layout layout,
					 const struct hash_value *key)
{
	return bucket_pair(key->hash, table->geometry, layout);
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

/* Before the records or counters of a bucket are used; buckets themselves always can be. */
FLOW_INLINE int core_reach(struct table *table, struct bucket_layout layout, __u32 bucket)
{
	return layout.has_records && table->reach ? table_reach(table, (__u64)bucket * layout.slots) : 0;
}

FLOW_INLINE int core_reach_pair(struct table *table, struct bucket_layout layout, const struct bucket_pair *pair)
{
	const int error = core_reach(table, layout, pair->first);

	return error ? error : core_reach(table, layout, pair->second);
}

/* ---- where an entry stands ---- */

/*
 * The lowest slot that holds `fingerprint`, or `slots` where none does. A match of a word is exact
 * for its lowest lane: borrows only run upwards.
 */
FLOW_INLINE unsigned int core_slot(struct bucket bucket, struct bucket_layout layout, __u32 fingerprint,
				   const __u16 *prefixes)
{
	unsigned int slot = 0;
	__u64 match;

	if (!layout.lane_bits) {
		while (slot < layout.slots && bucket_get(bucket, layout, slot, prefixes) != fingerprint)
			slot++;
		return slot;
	}
	match = bucket_match_word(bucket.word[0], layout, fingerprint);
	if (match)
		return __builtin_ctzll(match) / layout.lane_bits;
	if (bucket_bits(layout) > 64) {
		match = bucket_match_word(bucket.word[1], layout, fingerprint);
		if (match)
			return (64 + __builtin_ctzll(match)) / layout.lane_bits;
	}
	return layout.slots;
}

FLOW_INLINE bool core_find_free(const struct table *table, struct bucket_layout layout, __u32 bucket,
				struct table_place *place)
{
	place->bucket = bucket;
	place->slot = core_slot(table_bucket(table, layout, bucket), layout, 0, table->prefixes);
	return place->slot < layout.slots;
}

/* The place, from `slot` on, of an entry with this fingerprint and, in an exact table, this tag. */
FLOW_INLINE bool core_find_entry(const struct table *table, struct bucket_layout layout, struct table_place from,
				 __u32 fingerprint, __u64 tag, struct table_place *place)
{
	const struct bucket bucket = table_bucket(table, layout, from.bucket);
	const unsigned int slot = core_slot(bucket, layout, fingerprint, table->prefixes);

	*place = (struct table_place){ from.bucket, slot > from.slot ? slot : from.slot };
	if (!layout.has_records && !from.slot)
		return slot < layout.slots;
	for (; place->slot < layout.slots; place->slot++) {
		if (bucket_get(bucket, layout, place->slot, table->prefixes) == fingerprint &&
		    (!layout.has_records || abi_record_tag(*table_record(table, layout, *place)) == tag))
			return true;
	}
	return false;
}

FLOW_INLINE bool core_find_key(const struct table *table, struct bucket_layout layout, const struct bucket_pair *pair,
			       __u64 tag, struct table_place *place)
{
	return core_find_entry(table, layout, (struct table_place){ pair->first, 0 }, pair->fingerprint, tag, place) ||
	       core_find_entry(table, layout, (struct table_place){ pair->second, 0 }, pair->fingerprint, tag, place);
}

FLOW_INLINE bool core_find(const struct table *table, struct bucket_layout layout, const struct hash_value *key,
			   __u32 *slot)
{
	const struct bucket_pair pair = core_pair(table, layout, key);
	struct table_place place;

	if (!layout.has_records)
		return bucket_match(table_bucket(table, layout, pair.first), layout, pair.fingerprint,
				    table->prefixes) |
		       bucket_match(table_bucket(table, layout, pair.second), layout, pair.fingerprint,
				    table->prefixes);
	if (!core_find_key(table, layout, &pair, key->tag, &place))
		return false;
	if (slot)
		*slot = table_slot(layout, place);
	return true;
}

/* ---- the way to a free slot ---- */

/* Queues a bucket; it is tested when its turn comes, which gives the prefetch time. */
FLOW_INLINE void core_push(struct table *table, struct bucket_layout layout, __u32 bucket, unsigned int parent,
			   unsigned int slot)
{
	struct table_search *search = table->search;

	table_prefetch(table, layout, bucket);
	search->node[search->count++] = (struct table_node){ bucket, parent, slot };
}

/* A circle on a path leads nowhere that a shorter path does not. */
static inline bool core_is_on_path(const struct table_search *search, unsigned int at, __u32 bucket)
{
	while (search->node[at].bucket != bucket) {
		if (search->node[at].parent == at)
			return false;
		at = search->node[at].parent;
	}
	return true;
}

FLOW_INLINE void core_expand(struct table *table, struct bucket_layout layout, unsigned int at)
{
	struct table_search *search = table->search;
	const __u32 number = search->node[at].bucket;
	const struct bucket bucket = table_bucket(table, layout, number);

	for (unsigned int slot = 0; slot < layout.slots; slot++) {
		__u32 fingerprint = bucket_get(bucket, layout, slot, table->prefixes);
		__u32 child = number ^ bucket_step(fingerprint, table->geometry.step_shift);

		if (search->count < TABLE_SEARCH_NODES && !core_is_on_path(search, at, child))
			core_push(table, layout, child, at, slot);
	}
}

/*
 * Breadth first from both buckets of a key. Returns the index of the node whose bucket has a free
 * slot, and that slot as `free`; -ENOSPC where none is found.
 */
FLOW_INLINE int core_search(struct table *table, struct bucket_layout layout, const struct bucket_pair *pair,
			    struct table_place *free)
{
	struct table_search *search = table->search;

	search->count = 0;
	core_push(table, layout, pair->first, 0, 0);
	core_push(table, layout, pair->second, 1, 0);
	for (unsigned int at = 0; at < search->count; at++) {
		if (core_find_free(table, layout, search->node[at].bucket, free))
			return at;
		core_expand(table, layout, at);
	}
	return -ENOSPC;
}

/* Before any entry of a path is moved. */
FLOW_INLINE int core_reach_path(struct table *table, struct bucket_layout layout, unsigned int at)
{
	const struct table_node *node = table->search->node;
	int error = core_reach(table, layout, node[at].bucket);

	for (; node[at].parent != at && !error; at = node[at].parent)
		error = core_reach(table, layout, node[node[at].parent].bucket);
	return error;
}

/*
 * Moves the entries of a path that was found, the last first, which leaves `free` in one of the
 * key's two buckets. No bucket stands twice on a path, so the slots that the search saw hold until
 * they are reached, and the one that a move frees is found by its value, since it may not be where
 * it was.
 */
FLOW_INLINE void core_move_path(struct table *table, struct bucket_layout layout, unsigned int at,
				struct table_place *free)
{
	const struct table_node *node = table->search->node;
	unsigned int length = 0;

	for (; node[at].parent != at; at = node[at].parent, length++) {
		struct table_place from = { node[node[at].parent].bucket, node[at].slot };

		table_move(table, layout, from, *free);
		core_find_free(table, layout, from.bucket, free);
	}
	if (length > table->longest_path)
		table->longest_path = length;
}

/* ---- insert and delete ---- */

FLOW_INLINE int core_insert(struct table *table, struct bucket_layout layout, const struct hash_value *key, __u32 end)
{
	const struct bucket_pair pair = core_pair(table, layout, key);
	struct table_place place;
	int error;

	if (!core_find_free(table, layout, pair.first, &place) && !core_find_free(table, layout, pair.second, &place)) {
		const int at = core_search(table, layout, &pair, &place);

		error = at < 0 ? at : core_reach_path(table, layout, at);
		if (error)
			return error;
		core_move_path(table, layout, at, &place);
	}
	error = core_reach(table, layout, place.bucket);
	if (error)
		return error;
	table_publish(table, layout, place, pair.fingerprint, abi_record(key->tag, end));
	table->used++;
	return 0;
}

/* Whether an equal entry stands elsewhere: in the other bucket, or in the bucket's other word. */
FLOW_INLINE bool core_find_twin(const struct table *table, struct bucket_layout layout, struct table_place place,
				__u32 fingerprint, __u64 tag, struct table_place *twin)
{
	const __u32 other = place.bucket ^ bucket_step(fingerprint, table->geometry.step_shift);

	*twin = (struct table_place){ other, 0 };
	if (other != place.bucket && core_find_entry(table, layout, *twin, fingerprint, tag, twin))
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
 * An equal entry elsewhere may have come there after a reader looked: to that reader the two calls
 * together are a move. In an exact table only a crash leaves such a pair, of which either may have been counted.
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
	core_erase(table, layout, place, pair.fingerprint, key->tag);
	return 0;
}

/* Asks for the memory that a call for this key will need: for many keys in a row, some ahead. */
FLOW_INLINE void core_prefetch(const struct table *table, struct bucket_layout layout, const struct hash_value *key)
{
	const struct bucket_pair pair = core_pair(table, layout, key);

	table_prefetch(table, layout, pair.first);
	table_prefetch(table, layout, pair.second);
}

#endif
