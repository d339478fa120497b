/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the writer puts an entry into a table, moves it and removes it while packets are looked up. The reader's half
 * of this protocol is bpf/lookup_key.h.
 *
 * A record is written before its fingerprint, because a reader checks the fingerprint first. A move writes the copy,
 * then increments the sequence, then overwrites the source. So a reader that looked for the copy too early and for
 * the source too late sees that the sequence changed. A bucket changes by one store of a whole word. A crash can
 * leave an extra entry, but no entry is missing.
 */
#ifndef XDP_CUCKOO_TABLE_PUBLISH_ORDER_H
#define XDP_CUCKOO_TABLE_PUBLISH_ORDER_H

#include "base/waiting.h"
#include "table/semisort.h"
#include "table/table.h"

struct table_place {
	__u32 bucket;
	unsigned int slot;
};

FLOW_INLINE struct bucket table_bucket(const struct table *table, struct bucket_layout layout, __u32 at)
{
	const void *memory = table->memory.bucket;
	struct bucket bucket = {};

	switch (bucket_bits(layout)) {
	case 8:
		bucket.word[0] = __atomic_load_n((const __u8 *)memory + at, __ATOMIC_RELAXED);
		break;
	case 16:
		bucket.word[0] = __atomic_load_n((const __u16 *)memory + at, __ATOMIC_RELAXED);
		break;
	case 32:
		bucket.word[0] = __atomic_load_n((const __u32 *)memory + at, __ATOMIC_RELAXED);
		break;
	case 64:
		bucket.word[0] = __atomic_load_n((const __u64 *)memory + at, __ATOMIC_RELAXED);
		break;
	default:
		bucket.word[0] = __atomic_load_n((const __u64 *)memory + 2ULL * at, __ATOMIC_RELAXED);
		bucket.word[1] = __atomic_load_n((const __u64 *)memory + 2ULL * at + 1, __ATOMIC_RELAXED);
	}
	return bucket;
}

FLOW_INLINE __u64 table_slot(struct bucket_layout layout, struct table_place place)
{
	return (__u64)place.bucket * layout.slots + place.slot;
}

/* The record of a place in an exact table. */
FLOW_INLINE __u64 *table_record(const struct table *table, struct bucket_layout layout, struct table_place place)
{
	return &table->memory.record[table_slot(layout, place)];
}

/* Prefetches a bucket and its records. */
FLOW_INLINE void table_prefetch(const struct table *table, struct bucket_layout layout, __u32 at)
{
	__builtin_prefetch((const char *)table->memory.bucket + (__u64)at * bucket_bits(layout) / 8);
	if (layout.has_records)
		__builtin_prefetch(table_record(table, layout, (struct table_place){ at, 0 }), 1);
}

FLOW_INLINE __u32 table_load(const struct table *table, struct bucket_layout layout, struct table_place place)
{
	return bucket_get(table_bucket(table, layout, place.bucket), layout, place.slot, table->prefixes);
}

/* Writes one word of a bucket with one store. */
FLOW_INLINE void table_store_word(struct table *table, struct bucket_layout layout, __u32 bucket, unsigned int at,
				  __u64 word)
{
	void *memory = table->memory.bucket;

	switch (bucket_bits(layout)) {
	case 8:
		__atomic_store_n((__u8 *)memory + bucket, (__u8)word, __ATOMIC_RELEASE);
		break;
	case 16:
		__atomic_store_n((__u16 *)memory + bucket, (__u16)word, __ATOMIC_RELEASE);
		break;
	case 32:
		__atomic_store_n((__u32 *)memory + bucket, (__u32)word, __ATOMIC_RELEASE);
		break;
	case 64:
		__atomic_store_n((__u64 *)memory + bucket, word, __ATOMIC_RELEASE);
		break;
	default:
		__atomic_store_n((__u64 *)memory + 2ULL * bucket + at, word, __ATOMIC_RELEASE);
	}
}

/*
 * Stores a fingerprint in a place; 0 clears it. If a bucket has two words, only the word with the place changes. A
 * semi-sorted bucket sorts its entries, so slots found before the call are no longer valid after it.
 */
FLOW_INLINE void table_store(struct table *table, struct bucket_layout layout, struct table_place place,
			     __u32 fingerprint)
{
	const struct bucket bucket = table_bucket(table, layout, place.bucket);
	const unsigned int lanes = 64 / (layout.lane_bits ? layout.lane_bits : 64);
	const unsigned int shift = place.slot % lanes * layout.lane_bits;
	const unsigned int at = layout.lane_bits ? place.slot / lanes : 0;
	__u64 word = bucket.word[at];

	if (layout.lane_bits) {
		word = (word & ~(((1ULL << layout.lane_bits) - 1) << shift)) | (__u64)fingerprint << shift;
	} else {
		__u32 sorted[BUCKET_SLOTS];

		for (unsigned int slot = 0; slot < BUCKET_SLOTS; slot++)
			sorted[slot] = slot == place.slot ? fingerprint :
							    bucket_get(bucket, layout, slot, table->prefixes);
		word = semisort_word(sorted, layout);
	}
	table_store_word(table, layout, place.bucket, at, word);
}

static inline void table_reset_count(struct abi_counter *counter)
{
	/* In a large table most counters are 0. Writing these again would cost a cache miss each. */
	if (counter->packets)
		__atomic_store_n(&counter->packets, 0, __ATOMIC_RELAXED);
	if (counter->bytes)
		__atomic_store_n(&counter->bytes, 0, __ATOMIC_RELAXED);
}

static inline void table_move_word(__u64 *from, __u64 *to)
{
	if (*from)
		__atomic_fetch_add(to, __atomic_fetch_and(from, 0, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

/* The caller makes sure that new packets no longer find the entry at `from`. */
FLOW_INLINE void table_move_count(const struct table *table, struct bucket_layout layout, struct table_place from,
				  struct table_place to)
{
	struct abi_counter *counter = table->memory.counter;

	if (!(layout.has_records || layout.side) || !counter)
		return;
	table_move_word(&counter[table_slot(layout, from)].packets, &counter[table_slot(layout, to)].packets);
	table_move_word(&counter[table_slot(layout, from)].bytes, &counter[table_slot(layout, to)].bytes);
}

/* Puts an entry into a free place. */
FLOW_INLINE void table_publish(struct table *table, struct bucket_layout layout, struct table_place place,
			       __u32 fingerprint, __u64 record)
{
	if ((layout.has_records || layout.side) && table->memory.counter)
		table_reset_count(&table->memory.counter[table_slot(layout, place)]);
	if (layout.has_records)
		__atomic_store_n(table_record(table, layout, place), record, __ATOMIC_RELEASE);
	table_store(table, layout, place, fingerprint);
}

/*
 * Increments the sequence after an entry is copied and before the source is overwritten. Readers that may reorder their
 * loads can miss the change. If there are such readers, waits until all that have begun have ended: 8 to 16 ms.
 */
static inline void table_announce(struct table *table)
{
	__u64 *sequence = table->memory.sequence;

	__atomic_store_n(sequence, *sequence + 1, __ATOMIC_RELEASE);
	if (table->waits_for_readers)
		grace_wait();
}

/*
 * Moves the entry at `from` to the free place `to` of another bucket. The old record stays, for readers that have
 * just read the old fingerprint.
 */
FLOW_INLINE void table_move(struct table *table, struct bucket_layout layout, struct table_place from,
			    struct table_place to)
{
	table_publish(table, layout, to, table_load(table, layout, from) ^ layout.side,
		      layout.has_records ? *table_record(table, layout, from) : 0);
	table_announce(table);
	table_store(table, layout, from, 0);
	table_move_count(table, layout, from, to);
	table->moves++;
}

#endif
