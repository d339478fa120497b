// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A table that maps parts of its buckets, records and counters when a key needs them. A key needs few parts. The table
 * touches no other parts, which would be a fault. If a part cannot be mapped, nothing changes.
 */
#include "unit/table_fixture.h"

#include <sys/mman.h>
#include <unistd.h>

#define PART_SLOTS (1ULL << 14)
#define SLOTS (1ULL << 22)
#define RECORD_BYTES (SLOTS * sizeof(__u64))
#define BUCKETS_AT (RECORD_BYTES + SLOTS * sizeof(struct abi_counter))
#define BYTES (BUCKETS_AT + SLOTS * sizeof(__u16))
#define FULL (SLOTS * 94 / 100) /* most inserts move other entries */
#define FEW 100

/* Records, then counters, then buckets. `all` maps everything, for the test; `mapped` is what the table has mapped. */
struct lazy {
	struct fixture fixture;
	int file;
	char *all, *mapped, *before;
};

static const int *mapped_file;
static unsigned int calls, calls_allowed;

static int map(void *at, size_t offset, size_t bytes)
{
	return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, *mapped_file, offset) == MAP_FAILED;
}

static int reach(const struct table *table, __u64 slot, __u64 slots)
{
	const __u64 first = slots ? slot : 0, count = slots ? slots : SLOTS;

	if (calls++ >= calls_allowed)
		return -ENOMEM;
	assert_int_equal(map((char *)table->memory.bucket + first * sizeof(__u16), BUCKETS_AT + first * sizeof(__u16),
			     count * sizeof(__u16)),
			 0);
	if (!slots)
		return 0;
	assert_int_equal(map(&table->memory.record[slot], slot * sizeof(__u64), slots * sizeof(__u64)), 0);
	assert_int_equal(map(&table->memory.counter[slot], RECORD_BYTES + slot * sizeof(struct abi_counter),
			     slots * sizeof(struct abi_counter)),
			 0);
	return 0;
}

/* Unmaps everything. From then on `allowed` parts can be mapped. */
static void unmap(struct lazy *lazy, unsigned int allowed)
{
	assert_true(mmap(lazy->mapped, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
			 0) == lazy->mapped);
	lazy->fixture.table.reach = reach;
	memset(lazy->fixture.table.reached, 0, sizeof(lazy->fixture.table.reached));
	lazy->fixture.table.has_buckets = false;
	calls = 0;
	calls_allowed = allowed;
}

static void lazy_open(struct lazy *lazy)
{
	struct fixture *f = &lazy->fixture;

	fixture_open(f, KIND_EXACT, SLOTS);
	free(f->memory.record);
	free(f->memory.counter);
	free(f->memory.bucket);
	lazy->file = memfd_create("table", MFD_CLOEXEC);
	mapped_file = &lazy->file;
	assert_int_equal(ftruncate(lazy->file, BYTES), 0);
	lazy->all = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, lazy->file, 0);
	lazy->mapped = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	lazy->before = malloc(BYTES);
	assert_true(lazy->all != MAP_FAILED && lazy->mapped != MAP_FAILED && lazy->before);
	f->memory.record = f->table.memory.record = (__u64 *)lazy->mapped;
	f->memory.counter = f->table.memory.counter = (struct abi_counter *)(lazy->mapped + RECORD_BYTES);
	f->memory.bucket = f->table.memory.bucket = lazy->mapped + BUCKETS_AT;
	unmap(lazy, 0);
}

static void lazy_close(struct lazy *lazy)
{
	lazy->fixture.memory.record = NULL;
	lazy->fixture.memory.counter = NULL;
	lazy->fixture.memory.bucket = NULL;
	fixture_close(&lazy->fixture);
	munmap(lazy->all, BYTES);
	munmap(lazy->mapped, BYTES);
	close(lazy->file);
	free(lazy->before);
}

static void remember(const struct lazy *lazy)
{
	memcpy(lazy->before, lazy->all, BYTES);
}

static void assert_nothing_changed(const struct lazy *lazy)
{
	assert_true(!memcmp(lazy->before, lazy->all, BYTES));
}

TEST(test_a_key_needs_few_parts)
{
	struct table_entry *entry = entries_of(seed_of_run(), 0, FEW);
	struct lazy lazy;
	struct table *table = &lazy.fixture.table;

	lazy_open(&lazy);
	for (size_t i = 0; i < FEW; i++) {
		unmap(&lazy, 2);
		assert_int_equal(table_insert(table, &entry[i].key, 7), 0);
		unmap(&lazy, 2);
		assert_int_equal(table_set_end(table, &entry[i].key, 8, NULL), 0);
		unmap(&lazy, 2);
		assert_int_equal(table_delete(table, &entry[i].key), 0);
		assert_int_equal(table_delete(table, &entry[i].key), -ENOENT);
	}
	assert_int_equal(table->used, 0);
	calls_allowed++;
	assert_int_equal(table_reach_all(table), 0);
	assert_int_equal(table_count(table), 0);
	lazy_close(&lazy);
	free(entry);
}

/*
 * Repeats an insert with one more part allowed each time, until it succeeds. Returns the parts that it
 * needed.
 */
static unsigned int insert_after_failures(struct lazy *lazy, const struct table_entry *entry)
{
	struct table *table = &lazy->fixture.table;
	unsigned int allowed = 0;
	int error;

	remember(lazy);
	for (;; allowed++) {
		unmap(lazy, allowed);
		error = table_insert(table, &entry->key, entry->end);
		if (!error)
			return allowed;
		assert_int_equal(error, -ENOMEM);
		assert_nothing_changed(lazy);
	}
}

TEST(test_failures_change_nothing)
{
	struct table_entry *entry = entries_of(seed_of_run(), 0, FULL + FEW);
	unsigned int most = 0;
	struct lazy lazy;
	struct table *table = &lazy.fixture.table;

	lazy_open(&lazy);
	calls_allowed = 1;
	assert_int_equal(table_reach_all(table), 0);
	assert_int_equal(table_build(table, entry, FULL), 0);
	for (size_t i = FULL; i < FULL + FEW && most < 4; i++) {
		const unsigned int needed = insert_after_failures(&lazy, &entry[i]);

		most = needed > most ? needed : most;
		assert_int_equal(table->used, i + 1);
		unmap(&lazy, 2);
		assert_int_equal(table_set_end(table, &entry[i].key, 9, NULL), 0);
	}
	assert_in_range(most, 4, 64);
	remember(&lazy);
	for (unsigned int allowed = 0; allowed < 2; allowed++) {
		unmap(&lazy, allowed);
		table_delete(table, &entry[0].key);
		if (allowed && calls < 2) /* both buckets in one part */
			break;
		assert_nothing_changed(&lazy);
	}
	lazy_close(&lazy);
	free(entry);
}

/* A function that reads every slot maps all parts at once, or fails. */
TEST(test_all)
{
	struct table_entry *entry = entries_of(seed_of_run(), 0, FEW);
	struct table_difference difference;
	struct lazy lazy;
	struct table *table = &lazy.fixture.table;

	lazy_open(&lazy);
	remember(&lazy);
	assert_int_equal(table_reach_all(table), -ENOMEM);
	assert_int_equal(table_reset_counts(table), -ENOMEM);
	assert_int_equal(table_reconcile(table, entry, FEW, &difference), -ENOMEM);
	assert_nothing_changed(&lazy);
	unmap(&lazy, 1);
	assert_int_equal(table_reconcile(table, entry, FEW, &difference), 0);
	assert_int_equal(difference.added, FEW);
	for (size_t i = 0; i < FEW; i++)
		assert_true(table_find(table, &entry[i].key, NULL));
	((struct abi_counter *)(lazy.all + RECORD_BYTES))[SLOTS - 1].packets = 5;
	unmap(&lazy, 1);
	assert_int_equal(table_reset_counts(table), 0);
	assert_int_equal(table->memory.counter[SLOTS - 1].packets, 0);
	assert_int_equal(calls, 1);
	lazy_close(&lazy);
	free(entry);
}

/* What the table asked for last. */
static __u64 asked_slot, asked_slots;

static int note_reach(const struct table *table, __u64 slot, __u64 slots)
{
	(void)table;
	asked_slot = slot;
	asked_slots = slots;
	return calls++ < calls_allowed ? 0 : -ENOMEM;
}

/* A small table is one part, a large one has no more parts than `reached` has bits, and the last part may be smaller. */
TEST(test_sizes_of_parts)
{
	static const struct {
		__u64 slots, slot, first, asked;
	} cases[] = {
		{ 1 << 12, 0, 0, 1 << 12 },
		{ 1 << 12, (1 << 12) - 1, 0, 1 << 12 },
		{ 12 * PART_SLOTS, 12 * PART_SLOTS - 1, 11 * PART_SLOTS, PART_SLOTS },
		{ 4 * TABLE_PARTS * PART_SLOTS, 0, 0, 4 * PART_SLOTS },
		{ 4 * TABLE_PARTS * PART_SLOTS, 4 * TABLE_PARTS * PART_SLOTS - 1, 4 * (TABLE_PARTS - 1) * PART_SLOTS,
		  4 * PART_SLOTS },
	};

	calls_allowed = COUNT(cases);
	calls = 0;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct table table = { .geometry = table_geometry(cases[i].slots) };

		assert_int_equal(table_slots(&table), cases[i].slots);
		assert_int_equal(table_reach(&table, cases[i].slot), 0); /* all is mapped */
		table.reach = note_reach;
		assert_int_equal(table_reach(&table, cases[i].slot), 0);
		assert_int_equal(table_reach(&table, cases[i].first), 0); /* the same part: nothing is asked */
		assert_int_equal(calls, i + 1);
		assert_int_equal(asked_slot, cases[i].first);
		assert_int_equal(asked_slots, cases[i].asked);
	}
}

/* An insert that moves no other entry, and a new end. */
TEST(test_a_part_that_cannot_be_mapped)
{
	struct table_entry *entry = entries_of(seed_of_run(), 0, 2);
	struct fixture f;

	fixture_open(&f, KIND_EXACT, 1 << 10);
	assert_int_equal(insert(&f, &entry[0]), 0);
	f.table.reach = note_reach;
	calls = calls_allowed = 0;
	assert_int_equal(insert(&f, &entry[1]), -ENOMEM);
	assert_int_equal(table_set_end(&f.table, &entry[0].key, 9, NULL), -ENOMEM);
	assert_int_equal(table_delete(&f.table, &entry[0].key), -ENOMEM);
	f.table.reach = NULL;
	assert_holds(&f, entry, 1);
	fixture_close(&f);
	free(entry);
}

TEST(test_no_counters_to_reset)
{
	struct table_entry *entry = entries_of(seed_of_run(), 0, 1);
	struct fixture f;

	for (size_t k = 0; k < TABLE_KINDS; k++) {
		fixture_open(&f, &table_kinds[k], 1 << 10);
		assert_int_equal(insert(&f, &entry[0]), 0);
		assert_int_equal(table_reset_counts(&f.table), 0);
		assert_holds(&f, entry, 1);
		fixture_close(&f);
	}
	free(entry);
}

TEST_MAIN(NULL, NULL)
