/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds slots and entries in the two buckets of a key. The functions of the engine (core_...) take the layout of the
 * buckets, a constant at each call. So the compiler makes a copy of each function for each layout.
 */
#ifndef XDP_CUCKOO_TABLE_FIND_ENTRY_H
#define XDP_CUCKOO_TABLE_FIND_ENTRY_H

#include "table/publish_order.h"
#include "table/table.h"

FLOW_INLINE struct bucket_layout core_exact(void)
{
	struct bucket_layout layout = bucket_layout(BUCKET_16);

	layout.has_records = 1;
	return layout;
}

/* Calls function(table, layout, ...) with the layout of the table as a constant. */
#define CORE_CALL(function, table, ...) \
	((table)->memory.record       ? function(table, core_exact(), ##__VA_ARGS__) : \
	 (table)->format == BUCKET_16 ? function(table, bucket_layout(BUCKET_16), ##__VA_ARGS__) : \
	 (table)->format == BUCKET_32 ? function(table, bucket_layout(BUCKET_32), ##__VA_ARGS__) : \
	 (table)->format == BUCKET_8  ? function(table, bucket_layout(BUCKET_8), ##__VA_ARGS__) : \
	 (table)->format == BUCKET_17 ? function(table, bucket_layout(BUCKET_17), ##__VA_ARGS__) : \
					function(table, bucket_layout(BUCKET_ADDRESS), ##__VA_ARGS__))

FLOW_INLINE struct bucket_pair core_pair(const struct table *table, struct bucket_layout layout,
					 const struct hash_value *key)
{
	return layout.side ? address_pair(key->hash, table->geometry, table->reciprocal) :
			     bucket_pair(key->hash, table->geometry, layout);
}

/* The other bucket of an entry, where its fingerprint is this one ^ layout.side. */
FLOW_INLINE __u32 core_other(const struct table *table, struct bucket_layout layout, __u32 bucket, __u32 fingerprint)
{
	return bucket ^ bucket_step(fingerprint & ~layout.side, table->geometry.step_shift);
}

/* Map a bucket, its records and its counters before their first use; or both buckets of a key. 0 or -ENOMEM. */
FLOW_INLINE int core_reach(struct table *table, struct bucket_layout layout, __u32 bucket)
{
	return table->reach ? table_reach(table, (__u64)bucket * layout.slots) : 0;
}

FLOW_INLINE int core_reach_pair(struct table *table, struct bucket_layout layout, const struct bucket_pair *pair)
{
	const int error = core_reach(table, layout, pair->first);

	return error ? error : core_reach(table, layout, pair->second);
}

/*
 * The lowest slot that holds `fingerprint`, or layout.slots. The lowest lane of a match is always right: see
 * bucket_match_word().
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

/* The first place with this fingerprint, and in an exact table this tag, from `from` to the end of the bucket. */
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
	       core_find_entry(table, layout, (struct table_place){ pair->second, 0 }, pair->fingerprint ^ layout.side,
			       tag, place);
}

FLOW_INLINE bool core_find(const struct table *table, struct bucket_layout layout, const struct hash_value *key,
			   __u32 *slot)
{
	const struct bucket_pair pair = core_pair(table, layout, key);
	struct table_place place;

	if (!layout.has_records && !layout.side)
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

#endif
