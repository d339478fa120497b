// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Readers miss no entry while the engine works. With a wrong engine the same readers do miss entries, which
 * shows that these tests can fail.
 */
#include "unit/table_fixture.h"

#include <sys/syscall.h>

#define SLOTS (1 << 10) /* so small that reader and writer meet often */
#define COUNT_HIGH_LOAD (SLOTS * TABLE_LOAD_PERCENT / 100)
#define COUNT_LOWER_LOAD (SLOTS * 9 / 10) /* any set of so many entries fits */
#define LOOKUPS 2000000
#define MOVES_MIN 1000 /* during the look-ups */
#define RUNS_MAX 20
#define LOOKUPS_WRONG 1000000000 /* the most; the first miss ends the test */

/* A change: a twin of the entry comes to one bucket, then the entry is deleted from the other. */
static void change_by_twin(struct churn *churn)
{
	const __u64 twin = churn_twin(&churn->table, churn->hash[0]);

	churn_insert(churn, twin);
	churn->lost += !!churn_remove(churn, churn->hash[0]);
	churn_insert(churn, churn->hash[0]);
	churn->lost += !!churn_remove(churn, twin);
}

/* A change: all entries except the residents are replaced at once. */
static void change_by_reconcile(struct churn *churn)
{
	const size_t count = churn->count;
	struct table_difference difference;
	struct table_entry *want = calloc(count, sizeof(*want));

	for (size_t i = churn->residents; i < count; i++)
		churn->hash[i] = churn_hash(churn->seed, churn->next++);
	for (size_t i = 0; i < count; i++)
		want[i].key = churn_key(churn->hash[i]);
	churn->lost += !!table_reconcile(&churn->table, want, count, &difference);
	free(want);
}

/* A change to an exact table: while the entry is in its other bucket, a key that has ended uses its slot. */
static void change_by_tenant(struct churn *churn)
{
	struct table *table = &churn->table;
	const struct bucket_pair pair = churn_pair(table, churn->hash[0]);
	const struct hash_value tenant = { churn_hash_at(table, pair.first, pair.fingerprint),
					   churn_key(churn->hash[0]).tag ^ 1ULL << ABI_END_BITS };
	const struct table_place first = { pair.first, 0 }, second = { pair.second, 0 };

	churn->engine->move(table, first, second);
	churn->lost += !!churn->engine->insert(table, &tenant, 1);
	churn->lost += !!churn->engine->remove(table, &tenant);
	churn->engine->move(table, second, first);
}

/* Fills a table with `count` entries, and looks half of them up while `change` runs again and again. */
static struct churn_result churn_once(const struct churn_engine *engine, const struct table_kind *kind,
				      void (*change)(struct churn *churn), size_t count)
{
	const bool is_right = engine == &churn_right;
	const __u64 lookups = is_right ? environment_number("CHURN_LOOKUPS", LOOKUPS) : LOOKUPS_WRONG;
	struct churn_result result;
	struct churn churn;

	assert_int_equal(churn_open(&churn, engine, kind->options, SLOTS, (count + 1) / 2, count, seed_of_run()), 0);
	result = churn_run(&churn, change, lookups, is_right ? ~0ULL : 1);
	print_message("# %s: %llu look-ups, %llu misses, %llu unsettled, %llu moves\n", kind->name, result.lookups,
		      result.misses, result.unsettled, result.moves);
	assert_int_equal(churn.lost, 0);
	if (is_right) {
		struct fixture view = { .table = churn.table, .options = kind->options, .memory = churn.memory };
		struct table_entry *entry = calloc(count, sizeof(*entry));

		assert_non_null(entry);
		for (size_t i = 0; i < count; i++)
			entry[i].key = churn_key(churn.hash[i]);
		assert_holds(&view, entry, count);
		free(entry);
	}
	churn_close(&churn);
	return result;
}

/* Returns the moves. */
static __u64 assert_no_fault(const struct table_kind *kind, void (*change)(struct churn *churn), size_t count)
{
	struct churn_result result = churn_once(&churn_right, kind, change, count);

	assert_int_equal(result.misses, 0);
	return result.moves;
}

/* Repeats the run if the machine was busy and the writer got no CPU. */
TEST(test_no_miss_while_others_move)
{
	for (size_t k = 0; k < TABLE_KINDS; k++) {
		__u64 moves = 0;

		for (int run = 0; run < RUNS_MAX && moves < MOVES_MIN; run++)
			moves += assert_no_fault(&table_kinds[k], churn_replace, COUNT_HIGH_LOAD);
		assert_in_range(moves, MOVES_MIN, ~0ULL);
	}
}

TEST(test_no_miss_while_others_are_reconciled)
{
	for (size_t k = 0; k < TABLE_KINDS; k++)
		assert_no_fault(&table_kinds[k], change_by_reconcile, COUNT_LOWER_LOAD);
}

TEST(test_no_miss_of_a_bounced_entry)
{
	for (size_t k = 0; k < TABLE_KINDS; k++)
		assert_no_fault(&table_kinds[k], churn_bounce, 1);
}

TEST(test_no_miss_of_an_entry_with_a_twin)
{
	for (size_t k = 0; k < TABLE_KINDS; k++)
		if (!table_kinds[k].options.is_exact)
			assert_no_fault(&table_kinds[k], change_by_twin, 1);
}

TEST(test_no_end_of_a_tenant)
{
	churn_tick = 2;
	assert_no_fault(KIND_EXACT, change_by_tenant, 1);
}

static void assert_misses(enum churn_fault fault, const struct table_kind *kind, void (*change)(struct churn *churn),
			  size_t count)
{
	struct churn_engine engine = churn_wrong;

	skip_without_two_processors();
	engine.fault = fault;
	assert_int_equal(churn_once(&engine, kind, change, count).misses, 1);
}

TEST(test_overwriting_first_misses_while_others_move)
{
	for (size_t k = 0; k < TABLE_KINDS; k++)
		assert_misses(CHURN_OVERWRITE_FIRST, &table_kinds[k], churn_replace, COUNT_HIGH_LOAD);
}

TEST(test_overwriting_first_misses_a_bounced_entry)
{
	for (size_t k = 0; k < TABLE_KINDS; k++)
		assert_misses(CHURN_OVERWRITE_FIRST, &table_kinds[k], churn_bounce, 1);
}

TEST(test_record_last_misses_while_others_move)
{
	assert_misses(CHURN_RECORD_LAST, KIND_EXACT, churn_replace, COUNT_HIGH_LOAD);
}

/* ---- readers that may reorder their loads ---- */

static __u64 waits;

/* In place of that of the C library, for grace_wait(). */
long syscall(long number, ...)
{
	waits += number == SYS_membarrier;
	return 0;
}

/* The writer waits once for each move, if it must, and not otherwise. */
TEST(test_waits_for_each_move)
{
	enum { COUNT = COUNT_HIGH_LOAD };
	struct table_entry *entry = distinct_entries(seed_of_run(), 0, COUNT, 1);
	struct fixture f;

	for (int must_wait = 0; must_wait < 2; must_wait++) {
		fixture_open(&f, KIND_EXACT, SLOTS);
		f.table.waits_for_readers = must_wait;
		waits = 0;
		for (size_t i = 0; i < COUNT; i++)
			assert_int_equal(insert(&f, &entry[i]), 0);
		assert_in_range(f.table.moves, 1, ~0ULL);
		assert_int_equal(waits, must_wait ? f.table.moves : 0);
		fixture_close(&f);
	}
	free(entry);
}

TEST_MAIN(NULL, NULL)
