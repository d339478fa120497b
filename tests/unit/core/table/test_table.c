// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The table engine without readers: what it holds, how full it gets, what a failure leaves. */
#include <math.h>

#include "unit/table_fixture.h"

static int open_buckets(struct table *table, __u32 buckets, __u32 step_shift, const struct table_memory *memory)
{
	return table_open(table, BUCKET_16, (struct bucket_geometry){ buckets, step_shift }, memory);
}

TEST(test_open_checks_geometry)
{
	static __u64 bucket[512];
	__u64 sequence = 0;
	__u64 record;
	const struct table_memory memory = { .bucket = bucket, .sequence = &sequence };
	const struct table_memory exact = { .bucket = bucket, .record = &record };
	struct table table = {};

	table_close(&table);
	assert_int_equal(open_buckets(&table, 0, 64, &memory), -EINVAL);
	assert_int_equal(open_buckets(&table, 128, 57, &memory), -EINVAL);
	assert_int_equal(open_buckets(&table, 384, 57, &memory), -EINVAL);
	assert_int_equal(open_buckets(&table, 512, 56, &memory), -EINVAL);
	assert_int_equal(open_buckets(&table, 1U << 29, 35, &memory), -EINVAL);
	assert_int_equal(open_buckets(&table, 17 << 12, 52, &memory), -EINVAL);
	for (enum bucket_format format = BUCKET_32; format <= BUCKET_FORMATS; format++)
		assert_int_equal(table_open(&table, format, table_geometry(2048), &exact), -EINVAL);
	table_close(&table);
	bucket[0] = 0x8000000000000001;
	bucket[511] = 0xffff80007fff0001;
	assert_int_equal(open_buckets(&table, 512, 55, &memory), 0);
	assert_int_equal(table_count(&table), 6);
	assert_int_equal(table_slots(&table), 2048);
	table_close(&table);
	table_close(&table);
}

/* Slots asked for, the slots of the smallest table with so many, and the slots of one piece. */
static const struct {
	__u64 asked, slots, piece;
} geometries[] = {
	{ 0, 1 << 10, 1 << 10 },
	{ 1 << 10, 1 << 10, 1 << 10 },
	{ (1 << 10) + 1, 1 << 11, 1 << 11 },
	{ (1 << 15) + 1, 1 << 16, 1 << 16 },
	{ (1 << 16) + 1, 1 << 17, 1 << 17 },
	{ (1 << 17) + 1, 3 << 16, 1 << 16 },
	{ (1 << 18) + 1, 5 << 16, 1 << 16 },
	{ (5 << 16) + 1, 6 << 16, 1 << 17 },
	{ (1 << 19) + 1, 9 << 16, 1 << 16 },
	{ (11 << 16) + 1, 12 << 16, 1 << 18 },
	{ (15 << 16) + 1, 1 << 20, 1 << 20 },
	{ 1000000, 1 << 20, 1 << 20 },
	{ 1100000, 9 << 17, 1 << 17 },
	{ (1ULL << 30) - 1, 1ULL << 30, 1ULL << 30 },
	{ 1ULL << 30, 1ULL << 30, 1ULL << 30 },
	{ ~0ULL, 1ULL << 30, 1ULL << 30 },
};

TEST(test_geometry)
{
	for (size_t i = 0; i < COUNT(geometries); i++) {
		const struct bucket_geometry geometry = table_geometry(geometries[i].asked);

		assert_int_equal(table_slots_of(geometry), geometries[i].slots);
		assert_int_equal(BUCKET_SLOTS * (1ULL << (64 - geometry.step_shift)), geometries[i].piece);
	}
}

TEST(test_slots_for)
{
	assert_int_equal(table_slots_for(0), 1 << 10);
	assert_int_equal(table_slots_for(972), 1 << 10);
	assert_int_equal(table_slots_for(973), 1 << 11);
	assert_int_equal(table_slots_for(249036), 1 << 18);
	assert_int_equal(table_slots_for(249037), 5 << 16);
	assert_int_equal(table_slots_for(996147), 1 << 20);
	assert_int_equal(table_slots_for(996148), 9 << 17);
	assert_int_equal(table_slots_for((1ULL << 30) * 95 / 100), 1ULL << 30);
	assert_in_range(table_slots_for((1ULL << 30) * 95 / 100 + 1), (1ULL << 30) + 1, ~0ULL);
	assert_in_range(table_slots_for(~0ULL), (1ULL << 30) + 1, ~0ULL);
}

TEST(test_bytes_and_false_positives)
{
	static const struct {
		enum bucket_format format;
		unsigned int bytes; /* of 2^10 slots */
		double rate;        /* of a full table: a look-up reads eight slots */
	} expected[] = {
		{ BUCKET_16, 2048, 8. / 65535 },
		{ BUCKET_32, 4096, 8. / 4294967295 },
		{ BUCKET_8, 1024, 8. / 255 },
		{ BUCKET_17, 2048, 8. / 131071 },
	};

	for (size_t i = 0; i < COUNT(expected); i++) {
		assert_int_equal(table_bucket_bytes(expected[i].format, table_geometry(1 << 10)), expected[i].bytes);
		assert_float_equal(table_false_positive_rate(expected[i].format, 1) / expected[i].rate, 1, 1e-6);
		assert_float_equal(table_false_positive_rate(expected[i].format, .5) / expected[i].rate, .5, 1e-6);
	}
}

/*
 * As many absent keys are found as table_false_positive_rate() says, within 6 sigma. That rate is the sum over all slots that a
 * look-up reads: of two slots with the same fingerprint only one counts here, which shows with 8 bits.
 */
TEST(test_false_positive_rate_is_met)
{
	enum { LOOKUPS = 1000000, SLOTS = 1 << 12 };
	const __u64 seed = seed_of_run();

	for (size_t k = 0; k < TABLE_KINDS; k++) {
		const size_t count = SLOTS * TABLE_LOAD_PERCENT / 100;
		struct table_entry *entry = entries_of(seed, 0, count);
		const double load = (double)count / SLOTS, read = 2 * BUCKET_SLOTS * load;
		double expected = 0, deviation;
		struct fixture f;
		size_t found = 0;

		fixture_open(&f, &table_kinds[k], SLOTS);
		assert_int_equal(table_build(&f.table, entry, count), 0);
		for (size_t i = 0; i < LOOKUPS; i++) {
			const struct hash_value absent = churn_key(churn_hash(~seed, i));

			found += table_find(&f.table, &absent, NULL);
		}
		if (!table_kinds[k].options.is_exact)
			expected =
				LOOKUPS * (1 - pow(1 - table_false_positive_rate(f.options.format, load) / read, read));
		deviation = found - expected;
		print_message("# %s: %zu of %d, expected %.1f\n", table_kinds[k].name, found, LOOKUPS, expected);
		assert_true(deviation * deviation <= 36 * (expected + 1));
		fixture_close(&f);
		free(entry);
	}
}

TEST(test_insert_find_delete)
{
	const struct hash_value zero = { 0, 7ULL << ABI_END_BITS }, other = { 2ULL << 48, zero.tag };
	const struct table_entry held = { .key = zero };

	for (size_t k = 0; k < TABLE_KINDS; k++) {
		struct fixture f;

		fixture_open(&f, &table_kinds[k], 1 << 10);
		assert_false(table_find(&f.table, &zero, NULL));
		assert_int_equal(table_delete(&f.table, &zero), -ENOENT);
		assert_int_equal(table_insert(&f.table, &zero, 0), 0);
		assert_true(table_find(&f.table, &zero, NULL));
		if (f.options.format != BUCKET_8) {
			assert_false(table_find(&f.table, &other, NULL));
			assert_int_equal(table_delete(&f.table, &other), -ENOENT);
		}
		assert_holds(&f, &held, 1);
		assert_int_equal(table_delete(&f.table, &zero), 0);
		assert_false(table_find(&f.table, &zero, NULL));
		assert_holds(&f, NULL, 0);
		fixture_close(&f);
	}
}

/* A compact table keeps eight equal entries, although it cannot tell them apart. */
TEST(test_equal_entries_are_kept_apart)
{
	for (size_t k = 0; k < TABLE_KINDS; k++) {
		struct hash_value key, twin;
		struct fixture f;

		if (table_kinds[k].options.is_exact)
			continue;
		fixture_open(&f, &table_kinds[k], 1 << 10);
		key = key_of_two_buckets(&f.table);
		twin = twin_of(&f.table, &key);
		for (unsigned int i = 0; i < 2 * BUCKET_SLOTS; i++)
			assert_int_equal(table_insert(&f.table, i % 2 ? &key : &twin, 0), 0);
		assert_int_equal(table_insert(&f.table, &key, 0), -ENOSPC);
		assert_int_equal(f.table.used, 2 * BUCKET_SLOTS);
		for (unsigned int i = 0; i < 2 * BUCKET_SLOTS; i++) {
			assert_true(table_find(&f.table, &key, NULL));
			assert_int_equal(table_delete(&f.table, i % 3 ? &key : &twin), 0);
		}
		assert_false(table_find(&f.table, &key, NULL));
		assert_int_equal(table_delete(&f.table, &key), -ENOENT);
		fixture_close(&f);
	}
}

static void fill_to_95_percent(const struct table_kind *kind, __u64 slots, __u64 seed)
{
	const size_t count = slots * TABLE_LOAD_PERCENT / 100;
	struct table_entry *entry = entries_of(seed, 0, count);
	struct fixture f;

	fixture_open(&f, kind, slots);
	assert_int_equal(table_slots(&f.table), slots);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(insert(&f, &entry[i]), 0);
	assert_in_range(f.table.longest_path, 1, 5);
	assert_holds(&f, entry, count);
	fixture_close(&f);
	free(entry);
}

TEST(test_95_percent_fit)
{
	const __u64 seed = seed_of_run();

	for (unsigned int slots_log2 = 10; slots_log2 <= 20; slots_log2 += 2)
		for (unsigned int run = 0; run < (slots_log2 < 20 ? 3 : 1); run++)
			fill_to_95_percent(KIND_COMPACT, 1ULL << slots_log2, seed + run);
	for (unsigned int eighths = 9; eighths < 16; eighths++)
		fill_to_95_percent(KIND_COMPACT, (__u64)eighths << 16, seed);
	for (size_t k = 0; k < TABLE_KINDS; k++) {
		fill_to_95_percent(&table_kinds[k], 1 << 14, seed);
		fill_to_95_percent(&table_kinds[k], 9 << 16, seed);
	}
}

TEST(test_build)
{
	const __u64 seed = seed_of_run(), slots = 1 << 14;
	const size_t count = slots * TABLE_LOAD_PERCENT / 100;
	struct table_entry *entry = entries_of(seed, 0, slots + 1);

	for (size_t k = 0; k < TABLE_KINDS; k++) {
		struct fixture f;

		fixture_open(&f, &table_kinds[k], slots);
		assert_int_equal(table_build(&f.table, entry, 0), 0);
		assert_holds(&f, entry, 0);
		assert_int_equal(table_build(&f.table, entry, count), 0);
		assert_holds(&f, entry, count);
		assert_int_equal(insert(&f, &entry[count]), 0);
		assert_holds(&f, entry, count + 1);
		fixture_close(&f);

		fixture_open(&f, &table_kinds[k], slots);
		assert_int_equal(table_build(&f.table, entry, slots + 1), -ENOSPC);
		fixture_close(&f);
	}
	free(entry);
}

TEST(test_full_table_is_left_as_it_was)
{
	const __u64 seed = seed_of_run(), slots = 1 << 12;
	struct table_entry *entry = entries_of(seed, 0, slots);

	for (size_t k = 0; k < TABLE_KINDS; k++) {
		struct fixture f, before, g;
		size_t count = 0;

		fixture_open(&f, &table_kinds[k], slots);
		while (!insert(&f, &entry[count]))
			count++;
		fixture_copy(&before, &f);
		g = f;
		assert_int_equal(insert(&f, &entry[count]), -ENOSPC);
		assert_in_range(count, slots * TABLE_LOAD_PERCENT / 100, slots);
		assert_memory_equal(before.memory.bucket, f.memory.bucket, bucket_bytes(&f.table));
		if (f.memory.record)
			assert_memory_equal(before.memory.record, f.memory.record, slots * sizeof(*f.memory.record));
		assert_memory_equal(&g, &f, sizeof(f));
		assert_holds(&f, entry, count);
		fixture_close(&before);
		fixture_close(&f);
	}
	free(entry);
}

static bool are_one(const struct table *table, __u64 a, __u64 b)
{
	const struct bucket_pair x = churn_pair(table, a), y = churn_pair(table, b);

	return x.fingerprint == y.fingerprint && (x.first == y.first || x.first == y.second);
}

/* Entries that this table can tell apart, even if its fingerprints are short. */
static struct table_entry *unlike_entries(const struct table *table, __u64 seed, size_t count)
{
	struct table_entry *entry = entries_of(seed, 0, count);
	__u64 next = count;

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < i;)
			if (are_one(table, entry[i].key.hash, entry[j++].key.hash)) {
				entry[i].key = churn_key(churn_hash(seed, next++));
				j = 0;
			}
	return entry;
}

/* Fills and empties the table in turns. A compact table has many entries more than once. */
static void change_at_random(const struct table_kind *kind, __u64 seed)
{
	enum { KEYS = 1500, STEPS = 60000, TURN = 4000 };
	struct table_entry *entry, held[1024];
	unsigned int times[KEYS] = {};
	struct fixture f;
	size_t count = 0;
	__u64 full = 0;

	fixture_open(&f, kind, 1 << 10);
	entry = unlike_entries(&f.table, seed, KEYS);
	for (__u64 step = 0; step < STEPS; step++) {
		const __u64 random = churn_hash(seed + 1, step);
		const size_t i = (random >> 32) % KEYS;

		if (random % 8 < (step / TURN % 2 ? 1 : 7)) {
			int error = kind->options.is_exact && times[i] ? -EEXIST : insert(&f, &entry[i]);

			assert_true(!error || error == -ENOSPC || error == -EEXIST);
			full += error == -ENOSPC;
			times[i] += !error;
		} else {
			assert_int_equal(table_delete(&f.table, &entry[i].key), times[i] ? 0 : -ENOENT);
			times[i] -= !!times[i];
		}
		assert_int_equal(table_find(&f.table, &entry[i].key, NULL), times[i] > 0);
	}
	for (size_t i = 0; i < KEYS; i++)
		for (unsigned int j = 0; j < times[i]; j++)
			held[count++] = entry[i];
	assert_holds(&f, held, count);
	assert_int_not_equal(f.table.moves, 0);
	assert_int_not_equal(full, 0);
	fixture_close(&f);
	free(entry);
}

TEST(test_random_changes_match_a_multiset)
{
	const __u64 seed = seed_of_run();

	for (size_t k = 0; k < TABLE_KINDS; k++)
		change_at_random(&table_kinds[k], seed);
}

TEST_MAIN(NULL, NULL)
