// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* table_reconcile(): the table ends up as asked, by the fewest changes, or says that it cannot. */
#include <sys/mman.h>

#include "table_fixture.h"

/*
 * Which numbers' hashes a table holds, and is to hold, and how often each. 95 % of 2^12 slots are
 * 3891.
 */
static const struct reconcile_case {
	const char *name;
	size_t from, count, times, want_from, want_count, want_times;
	struct table_difference difference;
} reconcile_cases[] = {
	{ "empty to empty", 0, 0, 1, 0, 0, 1, { 0, 0, 0 } },
	{ "empty to 95 %", 0, 0, 1, 0, 3891, 1, { 3891, 0, 0 } },
	{ "95 % to empty", 0, 3891, 1, 0, 0, 1, { 0, 3891, 0 } },
	{ "equal", 0, 3891, 1, 0, 3891, 1, { 0, 0, 3891 } },
	{ "disjoint", 0, 3891, 1, 5000, 3891, 1, { 3891, 3891, 0 } },
	{ "overlapping", 0, 3000, 1, 1000, 3891, 1, { 1891, 1000, 2000 } },
	{ "surplus", 0, 3891, 1, 100, 20, 1, { 0, 3871, 20 } },
	{ "one missing", 1, 3890, 1, 0, 3891, 1, { 1, 0, 3890 } },
	{ "more of each", 0, 500, 1, 0, 500, 3, { 1000, 0, 500 } },
	{ "fewer of each", 0, 500, 3, 0, 500, 1, { 0, 1000, 500 } },
	{ "overlapping, of many", 0, 500, 3, 250, 500, 2, { 500, 1000, 500 } },
};

static void reconcile(const struct reconcile_case *c, __u64 seed)
{
	__u64 *have = distinct_hashes(seed, c->from, c->count, c->times);
	__u64 *want = distinct_hashes(seed, c->want_from, c->want_count, c->want_times);
	size_t want_count = c->want_count * c->want_times;
	struct table_difference difference;
	struct fixture f;

	fixture_open(&f, 12);
	for (size_t i = 0; i < c->count * c->times; i++)
		assert_int_equal(table_insert(&f.table, have[i]), 0);
	print_message("# %s\n", c->name);
	assert_int_equal(table_reconcile(&f.table, want, want_count, &difference), 0);
	assert_int_equal(difference.added, c->difference.added);
	assert_int_equal(difference.removed, c->difference.removed);
	assert_int_equal(difference.kept, c->difference.kept);
	assert_holds(&f.table, want, want_count);
	free(want);
	want = distinct_hashes(seed, c->want_from, c->want_count, c->want_times);
	assert_holds(&f.table, want, want_count);
	fixture_close(&f);
	free(have);
	free(want);
}

static void test_reconcile(void **state)
{
	const __u64 seed = print_seed();

	(void)state;
	for (size_t i = 0; i < sizeof(reconcile_cases) / sizeof(reconcile_cases[0]); i++)
		reconcile(&reconcile_cases[i], seed);
}

/* What is in the table after too many were asked for: nothing but what was asked for. */
static void test_reconcile_too_many(void **state)
{
	enum { SLOTS = 1 << 12, COUNT = 2 * SLOTS };
	const __u64 seed = print_seed();
	__u64 *have = distinct_hashes(seed, COUNT, SLOTS / 2, 1),
	      *want = distinct_hashes(seed, 0, COUNT, 1);
	struct table_difference difference, second;
	struct fixture f;

	(void)state;
	fixture_open(&f, 12);
	for (size_t i = 0; i < SLOTS / 2; i++)
		assert_int_equal(table_insert(&f.table, have[i]), 0);
	assert_int_equal(table_reconcile(&f.table, want, COUNT, &difference), -ENOSPC);
	assert_int_equal(difference.removed, SLOTS / 2);
	assert_in_range(difference.added, SLOTS * TABLE_LOAD_PERCENT / 100, SLOTS);
	assert_int_equal(f.table.used, difference.added);
	assert_int_equal(table_reconcile(&f.table, want, COUNT, &second), -ENOSPC);
	assert_int_equal(second.kept, difference.added);
	assert_int_equal(second.removed, 0);
	fixture_close(&f);
	free(have);
	free(want);
}

static void test_reconcile_nine_equal_entries(void **state)
{
	enum { EQUAL = 9, COUNT = 3000 + EQUAL };
	__u64 *want = hashes_of(1, 1000, COUNT), *fits = hashes_of(1, 1000, COUNT), twin;
	struct table_difference difference;
	struct fixture f;

	(void)state;
	fixture_open(&f, 12);
	for (size_t i = 0; i < EQUAL; i++)
		fits[i] = want[i] = hash_of_two_buckets(&f.table, &twin);
	assert_int_equal(table_reconcile(&f.table, want, COUNT, &difference), -ENOSPC);
	assert_int_equal(difference.added, COUNT - 1);
	assert_holds(&f.table, fits + 1, COUNT - 1);
	fixture_close(&f);
	free(want);
	free(fits);
}

/* The largest table, of which only the pages of its few entries are memory. */
static void test_largest_table(void **state)
{
	enum { COUNT = 1000 };
	const __u64 buckets = 1ULL << 28;
	__u64 *want = hashes_of(1, 0, COUNT), sequence = 0, *bucket;
	struct table_difference difference;
	struct table table;

	(void)state;
	bucket = mmap(NULL, buckets * sizeof(*bucket), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(bucket, MAP_FAILED);
	madvise(bucket, buckets * sizeof(*bucket), MADV_NOHUGEPAGE);
	assert_int_equal(table_open(&table, bucket, buckets, &sequence), 0);
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(table_insert(&table, churn_hash(1, COUNT / 2 + i)), 0);
	assert_int_equal(table_reconcile(&table, want, COUNT, &difference), 0);
	assert_int_equal(difference.kept, COUNT / 2);
	assert_int_equal(difference.added, COUNT / 2);
	assert_int_equal(difference.removed, COUNT / 2);
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(table_delete(&table, churn_hash(1, i)), 0);
	assert_int_equal(table.used, 0);
	table_close(&table);
	munmap(bucket, buckets * sizeof(*bucket));
	free(want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reconcile),
		cmocka_unit_test(test_reconcile_too_many),
		cmocka_unit_test(test_reconcile_nine_equal_entries),
		cmocka_unit_test(test_largest_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
