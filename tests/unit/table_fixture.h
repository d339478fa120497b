/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A table in memory, keys for it, and a check of its content. */
#ifndef XDP_CUCKOO_TABLE_FIXTURE_H
#define XDP_CUCKOO_TABLE_FIXTURE_H

#include "unit/churn.h"
#include "unit/test.h"

struct fixture {
	struct table table;
	struct abi_options options;
	struct table_memory memory;
	__u64 sequence;
};

static inline void fixture_open(struct fixture *fixture, const struct table_kind *kind, __u64 slots)
{
	const struct bucket_geometry geometry = table_geometry(slots);

	*fixture = (struct fixture){ .options = kind->options };
	assert_int_equal(churn_allocate(&fixture->memory, kind->options, geometry), 0);
	fixture->memory.sequence = &fixture->sequence;
	assert_int_equal(table_open(&fixture->table, kind->options.format, geometry, &fixture->memory), 0);
}

static inline void fixture_close(struct fixture *fixture)
{
	table_close(&fixture->table);
	churn_free(&fixture->memory);
}

static inline size_t bucket_bytes(const struct table *table)
{
	return table_bucket_bytes(table->format, table->geometry);
}

/* Copies the table to other memory. */
static inline void fixture_copy(struct fixture *copy, const struct fixture *fixture)
{
	const __u64 slots = table_slots(&fixture->table);
	const struct table_kind kind = { .options = fixture->options };

	fixture_open(copy, &kind, slots);
	memcpy(copy->memory.bucket, fixture->memory.bucket, bucket_bytes(&fixture->table));
	if (copy->memory.record)
		memcpy(copy->memory.record, fixture->memory.record, slots * sizeof(*copy->memory.record));
	copy->table.used = fixture->table.used;
}

/* Entries of random keys. Of a million, two may be the same key to a compact table. */
static inline struct table_entry *entries_of(__u64 seed, __u64 from, size_t count)
{
	struct table_entry *entry = calloc(count + 1, sizeof(*entry));

	assert_non_null(entry);
	for (size_t i = 0; i < count; i++)
		entry[i].key = churn_key(churn_hash(seed, from + i));
	return entry;
}

/* Even a compact table can tell these keys apart: each number below 65535 has its own fingerprint. */
static inline struct hash_value distinct_key(__u64 seed, __u64 number)
{
	return churn_key((number + 1) << 48 | churn_hash(seed, number) >> 16);
}

/* The distinct keys of `count` numbers from `from` on, each `times` times. */
static inline struct table_entry *distinct_entries(__u64 seed, __u64 from, size_t count, size_t times)
{
	struct table_entry *entry = calloc(count * times + 1, sizeof(*entry));

	assert_non_null(entry);
	for (size_t i = 0; i < count * times; i++)
		entry[i].key = distinct_key(seed, from + i / times);
	return entry;
}

static inline int insert(struct fixture *fixture, const struct table_entry *entry)
{
	return table_insert(&fixture->table, &entry->key, entry->end);
}

/* The place of a key's entry in an exact table. */
static inline struct table_place place_of(const struct table *table, const struct hash_value *key)
{
	const struct bucket_pair pair = churn_pair(table, key->hash);
	struct table_place place;

	assert_true(core_find_key(table, core_exact(), &pair, key->tag, &place));
	return place;
}

/* The table holds these entries and no others: a copy of it is empty after they are deleted. */
static inline void assert_holds(const struct fixture *fixture, const struct table_entry *entry, size_t count)
{
	struct fixture copy;
	const __u8 *byte;

	fixture_copy(&copy, fixture);
	assert_int_equal(fixture->table.used, count);
	assert_int_equal(table_count(&copy.table), count);
	for (size_t i = 0; i < count; i++) {
		assert_true(table_find(&fixture->table, &entry[i].key, NULL));
		assert_int_equal(table_delete(&copy.table, &entry[i].key), 0);
	}
	byte = copy.memory.bucket;
	for (size_t i = 0; i < bucket_bytes(&copy.table); i++)
		assert_int_equal(byte[i], 0);
	fixture_close(&copy);
}

/* On one processor, reader and writer hardly ever run at the same time. */
static inline void skip_without_two_processors(void)
{
	cpu_set_t first = churn_processor(0), second = churn_processor(1);

	if (!CPU_EQUAL(&first, &second))
		return;
	fprintf(stderr, "# one processor: no reader looks while the writer is at work\n");
	skip();
}

/* A key with two buckets. */
static inline struct hash_value key_of_two_buckets(const struct table *table)
{
	struct bucket_pair pair;
	__u64 hash, number = 0;

	do {
		hash = churn_hash(1, number++);
		pair = churn_pair(table, hash);
	} while (pair.first == pair.second);
	return churn_key(hash);
}

/* Another key with the same buckets and fingerprint, which prefers the other bucket. */
static inline struct hash_value twin_of(const struct table *table, const struct hash_value *key)
{
	return churn_key(churn_twin(table, key->hash));
}

#endif
