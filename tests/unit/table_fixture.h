/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A table in memory of its own, hashes to put into it, and the check of what it holds. */
#ifndef XDP_CUCKOO_TABLE_FIXTURE_H
#define XDP_CUCKOO_TABLE_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "churn.h"

static inline __u64 environment_number(const char *name, __u64 otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static inline __u64 print_seed(void)
{
	__u64 seed = environment_number("SEED", 1);

	print_message("# SEED=%llu\n", seed);
	return seed;
}

struct fixture {
	struct table table;
	__u64 sequence;
	__u64 *bucket;
};

static inline void fixture_open(struct fixture *fixture, unsigned int slots_log2)
{
	__u64 buckets = (1ULL << slots_log2) / BUCKET_SLOTS;

	*fixture = (struct fixture){ .bucket = calloc(buckets, sizeof(*fixture->bucket)) };
	assert_non_null(fixture->bucket);
	assert_int_equal(table_open(&fixture->table, fixture->bucket, buckets, &fixture->sequence),
			 0);
}

static inline void fixture_close(struct fixture *fixture)
{
	table_close(&fixture->table);
	free(fixture->bucket);
}

/* Hashes as a table meets them: two of a million may be one to it. */
static inline __u64 *hashes_of(__u64 seed, __u64 from, size_t count)
{
	__u64 *hash = malloc((count + 1) * sizeof(*hash));

	assert_non_null(hash);
	for (size_t i = 0; i < count; i++)
		hash[i] = churn_hash(seed, from + i);
	return hash;
}

static inline size_t bucket_bytes(const struct table *table)
{
	return (table->bucket_mask + 1) * sizeof(*table->bucket);
}

/* Hashes of which no two are one to a table: each number below 65535 has its own fingerprint. */
static inline __u64 distinct_hash(__u64 seed, __u64 number)
{
	const unsigned int shift = 64 - BUCKET_FINGERPRINT_BITS;

	return (number + 1) << shift | churn_hash(seed, number) >> BUCKET_FINGERPRINT_BITS;
}

/* Those of `count` numbers from `from`, each `times` times. */
static inline __u64 *distinct_hashes(__u64 seed, __u64 from, size_t count, size_t times)
{
	__u64 *hash = malloc((count * times + 1) * sizeof(*hash));

	assert_non_null(hash);
	for (size_t i = 0; i < count * times; i++)
		hash[i] = distinct_hash(seed, from + i / times);
	return hash;
}

/* That the table holds these entries and no other: a copy of it is empty once they are deleted. */
static inline void assert_holds(const struct table *table, const __u64 *hash, size_t count)
{
	__u64 *bucket = malloc(bucket_bytes(table)), sequence = 0;
	struct table copy;

	assert_non_null(bucket);
	memcpy(bucket, table->bucket, bucket_bytes(table));
	assert_int_equal(table_open(&copy, bucket, table->bucket_mask + 1, &sequence), 0);
	assert_int_equal(table->used, count);
	assert_int_equal(table_count(&copy), count);
	copy.used = count;
	for (size_t i = 0; i < count; i++) {
		assert_true(table_contains(table, hash[i]));
		assert_int_equal(table_delete(&copy, hash[i]), 0);
	}
	for (__u64 i = 0; i <= table->bucket_mask; i++)
		assert_int_equal(bucket[i], 0);
	table_close(&copy);
	free(bucket);
}

/* A hash with two buckets, and the hash of an equal entry that prefers the other bucket. */
static inline __u64 hash_of_two_buckets(const struct table *table, __u64 *twin)
{
	struct bucket_pair pair;
	__u64 hash, number = 0;

	do {
		hash = churn_hash(1, number++);
		pair = bucket_pair(hash, table->bucket_mask, table->step_shift);
	} while (pair.first == pair.second);
	*twin = (__u64)pair.fingerprint << (64 - BUCKET_FINGERPRINT_BITS) | pair.second;
	return hash;
}

#endif
