// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The table engine, one call at a time: what it holds, how full it gets, what a failure leaves. */
#include "table_fixture.h"

static void test_open_checks_geometry(void **state)
{
	static __u64 bucket[512];
	__u64 sequence = 0;
	struct table table = {};

	(void)state;
	table_close(&table);
	assert_int_equal(table_open(&table, bucket, 0, &sequence), -EINVAL);
	assert_int_equal(table_open(&table, bucket, 128, &sequence), -EINVAL);
	assert_int_equal(table_open(&table, bucket, 384, &sequence), -EINVAL);
	assert_int_equal(table_open(&table, bucket, 1ULL << 29, &sequence), -EINVAL);
	table_close(&table);
	bucket[0] = 0x8000000000000001;
	bucket[511] = 0xffff80007fff0001;
	assert_int_equal(table_open(&table, bucket, 512, &sequence), 0);
	assert_int_equal(table_count(&table), 6);
	assert_int_equal(table_slots(&table), 2048);
	table_close(&table);
	table_close(&table);
}

static void test_slots_for(void **state)
{
	(void)state;
	assert_int_equal(table_slots_for(0), 1 << 10);
	assert_int_equal(table_slots_for(972), 1 << 10);
	assert_int_equal(table_slots_for(973), 1 << 11);
	assert_int_equal(table_slots_for(996147), 1 << 20);
	assert_int_equal(table_slots_for(996148), 1 << 21);
	assert_int_equal(table_slots_for((1ULL << 30) * 95 / 100), 1ULL << 30);
	assert_int_equal(table_slots_for((1ULL << 30) * 95 / 100 + 1), 1ULL << 31);
	assert_int_equal(table_slots_for(~0ULL), 1ULL << 31);
}

static void test_insert_contains_delete(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, 10);
	assert_false(table_contains(&f.table, 0));
	assert_int_equal(table_delete(&f.table, 0), -ENOENT);
	assert_int_equal(table_insert(&f.table, 0), 0);
	assert_true(table_contains(&f.table, 0));
	assert_false(table_contains(&f.table, 2ULL << 48));
	assert_int_equal(table_delete(&f.table, 2ULL << 48), -ENOENT);
	assert_holds(&f.table, &(__u64){ 0 }, 1);
	assert_int_equal(table_delete(&f.table, 0), 0);
	assert_false(table_contains(&f.table, 0));
	assert_holds(&f.table, NULL, 0);
	fixture_close(&f);
}

static void test_equal_entries_are_kept_apart(void **state)
{
	struct fixture f;
	__u64 hash, twin;

	(void)state;
	fixture_open(&f, 10);
	hash = hash_of_two_buckets(&f.table, &twin);
	for (unsigned int i = 0; i < 2 * BUCKET_SLOTS; i++)
		assert_int_equal(table_insert(&f.table, i % 2 ? hash : twin), 0);
	assert_int_equal(table_insert(&f.table, hash), -ENOSPC);
	assert_int_equal(f.table.used, 2 * BUCKET_SLOTS);
	for (unsigned int i = 0; i < 2 * BUCKET_SLOTS; i++) {
		assert_true(table_contains(&f.table, hash));
		assert_int_equal(table_delete(&f.table, i % 3 ? hash : twin), 0);
	}
	assert_false(table_contains(&f.table, hash));
	assert_int_equal(table_delete(&f.table, hash), -ENOENT);
	fixture_close(&f);
}

static void test_95_percent_fit(void **state)
{
	const __u64 seed = print_seed();

	(void)state;
	for (unsigned int slots_log2 = 10; slots_log2 <= 20; slots_log2 += 2)
		for (unsigned int run = 0; run < 3; run++) {
			size_t count = (1ULL << slots_log2) * TABLE_LOAD_PERCENT / 100;
			__u64 *hash = hashes_of(seed + run, 0, count);
			struct fixture f;

			fixture_open(&f, slots_log2);
			for (size_t i = 0; i < count; i++)
				assert_int_equal(table_insert(&f.table, hash[i]), 0);
			assert_in_range(f.table.longest_path, 1, 5);
			assert_holds(&f.table, hash, count);
			fixture_close(&f);
			free(hash);
		}
}

static void test_full_table_is_left_as_it_was(void **state)
{
	const __u64 seed = print_seed(), slots = 1 << 12;
	__u64 *hash = hashes_of(seed, 0, slots), *before;
	struct fixture f, g;
	size_t count = 0;

	(void)state;
	fixture_open(&f, 12);
	before = malloc(bucket_bytes(&f.table));
	assert_non_null(before);
	do {
		g = f;
		memcpy(before, f.bucket, bucket_bytes(&f.table));
	} while (!table_insert(&f.table, hash[count++]));
	count--;
	assert_int_equal(table_insert(&f.table, hash[count]), -ENOSPC);
	assert_in_range(count, slots * TABLE_LOAD_PERCENT / 100, slots);
	assert_memory_equal(before, f.bucket, bucket_bytes(&f.table));
	assert_memory_equal(&g, &f, sizeof(f));
	assert_holds(&f.table, hash, count);
	fixture_close(&f);
	free(before);
	free(hash);
}

/* Fills the table and empties it by turns, with many entries there more than once. */
static void test_random_changes_match_a_multiset(void **state)
{
	enum { HASHES = 1500, STEPS = 300000, TURN = 4000 };
	const __u64 seed = print_seed();
	__u64 *hash = distinct_hashes(seed, 0, HASHES, 1), held[1024], full = 0;
	unsigned int times[HASHES] = {};
	struct fixture f;
	size_t count = 0;

	(void)state;
	fixture_open(&f, 10);
	for (__u64 step = 0; step < STEPS; step++) {
		__u64 random = churn_hash(seed + 1, step);
		size_t i = (random >> 32) % HASHES;

		if (random % 8 < (step / TURN % 2 ? 1 : 7)) {
			int error = table_insert(&f.table, hash[i]);

			assert_true(!error || error == -ENOSPC);
			full += !!error;
			times[i] += !error;
		} else {
			assert_int_equal(table_delete(&f.table, hash[i]), times[i] ? 0 : -ENOENT);
			times[i] -= !!times[i];
		}
		assert_int_equal(table_contains(&f.table, hash[i]), times[i] > 0);
	}
	for (size_t i = 0; i < HASHES; i++)
		for (unsigned int j = 0; j < times[i]; j++)
			held[count++] = hash[i];
	assert_holds(&f.table, held, count);
	assert_int_not_equal(f.table.moves, 0);
	assert_int_not_equal(full, 0);
	fixture_close(&f);
	free(hash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open_checks_geometry),
		cmocka_unit_test(test_slots_for),
		cmocka_unit_test(test_insert_contains_delete),
		cmocka_unit_test(test_equal_entries_are_kept_apart),
		cmocka_unit_test(test_95_percent_fit),
		cmocka_unit_test(test_full_table_is_left_as_it_was),
		cmocka_unit_test(test_random_changes_match_a_multiset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
