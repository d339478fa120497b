// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Exact tables: the record tells a key from all others, and the counter of a key moves with it. */
#include "unit/table_fixture.h"

/* Keys with equal fingerprints in the same buckets are told apart, and each can be deleted alone. */
TEST(test_equal_fingerprints_are_told_apart)
{
	enum { KEYS = 2 * BUCKET_SLOTS };
	struct table_entry entry[KEYS] = {};
	struct hash_value key, twin, absent;
	__u32 slot[KEYS], found;
	struct fixture f;

	fixture_open(&f, KIND_EXACT, 1 << 10);
	key = key_of_two_buckets(&f.table);
	twin = twin_of(&f.table, &key);
	for (unsigned int i = 0; i < KEYS; i++) {
		entry[i].key = i % 2 ? twin : key;
		entry[i].key.tag = (100ULL + i) << ABI_END_BITS;
		assert_int_equal(insert(&f, &entry[i]), 0);
		assert_true(table_find(&f.table, &entry[i].key, &slot[i]));
	}
	absent = (struct hash_value){ key.hash, (100ULL + KEYS) << ABI_END_BITS };
	assert_false(table_find(&f.table, &absent, NULL));
	assert_int_equal(table_delete(&f.table, &absent), -ENOENT);
	assert_int_equal(table_insert(&f.table, &absent, 0), -ENOSPC);
	assert_holds(&f, entry, KEYS);
	for (unsigned int i = 0; i < KEYS; i++) {
		assert_int_equal(table_delete(&f.table, &entry[i].key), 0);
		assert_int_equal(table_delete(&f.table, &entry[i].key), -ENOENT);
		for (unsigned int j = 0; j < KEYS; j++) {
			assert_int_equal(table_find(&f.table, &entry[j].key, &found), j > i);
			if (j > i)
				assert_int_equal(found, slot[j]);
		}
	}
	fixture_close(&f);
}

/* If a lane matches, a borrow can make the lane above look like a match too. */
TEST(test_only_equal_fingerprints_are_compared)
{
	struct hash_value low, above;
	struct fixture f;

	fixture_open(&f, KIND_EXACT, 1 << 10);
	low = (struct hash_value){ churn_hash_at(&f.table, 5, 0x1234), 1ULL << ABI_END_BITS };
	above = (struct hash_value){ churn_hash_at(&f.table, 5, 0x1235), 2ULL << ABI_END_BITS };
	assert_int_equal(table_insert(&f.table, &low, 0), 0);
	assert_int_equal(table_insert(&f.table, &above, 0), 0);
	above.hash = low.hash;
	assert_false(table_find(&f.table, &above, NULL));
	assert_int_equal(table_delete(&f.table, &above), -ENOENT);
	assert_int_equal(f.table.used, 2);
	fixture_close(&f);
}

static struct abi_counter *counter_of(const struct fixture *f, const struct table_entry *entry)
{
	__u32 slot;

	assert_true(table_find(&f->table, &entry->key, &slot));
	return &f->table.memory.counter[slot];
}

/*
 * Half of the keys have counts. The other half is inserted, which moves many of the first, and deleted again.
 */
TEST(test_counts_move_with_entries)
{
	enum { SLOTS = 1 << 12, COUNT = SLOTS * TABLE_LOAD_PERCENT / 100, HALF = COUNT / 2 };
	struct table_entry *entry = entries_of(seed_of_run(), 0, COUNT);
	struct fixture f;

	fixture_open(&f, KIND_EXACT, SLOTS);
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(insert(&f, &entry[i]), 0);
		if (i < HALF)
			*counter_of(&f, &entry[i]) = (struct abi_counter){ i, 100 * i };
	}
	assert_in_range(f.table.moves, 100, ~0ULL);
	for (size_t i = HALF; i < COUNT; i++) {
		assert_int_equal(counter_of(&f, &entry[i])->packets, 0);
		assert_int_equal(counter_of(&f, &entry[i])->bytes, 0);
		assert_int_equal(table_delete(&f.table, &entry[i].key), 0);
	}
	for (size_t i = 0; i < HALF; i++) {
		assert_int_equal(counter_of(&f, &entry[i])->packets, i);
		assert_int_equal(counter_of(&f, &entry[i])->bytes, 100 * i);
	}
	table_reset_counts(&f.table);
	for (size_t i = 0; i < SLOTS; i++)
		assert_int_equal(f.memory.counter[i].packets | f.memory.counter[i].bytes, 0);
	fixture_close(&f);
	free(entry);
}

/* The old value of the slot's counter does not matter. */
TEST(test_a_new_key_is_counted_from_0)
{
	struct table_entry *entry = entries_of(seed_of_run(), 0, 2);
	struct fixture f;

	fixture_open(&f, KIND_EXACT, 1 << 10);
	for (size_t i = 0; i < table_slots(&f.table); i++)
		f.memory.counter[i] = (struct abi_counter){ 7, 700 };
	assert_int_equal(insert(&f, &entry[0]), 0);
	assert_int_equal(counter_of(&f, &entry[0])->packets, 0);
	assert_int_equal(counter_of(&f, &entry[0])->bytes, 0);
	fixture_close(&f);
	free(entry);
}

TEST_MAIN(NULL, NULL)
