// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The table engine alone: what it holds, how full it gets, what a failure leaves; and what readers
 * see while it works, with a wrong engine beside the right one to show that these tests can fail.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "churn.h"

#define CHURN_SLOTS_LOG2 10 /* so small that reader and writer meet often */
#define CHURN_LOOKUPS 30000000
#define CHURN_LOOKUPS_WRONG 1000000000 /* at most; the first miss ends it */

static __u64 environment_number(const char *name, __u64 otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static __u64 print_seed(void)
{
	__u64 seed = environment_number("SEED", 1);

	print_message("# SEED=%llu\n", seed);
	return seed;
}

/* ---- a table of its own memory ---- */

struct fixture {
	struct table table;
	__u64 sequence;
	__u64 *bucket;
};

static void fixture_open(struct fixture *fixture, unsigned int slots_log2)
{
	__u64 buckets = (1ULL << slots_log2) / BUCKET_SLOTS;

	*fixture = (struct fixture){ .bucket = calloc(buckets, sizeof(*fixture->bucket)) };
	assert_non_null(fixture->bucket);
	assert_int_equal(table_open(&fixture->table, fixture->bucket, buckets, &fixture->sequence), 0);
}

static void fixture_close(struct fixture *fixture)
{
	table_close(&fixture->table);
	free(fixture->bucket);
}

static __u64 *hashes_of(__u64 seed, __u64 from, size_t count)
{
	__u64 *hash = malloc((count + 1) * sizeof(*hash));

	assert_non_null(hash);
	for (size_t i = 0; i < count; i++)
		hash[i] = churn_hash(seed, from + i);
	return hash;
}

static size_t bucket_bytes(const struct table *table)
{
	return (table->bucket_mask + 1) * sizeof(*table->bucket);
}

/* That the table holds these entries and no other: a copy of it is empty once they are deleted. */
static void assert_holds(const struct table *table, const __u64 *hash, size_t count)
{
	__u64 *bucket = malloc(bucket_bytes(table)), sequence = 0;
	struct table copy;

	assert_non_null(bucket);
	memcpy(bucket, table->bucket, bucket_bytes(table));
	assert_int_equal(table_open(&copy, bucket, table->bucket_mask + 1, &sequence), 0);
	assert_int_equal(table->used, count);
	assert_int_equal(copy.used, count);
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
static __u64 hash_of_two_buckets(const struct table *table, __u64 *twin)
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

/* ---- one call at a time ---- */

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
	assert_int_equal(table.used, 6);
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

/*
 * A fingerprint and one of its buckets tell the other, so the table tells apart all hashes but equal
 * ones of bucket pair and fingerprint; among a few thousand there are none.
 */
static void test_random_changes_match_a_multiset(void **state)
{
	enum { HASHES = 700, STEPS = 300000 };
	const __u64 seed = print_seed();
	__u64 *hash = hashes_of(seed, 0, HASHES), held[1024], full = 0;
	unsigned int times[HASHES] = {};
	struct fixture f;
	size_t count = 0;

	(void)state;
	fixture_open(&f, 10);
	for (__u64 step = 0; step < STEPS; step++) {
		__u64 random = churn_hash(seed + 1, step);
		size_t i = (random >> 32) % HASHES;

		/* Grows for 2000 steps, shrinks for as many. */
		if (random % 8 < (step / 2000 % 2 ? 3 : 5)) {
			int error = table_insert(&f.table, hash[i]);

			assert_true(!error || error == -ENOSPC);
			assert_true(!error || times[i] == 8 || f.table.used >= 900);
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
	print_message("# %llu inserts met a full table\n", full);
	fixture_close(&f);
	free(hash);
}

/* ---- reconcile ---- */

/* Number ranges of hashes that a table holds, and that it is to hold; 95 % of 2^12 slots are 3891. */
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
	{ "more of each", 0, 1000, 1, 0, 1000, 3, { 2000, 0, 1000 } },
	{ "fewer of each", 0, 1000, 3, 0, 1000, 1, { 0, 2000, 1000 } },
	{ "overlapping, of many", 0, 1000, 3, 500, 1000, 2, { 1000, 2000, 1000 } },
};

static __u64 *repeated_hashes(__u64 seed, size_t from, size_t count, size_t times)
{
	__u64 *hash = hashes_of(seed, from, count * times);

	for (size_t i = 0; i < count * times; i++)
		hash[i] = churn_hash(seed, from + i % (count ? count : 1));
	return hash;
}

static void reconcile(const struct reconcile_case *c, __u64 seed)
{
	__u64 *have = repeated_hashes(seed, c->from, c->count, c->times);
	__u64 *want = repeated_hashes(seed, c->want_from, c->want_count, c->want_times);
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
	want = repeated_hashes(seed, c->want_from, c->want_count, c->want_times);
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
	__u64 *have = hashes_of(seed, COUNT, SLOTS / 2), *want = hashes_of(seed, 0, COUNT);
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

/* ---- readers ---- */

/* A change: the entry's twin comes to one bucket, then a delete takes the entry from the other. */
static void change_by_twin(struct churn *churn)
{
	struct bucket_pair pair = bucket_pair(churn->hash[0], churn->table.bucket_mask,
					      churn->table.step_shift);
	__u64 twin = (__u64)pair.fingerprint << (64 - BUCKET_FINGERPRINT_BITS) | pair.second;

	churn->engine->insert(&churn->table, twin);
	churn->lost += !!churn->engine->delete(&churn->table, churn->hash[0]);
	churn->engine->insert(&churn->table, churn->hash[0]);
	churn->lost += !!churn->engine->delete(&churn->table, twin);
}

/* A change: all entries but the residents are exchanged at once. */
static void change_by_reconcile(struct churn *churn)
{
	size_t count = churn->count;
	struct table_difference difference;
	__u64 *want = malloc(count * sizeof(*want));

	for (size_t i = churn->residents; i < count; i++)
		churn->hash[i] = churn_hash(churn->seed, churn->next++);
	memcpy(want, churn->hash, count * sizeof(*want));
	churn->lost += !!table_reconcile(&churn->table, want, count, &difference);
	free(want);
}

static struct churn_result churn_once(const struct churn_engine *engine,
				      void (*change)(struct churn *churn), bool is_one_entry)
{
	const bool is_right = engine == &churn_right;
	const size_t count =
		is_one_entry ? 1 : (1 << CHURN_SLOTS_LOG2) * (size_t)TABLE_LOAD_PERCENT / 100;
	const __u64 lookups = is_right ? environment_number("CHURN_LOOKUPS", CHURN_LOOKUPS) :
					 CHURN_LOOKUPS_WRONG;
	struct churn_result result;
	struct churn churn;

	assert_int_equal(churn_open(&churn, engine, CHURN_SLOTS_LOG2, (count + 1) / 2, count,
				    print_seed()), 0);
	result = churn_run(&churn, change, lookups, is_right ? ~0ULL : 1);
	print_message("# %llu look-ups, %llu misses, %llu unsettled, %llu moves\n", result.lookups,
		      result.misses, result.unsettled, result.moves);
	assert_int_equal(churn.lost, 0);
	if (is_right)
		assert_holds(&churn.table, churn.hash, count);
	churn_close(&churn);
	return result;
}

static void assert_readers_miss_nothing(void (*change)(struct churn *churn), bool is_one_entry)
{
	assert_int_equal(churn_once(&churn_right, change, is_one_entry).misses, 0);
}

static void test_no_miss_while_others_move(void **state)
{
	struct churn_result result = churn_once(&churn_right, churn_replace, false);

	(void)state;
	assert_int_equal(result.misses, 0);
	assert_in_range(result.moves, 1000, ~0ULL);
}

static void test_no_miss_of_a_bounced_entry(void **state)
{
	(void)state;
	assert_readers_miss_nothing(churn_bounce, true);
}

static void test_no_miss_of_an_entry_with_a_twin(void **state)
{
	(void)state;
	assert_readers_miss_nothing(change_by_twin, true);
}

static void test_no_miss_while_others_are_reconciled(void **state)
{
	(void)state;
	assert_readers_miss_nothing(change_by_reconcile, false);
}

/* With one processor, reader and writer hardly ever meet. */
static void skip_without_two_processors(void)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) >= 2)
		return;
	fprintf(stderr, "# one processor: no reader looks while an entry is between two buckets\n");
	skip();
}

static void test_wrong_order_misses_while_others_move(void **state)
{
	(void)state;
	skip_without_two_processors();
	assert_int_equal(churn_once(&churn_wrong, churn_replace, false).misses, 1);
}

static void test_wrong_order_misses_a_bounced_entry(void **state)
{
	(void)state;
	skip_without_two_processors();
	assert_int_equal(churn_once(&churn_wrong, churn_bounce, true).misses, 1);
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
		cmocka_unit_test(test_reconcile),
		cmocka_unit_test(test_reconcile_too_many),
		cmocka_unit_test(test_reconcile_nine_equal_entries),
		cmocka_unit_test(test_largest_table),
		cmocka_unit_test(test_no_miss_while_others_move),
		cmocka_unit_test(test_no_miss_of_a_bounced_entry),
		cmocka_unit_test(test_no_miss_of_an_entry_with_a_twin),
		cmocka_unit_test(test_no_miss_while_others_are_reconciled),
		cmocka_unit_test(test_wrong_order_misses_while_others_move),
		cmocka_unit_test(test_wrong_order_misses_a_bounced_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
