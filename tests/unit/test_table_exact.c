// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Exact tables: a record tells a key from every other, and a key's number is its own. */
#include "table_fixture.h"

/*
 * Keys with equal fingerprints in equal buckets are told apart, and each goes without the others.
 */
static void test_equal_fingerprints_are_told_apart(void **state)
{
	enum { KEYS = 2 * BUCKET_SLOTS };
	struct table_entry entry[KEYS] = {};
	struct hash_value key, twin, absent;
	__u32 number[KEYS], found;
	struct fixture f;

	(void)state;
	fixture_open(&f, KIND_EXACT, 1 << 10);
	key = key_of_two_buckets(&f.table);
	twin = twin_of(&f.table, &key);
	for (unsigned int i = 0; i < KEYS; i++) {
		entry[i].key = i % 2 ? twin : key;
		entry[i].key.tag = 100 + i;
		assert_int_equal(insert(&f, &entry[i]), 0);
		assert_true(table_find(&f.table, &entry[i].key, &number[i]));
	}
	absent = (struct hash_value){ key.hash, 100 + KEYS };
	assert_false(table_find(&f.table, &absent, NULL));
	assert_int_equal(table_delete(&f.table, &absent), -ENOENT);
	assert_int_equal(table_insert(&f.table, &absent, 0), -ENOSPC);
	assert_holds(&f, entry, KEYS);
	for (unsigned int i = 0; i < KEYS; i++) {
		assert_int_equal(table_delete(&f.table, &entry[i].key), 0);
		assert_int_equal(table_delete(&f.table, &entry[i].key), -ENOENT);
		for (unsigned int j = 0; j < KEYS; j++) {
			assert_int_equal(table_find(&f.table, &entry[j].key, &found), j > i);
			assert_int_equal(found, j > i ? number[j] : 0);
		}
	}
	fixture_close(&f);
}

/* At a low lane that matches, the lane above may match in the bits though it holds one less. */
static void test_only_equal_fingerprints_are_compared(void **state)
{
	struct hash_value low, above;
	struct fixture f;

	(void)state;
	fixture_open(&f, KIND_EXACT, 1 << 10);
	low = (struct hash_value){ churn_hash_at(&f.table, 5, 0x1234), 1 };
	above = (struct hash_value){ churn_hash_at(&f.table, 5, 0x1235), 2 };
	assert_int_equal(table_insert(&f.table, &low, 0), 0);
	assert_int_equal(table_insert(&f.table, &above, 0), 0);
	above.hash = low.hash;
	assert_false(table_find(&f.table, &above, NULL));
	assert_int_equal(table_delete(&f.table, &above), -ENOENT);
	assert_int_equal(f.table.used, 2);
	fixture_close(&f);
}

static void test_numbers_stay_while_entries_move(void **state)
{
	enum { SLOTS = 1 << 12, COUNT = SLOTS * TABLE_LOAD_PERCENT / 100, HALF = COUNT / 2 };
	struct table_entry *entry = entries_of(print_seed(), 0, COUNT);
	static __u32 number[HALF];
	struct fixture f;

	(void)state;
	fixture_open(&f, KIND_EXACT, SLOTS);
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(insert(&f, &entry[i]), 0);
		if (i < HALF)
			assert_true(table_find(&f.table, &entry[i].key, &number[i]));
	}
	assert_in_range(f.table.moves, 100, ~0ULL);
	for (size_t i = 0; i < HALF; i++) {
		__u32 now;

		assert_true(table_find(&f.table, &entry[i].key, &now));
		assert_int_equal(now, number[i]);
	}
	assert_holds(&f, entry, COUNT);
	fixture_close(&f);
	free(entry);
}

/* Where a reader looks for the count of a key before it knows the key's number. */
static bool is_at_home(const struct fixture *f, const struct hash_value *key)
{
	const struct bucket_pair pair =
		bucket_pair(key->hash, f->table.geometry, bucket_layout(BUCKET_16));
	__u32 number;

	assert_true(table_find(&f->table, key, &number));
	return number / BUCKET_SLOTS == pair.first;
}

/* Of 3.8 keys a bucket, 83 % are among the first four of theirs; others take what they leave, and some of it. */
static void test_most_numbers_are_near_the_first_bucket(void **state)
{
	enum { SLOTS = 1 << 14, COUNT = SLOTS * TABLE_LOAD_PERCENT / 100 };
	struct table_entry *entry = entries_of(print_seed(), 0, COUNT);
	struct fixture f;
	size_t at_home = 0;

	(void)state;
	fixture_open(&f, KIND_EXACT, SLOTS);
	assert_int_equal(table_build(&f.table, entry, COUNT), 0);
	for (size_t i = 0; i < COUNT; i++)
		at_home += is_at_home(&f, &entry[i].key);
	assert_in_range(at_home, COUNT * 7 / 10, COUNT * 83 / 100);
	assert_holds(&f, entry, COUNT);
	fixture_close(&f);
	free(entry);
}

static void test_a_number_is_counted_from_0_again(void **state)
{
	const struct hash_value first = churn_key(churn_hash(1, 0));
	struct fixture f;
	__u32 number, freed;

	(void)state;
	fixture_open(&f, KIND_EXACT, 1 << 10);
	assert_int_equal(table_insert(&f.table, &first, 0), 0);
	assert_true(is_at_home(&f, &first));
	assert_true(table_find(&f.table, &first, &freed));
	table_counter(&f.table, freed)->packets += 3;
	table_counter(&f.table, freed)->bytes += 300;
	assert_int_equal(table_delete(&f.table, &first), 0);
	assert_int_equal(table_counter(&f.table, freed)->packets, 3);
	assert_int_equal(table_counter(&f.table, freed)->bytes, 300);
	assert_int_equal(table_insert(&f.table, &first, 0), 0);
	assert_true(table_find(&f.table, &first, &number));
	assert_int_equal(number, freed);
	assert_int_equal(table_counter(&f.table, number)->packets, 0);
	assert_int_equal(table_counter(&f.table, number)->bytes, ABI_RULE_TAKEN);
	fixture_close(&f);
}

/* So that a hit reads and counts in one line: of all keys that were built in, and of most that come one by one. */
static void test_numbers_are_those_of_slots(void **state)
{
	enum { SLOTS = 1 << 14, BUILT = SLOTS / 2, COUNT = SLOTS * 2 / 3 };
	struct table_entry *entry = entries_of(print_seed(), 0, COUNT);
	size_t own = 0;
	struct fixture f;

	(void)state;
	fixture_open(&f, KIND_EXACT, SLOTS);
	assert_int_equal(table_build(&f.table, entry, BUILT), 0);
	for (size_t i = 0; i < COUNT; i++) {
		struct table_place place;

		if (i >= BUILT)
			assert_int_equal(insert(&f, &entry[i]), 0);
		place = place_of(&f.table, &entry[i].key);
		own += table_record(&f.table, core_exact(), place)->number ==
		       place.bucket * BUCKET_SLOTS + place.slot;
		if (i == BUILT - 1)
			assert_int_equal(own, BUILT);
	}
	assert_in_range(own, COUNT * 9 / 10, COUNT);
	assert_holds(&f, entry, COUNT);
	fixture_close(&f);
	free(entry);
}

/* Where its slot's is another's, a key takes those that are free in turn, so that each rests a while. */
static void test_other_numbers_are_taken_in_turn(void **state)
{
	enum { SLOTS = 1 << 10, NEXT = 500, BUCKET = 5 };
	struct fixture f;
	__u32 number;

	(void)state;
	fixture_open(&f, KIND_EXACT, SLOTS);
	f.next_number = NEXT;
	for (unsigned int i = 0; i < BUCKET_SLOTS; i += 2)
		table_counter(&f.table, BUCKET * BUCKET_SLOTS + i)->bytes = ABI_RULE_TAKEN;
	for (unsigned int i = 0; i < BUCKET_SLOTS; i++) {
		const struct hash_value key = { churn_hash_at(&f.table, BUCKET, i + 1), i };

		assert_int_equal(table_insert(&f.table, &key, 0), 0);
		assert_true(table_find(&f.table, &key, &number));
		assert_int_equal(number, i % 2 ? BUCKET * BUCKET_SLOTS + i : NEXT + i / 2);
	}
	assert_int_equal(f.next_number, NEXT + BUCKET_SLOTS / 2);
	fixture_close(&f);
}

static void test_no_number_is_no_room(void **state)
{
	enum { SLOTS = 1 << 10 };
	const struct hash_value key = churn_key(churn_hash(1, 0));
	struct fixture f;

	(void)state;
	fixture_open(&f, KIND_EXACT, SLOTS);
	for (unsigned int i = 0; i < SLOTS; i++)
		table_counter(&f.table, i)->bytes = ABI_RULE_TAKEN;
	assert_int_equal(table_insert(&f.table, &key, 0), -ENOSPC);
	assert_int_equal(table_count(&f.table), 0);
	table_counter(&f.table, SLOTS - 1)->bytes = 0;
	f.next_number = SLOTS;
	assert_int_equal(table_insert(&f.table, &key, 0), 0);
	assert_int_equal(table_counter(&f.table, SLOTS - 1)->bytes, ABI_RULE_TAKEN);
	assert_int_equal(f.next_number, 0);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_fingerprints_are_told_apart),
		cmocka_unit_test(test_only_equal_fingerprints_are_compared),
		cmocka_unit_test(test_numbers_stay_while_entries_move),
		cmocka_unit_test(test_most_numbers_are_near_the_first_bucket),
		cmocka_unit_test(test_a_number_is_counted_from_0_again),
		cmocka_unit_test(test_numbers_are_those_of_slots),
		cmocka_unit_test(test_other_numbers_are_taken_in_turn),
		cmocka_unit_test(test_no_number_is_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
