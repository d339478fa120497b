// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What readers see while the table engine works: that they miss nothing, and that the same readers
 * beside a wrong engine do, so that these tests can fail.
 */
#include "table_fixture.h"

#define SLOTS_LOG2 10 /* so small that reader and writer meet often */
#define COUNT_HIGH_LOAD ((1 << SLOTS_LOG2) * TABLE_LOAD_PERCENT / 100)
#define COUNT_LOWER_LOAD ((1 << SLOTS_LOG2) * 9 / 10) /* fits again, whichever entries they are */
#define LOOKUPS 30000000
#define LOOKUPS_WRONG 1000000000 /* at most; the first miss ends it */

/* A change: the entry's twin comes to one bucket, then a delete takes the entry from the other. */
static void change_by_twin(struct churn *churn)
{
	struct bucket_pair pair =
		bucket_pair(churn->hash[0], churn->table.bucket_mask, churn->table.step_shift);
	__u64 twin = (__u64)pair.fingerprint << (64 - BUCKET_FINGERPRINT_BITS) | pair.second;

	churn->engine->insert(&churn->table, twin);
	churn->lost += !!churn->engine->remove(&churn->table, churn->hash[0]);
	churn->engine->insert(&churn->table, churn->hash[0]);
	churn->lost += !!churn->engine->remove(&churn->table, twin);
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

/* Fills a table with `count` entries and looks half of them up while `change` goes on. */
static struct churn_result churn_once(const struct churn_engine *engine,
				      void (*change)(struct churn *churn), size_t count)
{
	const bool is_right = engine == &churn_right;
	const __u64 lookups =
		is_right ? environment_number("CHURN_LOOKUPS", LOOKUPS) : LOOKUPS_WRONG;
	struct churn_result result;
	struct churn churn;

	assert_int_equal(
		churn_open(&churn, engine, SLOTS_LOG2, (count + 1) / 2, count, print_seed()), 0);
	result = churn_run(&churn, change, lookups, is_right ? ~0ULL : 1);
	print_message("# %llu look-ups, %llu misses, %llu unsettled, %llu moves\n", result.lookups,
		      result.misses, result.unsettled, result.moves);
	assert_int_equal(churn.lost, 0);
	if (is_right)
		assert_holds(&churn.table, churn.hash, count);
	churn_close(&churn);
	return result;
}

static void test_no_miss_while_others_move(void **state)
{
	struct churn_result result = churn_once(&churn_right, churn_replace, COUNT_HIGH_LOAD);

	(void)state;
	assert_int_equal(result.misses, 0);
	assert_in_range(result.moves, 1000, ~0ULL);
}

static void test_no_miss_while_others_are_reconciled(void **state)
{
	(void)state;
	assert_int_equal(churn_once(&churn_right, change_by_reconcile, COUNT_LOWER_LOAD).misses, 0);
}

static void test_no_miss_of_a_bounced_entry(void **state)
{
	(void)state;
	assert_int_equal(churn_once(&churn_right, churn_bounce, 1).misses, 0);
}

static void test_no_miss_of_an_entry_with_a_twin(void **state)
{
	(void)state;
	assert_int_equal(churn_once(&churn_right, change_by_twin, 1).misses, 0);
}

/* With one processor, reader and writer hardly ever meet. */
static void skip_without_two_processors(void)
{
	cpu_set_t first = churn_processor(0), second = churn_processor(1);

	if (!CPU_EQUAL(&first, &second))
		return;
	fprintf(stderr, "# one processor: no reader looks while an entry is between two buckets\n");
	skip();
}

static void test_wrong_order_misses_while_others_move(void **state)
{
	(void)state;
	skip_without_two_processors();
	assert_int_equal(churn_once(&churn_wrong, churn_replace, COUNT_HIGH_LOAD).misses, 1);
}

static void test_wrong_order_misses_a_bounced_entry(void **state)
{
	(void)state;
	skip_without_two_processors();
	assert_int_equal(churn_once(&churn_wrong, churn_bounce, 1).misses, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_miss_while_others_move),
		cmocka_unit_test(test_no_miss_while_others_are_reconciled),
		cmocka_unit_test(test_no_miss_of_a_bounced_entry),
		cmocka_unit_test(test_no_miss_of_an_entry_with_a_twin),
		cmocka_unit_test(test_wrong_order_misses_while_others_move),
		cmocka_unit_test(test_wrong_order_misses_a_bounced_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
