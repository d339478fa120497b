// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* table_reconcile() makes the wanted table by the fewest changes, or says that it cannot. */
#include <sys/mman.h>

#include "unit/table_fixture.h"

/*
 * The numbers whose hashes a table holds and shall hold, and how often each. 95 % of 2^12 slots are 3891.
 */
static const struct reconcile_case {
	const char *name;
	size_t from, count, times, want_from, want_count, want_times;
	struct table_difference difference;
} reconcile_cases[] = {
	{ "empty to empty", 0, 0, 1, 0, 0, 1, { 0, 0, 0, 0 } },
	{ "empty to 95 %", 0, 0, 1, 0, 3891, 1, { 3891, 0, 0, 0 } },
	{ "95 % to empty", 0, 3891, 1, 0, 0, 1, { 0, 3891, 0, 0 } },
	{ "equal", 0, 3891, 1, 0, 3891, 1, { 0, 0, 3891, 0 } },
	{ "disjoint", 0, 3891, 1, 5000, 3891, 1, { 3891, 3891, 0, 0 } },
	{ "overlapping", 0, 3000, 1, 1000, 3891, 1, { 1891, 1000, 2000, 0 } },
	{ "surplus", 0, 3891, 1, 100, 20, 1, { 0, 3871, 20, 0 } },
	{ "one missing", 1, 3890, 1, 0, 3891, 1, { 1, 0, 3890, 0 } },
	{ "more of each", 0, 500, 1, 0, 500, 3, { 1000, 0, 500, 0 } },
	{ "fewer of each", 0, 500, 3, 0, 500, 1, { 0, 1000, 500, 0 } },
	{ "overlapping, of many", 0, 500, 3, 250, 500, 2, { 500, 1000, 500, 0 } },
};

static void reconcile(const struct table_kind *kind, const struct reconcile_case *c, __u64 seed)
{
	struct table_entry *have = distinct_entries(seed, c->from, c->count, c->times);
	struct table_entry *want = distinct_entries(seed, c->want_from, c->want_count, c->want_times);
	size_t want_count = c->want_count * c->want_times;
	struct table_difference difference;
	struct fixture f;

	fixture_open(&f, kind, 1 << 12);
	for (size_t i = 0; i < c->count * c->times; i++)
		assert_int_equal(insert(&f, &have[i]), 0);
	print_message("# %s: %s\n", kind->name, c->name);
	assert_int_equal(table_reconcile(&f.table, want, want_count, &difference), 0);
	assert_int_equal(difference.added, c->difference.added);
	assert_int_equal(difference.removed, c->difference.removed);
	assert_int_equal(difference.kept, c->difference.kept);
	assert_holds(&f, want, want_count);
	free(want);
	want = distinct_entries(seed, c->want_from, c->want_count, c->want_times);
	assert_holds(&f, want, want_count);
	fixture_close(&f);
	free(have);
	free(want);
}

/* With 8 bits the keys are not distinct. An exact table has each key once. */
TEST(test_reconcile)
{
	const __u64 seed = seed_of_run();

	for (size_t k = 0; k < TABLE_KINDS; k++)
		for (size_t i = 0; i < COUNT(reconcile_cases); i++) {
			const struct reconcile_case *c = &reconcile_cases[i];

			if (table_kinds[k].options.format != BUCKET_8 &&
			    (!table_kinds[k].options.is_exact || c->times * c->want_times == 1))
				reconcile(&table_kinds[k], c, seed);
		}
}

/* 8 bits: many entries are equal, so only the final table is checked. */
TEST(test_reconcile_8_bits)
{
	enum { COUNT = 3800, SHIFT = 1000 };
	const struct table_kind kind = { .options = { .format = BUCKET_8 } };
	struct table_entry *have = entries_of(seed_of_run(), 0, COUNT + SHIFT);
	struct table_difference difference;
	struct fixture f;

	fixture_open(&f, &kind, 1 << 12);
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(insert(&f, &have[i]), 0);
	assert_int_equal(table_reconcile(&f.table, have + SHIFT, COUNT, &difference), 0);
	assert_int_equal(difference.kept + difference.added, COUNT);
	assert_int_equal(difference.removed, difference.added);
	assert_in_range(difference.kept, COUNT - SHIFT, COUNT);
	assert_holds(&f, have + SHIFT, COUNT);
	fixture_close(&f);
	free(have);
}

/* If too many entries are wanted, the table holds only wanted ones. */
TEST(test_reconcile_too_many)
{
	enum { SLOTS = 1 << 12, COUNT = 2 * SLOTS };
	const __u64 seed = seed_of_run();

	for (size_t k = 0; k < TABLE_KINDS; k++) {
		struct table_entry *have = distinct_entries(seed, COUNT, SLOTS / 2, 1);
		struct table_entry *want = distinct_entries(seed, 0, COUNT, 1);
		struct table_difference difference, second;
		struct fixture f;

		if (table_kinds[k].options.format == BUCKET_8) {
			free(have);
			free(want);
			continue;
		}
		fixture_open(&f, &table_kinds[k], SLOTS);
		for (size_t i = 0; i < SLOTS / 2; i++)
			assert_int_equal(insert(&f, &have[i]), 0);
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
}

TEST(test_reconcile_nine_equal_entries)
{
	enum { EQUAL = 9, COUNT = 3000 + EQUAL };
	struct table_entry *want = entries_of(1, 1000, COUNT), *fits = entries_of(1, 1000, COUNT);
	struct table_difference difference;
	struct fixture f;

	fixture_open(&f, KIND_COMPACT, 1 << 12);
	for (size_t i = 0; i < EQUAL; i++)
		fits[i].key = want[i].key = key_of_two_buckets(&f.table);
	assert_int_equal(table_reconcile(&f.table, want, COUNT, &difference), -ENOSPC);
	assert_int_equal(difference.added, COUNT - 1);
	assert_holds(&f, fits + 1, COUNT - 1);
	fixture_close(&f);
	free(want);
	free(fits);
}

/* ---- repair of an exact table after a crash or other damage ---- */

enum { DAMAGED = 3000 };

/* A move that stopped after the copy, before it cleared the source. */
static void leave_copy(struct fixture *f, const struct table_entry *entry)
{
	const struct table_place from = place_of(&f->table, &entry->key);
	const struct bucket_pair pair = churn_pair(&f->table, entry->key.hash);
	struct table_place to;

	if (core_find_free(&f->table, core_exact(), pair.first ^ pair.second ^ from.bucket, &to))
		table_publish(&f->table, core_exact(), to, pair.fingerprint,
			      *table_record(&f->table, core_exact(), from));
}

static void spoil_tag(struct fixture *f, const struct table_entry *entry)
{
	*table_record(&f->table, core_exact(), place_of(&f->table, &entry->key)) ^= 1ULL << ABI_END_BITS;
}

static const struct damage {
	const char *name;
	void (*damage)(struct fixture *f, const struct table_entry *entry);
	struct table_difference difference;
	size_t harmed; /* how many of ten keys are inserted again */
} damages[] = {
	{ "a copy of an entry", leave_copy, { 0, 1, 10, 0 }, 0 },
	{ "a record of another key", spoil_tag, { 1, 1, 9, 0 }, 1 },
};

/* One key in ten is damaged. All others keep their counters. */
static void repair(const struct damage *c, __u64 seed)
{
	struct table_entry *entry = distinct_entries(seed, 0, DAMAGED, 1),
			   *want = distinct_entries(seed, 0, DAMAGED, 1);
	static __u32 slot[DAMAGED];
	struct table_difference difference;
	__u64 copies, sequence;
	struct fixture f;

	print_message("# %s\n", c->name);
	fixture_open(&f, KIND_EXACT, 1 << 12);
	assert_int_equal(table_build(&f.table, entry, DAMAGED), 0);
	for (size_t i = 0; i < DAMAGED; i++)
		assert_true(table_find(&f.table, &entry[i].key, &slot[i]));
	for (size_t i = 0; i < DAMAGED; i++)
		f.memory.counter[slot[i]].packets = i + 1;
	for (size_t i = 0; i < DAMAGED; i += 10)
		c->damage(&f, &entry[i]);
	copies = table_count(&f.table) - DAMAGED;
	sequence = f.sequence;
	assert_int_equal(table_reconcile(&f.table, want, DAMAGED, &difference), 0);
	assert_int_equal(difference.kept, c->difference.kept * DAMAGED / 10);
	assert_int_equal(difference.added, c->difference.added * DAMAGED / 10);
	/* Deleting a copy completes the interrupted move, so it is announced like a move. */
	if (c->damage == leave_copy) {
		assert_in_range(copies, 100, DAMAGED / 10);
		assert_int_equal(f.sequence - sequence, copies);
	}
	assert_int_equal(difference.removed, copies + difference.added);
	assert_holds(&f, entry, DAMAGED);
	for (size_t i = 0; i < DAMAGED; i++) {
		__u32 now;

		assert_true(table_find(&f.table, &entry[i].key, &now));
		assert_int_equal(f.memory.counter[now].packets, i % 10 < c->harmed ? 0 : i + 1);
	}
	fixture_close(&f);
	free(entry);
	free(want);
}

TEST(test_reconcile_repairs)
{
	const __u64 seed = seed_of_run();

	for (size_t i = 0; i < COUNT(damages); i++)
		repair(&damages[i], seed);
}

/* The largest table. Only the pages with entries take memory. */
TEST(test_largest_table)
{
	enum { COUNT = 1000 };
	const struct bucket_geometry geometry = table_geometry(1ULL << ABI_SLOTS_MAX_LOG2);
	const size_t bytes = table_bucket_bytes(BUCKET_16, geometry);
	struct table_entry *want = entries_of(1, 0, COUNT), *have = entries_of(1, COUNT / 2, COUNT);
	struct table_difference difference;
	__u64 sequence = 0;
	struct table_memory memory = { .sequence = &sequence };
	struct table table;

	memory.bucket = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(memory.bucket, MAP_FAILED);
	madvise(memory.bucket, bytes, MADV_NOHUGEPAGE);
	assert_int_equal(table_open(&table, BUCKET_16, geometry, &memory), 0);
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(table_insert(&table, &have[i].key, 0), 0);
	assert_int_equal(table_reconcile(&table, want, COUNT, &difference), 0);
	assert_int_equal(difference.kept, COUNT / 2);
	assert_int_equal(difference.added, COUNT / 2);
	assert_int_equal(difference.removed, COUNT / 2);
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(table_delete(&table, &want[i].key), 0);
	assert_int_equal(table.used, 0);
	table_close(&table);
	munmap(memory.bucket, bytes);
	free(want);
	free(have);
}

TEST_MAIN(NULL, NULL)
