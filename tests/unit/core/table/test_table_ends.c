// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The ends of entries: an exact table keeps the end of each entry and can change it, and a reader obeys it.
 * The test sets the reader's clock.
 */
#include "unit/table_fixture.h"

#define SLOTS (1 << 12)
#define TICK 1000000

static __u32 end_of(const struct table *table, const struct hash_value *key)
{
	return abi_record_end(*table_record(table, core_exact(), place_of(table, key)));
}

/* ---- the engine ---- */

TEST(test_ends_stay_while_entries_move)
{
	enum { COUNT = SLOTS * TABLE_LOAD_PERCENT / 100 };
	struct table_entry *entry = entries_of(seed_of_run(), 0, COUNT);
	struct fixture f;

	fixture_open(&f, KIND_EXACT, SLOTS);
	for (size_t i = 0; i < COUNT; i++) {
		entry[i].end = i;
		assert_int_equal(insert(&f, &entry[i]), 0);
	}
	assert_in_range(f.table.moves, 100, ~0ULL);
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(end_of(&f.table, &entry[i].key), i);
	assert_holds(&f, entry, COUNT);
	fixture_close(&f);
	free(entry);
}

TEST(test_build_sets_ends)
{
	enum { COUNT = SLOTS / 2 };
	struct table_entry *entry = entries_of(seed_of_run(), 0, COUNT);
	struct fixture f;

	for (size_t i = 0; i < COUNT; i++)
		entry[i].end = ABI_END_MAX - i;
	fixture_open(&f, KIND_EXACT, SLOTS);
	assert_int_equal(table_build(&f.table, entry, COUNT), 0);
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(end_of(&f.table, &entry[i].key), entry[i].end);
	fixture_close(&f);
	free(entry);
}

/* Changes the end of one key of eight that differ only in their tags. */
TEST(test_set_end)
{
	enum { KEYS = 2 * BUCKET_SLOTS };
	struct hash_value key, absent;
	struct fixture f;

	fixture_open(&f, KIND_EXACT, SLOTS);
	key = key_of_two_buckets(&f.table);
	for (__u64 i = 0; i < KEYS; i++) {
		key.tag = i << ABI_END_BITS;
		assert_int_equal(table_insert(&f.table, &key, 100 + i), 0);
	}
	absent = (struct hash_value){ key.hash, (__u64)KEYS << ABI_END_BITS };
	assert_int_equal(table_set_end(&f.table, &absent, 1, NULL), -ENOENT);
	for (__u64 set = 0; set < KEYS; set++) {
		key.tag = set << ABI_END_BITS;
		assert_int_equal(table_set_end(&f.table, &key, 200 + set, NULL), 0);
		for (__u64 i = 0; i < KEYS; i++) {
			key.tag = i << ABI_END_BITS;
			assert_int_equal(end_of(&f.table, &key), (i > set ? 100 : 200) + i);
		}
	}
	fixture_close(&f);
}

/* Compact tables have no ends. table_set_end() only says whether the key is there. */
TEST(test_compact_tables_know_no_ends)
{
	const struct hash_value key = churn_key(churn_hash(1, 0));

	for (size_t k = 0; k < TABLE_KINDS; k++) {
		struct fixture f;

		if (table_kinds[k].options.is_exact)
			continue;
		fixture_open(&f, &table_kinds[k], 1 << 10);
		assert_int_equal(table_set_end(&f.table, &key, 7, NULL), -ENOENT);
		assert_int_equal(table_insert(&f.table, &key, 7), 0);
		assert_int_equal(table_set_end(&f.table, &key, 8, NULL), 0);
		assert_holds(&f, &(struct table_entry){ .key = key }, 1);
		fixture_close(&f);
	}
}

/* The present end, the wanted end, and whether the entry gets the wanted end. */
static const struct {
	__u32 has, wanted;
	bool is_retimed;
} retimings[] = {
	{ 0, 0, false },
	{ 0, 1, true },
	{ 1, 0, true },
	{ 0, ABI_END_MAX, true },
	{ ABI_END_MAX, 0, true },
	{ TICK, TICK, false },
	{ TICK, TICK + TABLE_TICKS_TOLERATED, false },
	{ TICK, TICK - TABLE_TICKS_TOLERATED, false },
	{ TICK, TICK + TABLE_TICKS_TOLERATED + 1, true },
	{ TICK, TICK - TABLE_TICKS_TOLERATED - 1, true },
	{ 1, ABI_END_MAX, true },
	{ ABI_END_MAX, 1, true },
};

#define RETIMINGS COUNT(retimings)

/* What becomes of an end by table_end_others(now TICK, later 100). */
static const struct {
	__u32 has;
	bool is_wanted;
	__u32 gets;
} endings[] = {
	{ 0, true, 0 },
	{ TICK, true, TICK },
	{ TICK + 1, true, TICK + 101 },
	{ ABI_END_MAX - 100, true, ABI_END_MAX },
	{ ABI_END_MAX - 99, true, 0 },
	{ 0, false, TICK + 100 },
	{ TICK, false, TICK },
	{ TICK + 100, false, TICK + 100 },
	{ TICK + 101, false, TICK + 100 },
};

#define ENDINGS COUNT(endings)

/* The first wanted entry has a copy, as after an interrupted move: it counts as wanted. */
TEST(test_others_end)
{
	struct table_entry *entry = entries_of(seed_of_run(), 0, ENDINGS), want[ENDINGS];
	struct table_claims claims;
	struct table_place copy, place;
	struct bucket_pair pair;
	__u64 retimed = 0;
	size_t wanted = 0;
	struct fixture f;

	fixture_open(&f, KIND_EXACT, SLOTS);
	for (size_t i = 0; i < ENDINGS; i++) {
		entry[i].end = endings[i].has;
		assert_int_equal(insert(&f, &entry[i]), 0);
		if (endings[i].is_wanted)
			want[wanted++] = entry[i];
	}
	place = place_of(&f.table, &entry[0].key);
	pair = churn_pair(&f.table, entry[0].key.hash);
	copy.bucket = pair.first ^ pair.second ^ place.bucket;
	assert_true(core_find_free(&f.table, core_exact(), copy.bucket, &copy));
	table_publish(&f.table, core_exact(), copy, pair.fingerprint, abi_record(entry[0].key.tag, 0));
	assert_int_equal(table_claim(&f.table, want, wanted, 1, &claims, &retimed), 0);
	assert_int_equal(claims.missing + retimed, 0);
	assert_int_equal(claims.others, ENDINGS - wanted + 1);
	table_end_others(&f.table, &claims, TICK, 100);
	for (size_t i = 0; i < ENDINGS; i++)
		assert_int_equal(end_of(&f.table, &entry[i].key), endings[i].gets);
	assert_int_equal(abi_record_end(*table_record(&f.table, core_exact(), copy)), 0);
	assert_int_equal(abi_record_end(*table_record(&f.table, core_exact(), place)), 0);
	table_remove_others(&f.table, &claims);
	assert_int_equal(f.table.used, wanted);
	table_claims_close(&claims);
	fixture_close(&f);
	free(entry);
}

/* Of what is missing, and of ends, only those of this turn. */
TEST(test_turns)
{
	struct table_entry *entry = entries_of(seed_of_run(), 0, 4);
	struct table_difference difference = {};
	struct fixture f;

	fixture_open(&f, KIND_EXACT, SLOTS);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(insert(&f, &entry[i]), 0);
	for (size_t i = 0; i < 4; i++) {
		entry[i].turn = i % 2;
		entry[i].end = TICK;
	}
	for (__u32 turn = 0; turn < 2; turn++) {
		struct table_entry want[4];

		memcpy(want, entry, sizeof(want));
		assert_int_equal(table_add_missing(&f.table, want, 4, turn, &difference), 0);
		assert_int_equal(difference.added, turn + 1);
		assert_int_equal(difference.retimed, turn + 1);
		assert_int_equal(end_of(&f.table, &entry[1].key), turn ? TICK : 0);
		assert_int_equal(table_find(&f.table, &entry[3].key, NULL), turn);
	}
	fixture_close(&f);
	free(entry);
}

/* One entry for each case, one that goes and one that comes. The first ones do not move. */
TEST(test_reconcile_retimes)
{
	struct table_entry *entry = entries_of(seed_of_run(), 0, RETIMINGS + 2);
	struct table_entry want[RETIMINGS + 1];
	struct table_difference difference;
	__u32 slot[RETIMINGS], now;
	__u64 retimed = 0;
	struct fixture f;

	fixture_open(&f, KIND_EXACT, SLOTS);
	for (size_t i = 0; i < RETIMINGS; i++) {
		entry[i].end = retimings[i].has;
		want[i] = entry[i];
		want[i].end = retimings[i].wanted;
		retimed += retimings[i].is_retimed;
		assert_int_equal(insert(&f, &entry[i]), 0);
		assert_true(table_find(&f.table, &entry[i].key, &slot[i]));
	}
	assert_int_equal(insert(&f, &entry[RETIMINGS]), 0);
	want[RETIMINGS] = entry[RETIMINGS + 1];
	want[RETIMINGS].end = TICK;
	assert_int_equal(table_reconcile(&f.table, want, RETIMINGS + 1, &difference), 0);
	assert_int_equal(difference.kept, RETIMINGS);
	assert_int_equal(difference.retimed, retimed);
	assert_int_equal(difference.added, 1);
	assert_int_equal(difference.removed, 1);
	assert_int_equal(end_of(&f.table, &entry[RETIMINGS + 1].key), TICK);
	for (size_t i = 0; i < RETIMINGS; i++) {
		assert_int_equal(end_of(&f.table, &entry[i].key),
				 retimings[i].is_retimed ? retimings[i].wanted : retimings[i].has);
		assert_true(table_find(&f.table, &entry[i].key, &now));
		assert_int_equal(now, slot[i]);
	}
	fixture_close(&f);
	free(entry);
}

/* ---- the reader ---- */

static const struct {
	__u32 end, tick;
	enum lookup_result result;
} moments[] = {
	{ 0, 0, LOOKUP_HIT },
	{ 0, 1, LOOKUP_HIT },
	{ 0, ~0U, LOOKUP_HIT },
	{ 1, 0, LOOKUP_HIT },
	{ 1, 1, LOOKUP_MISS },
	{ TICK, TICK - 1, LOOKUP_HIT },
	{ TICK, TICK, LOOKUP_MISS },
	{ TICK, TICK + 1, LOOKUP_MISS },
	{ TICK, ~0U, LOOKUP_MISS },
	{ ABI_END_MAX, ABI_END_MAX - 1, LOOKUP_HIT },
	{ ABI_END_MAX, ABI_END_MAX, LOOKUP_MISS },
	{ ABI_END_MAX, ~0U, LOOKUP_MISS },
};

/* Some of the epochs make the ticks wrap around. */
static const __u32 epochs[] = { 0, 1, TICK, ~0U - TICK / 2, ~0U };

/* Looks up one key, alone or behind others with the same fingerprint. */
static void check_moments(const struct table_kind *kind, unsigned int others)
{
	struct hash_value key;
	struct churn churn;

	assert_int_equal(churn_open(&churn, &churn_right, kind->options, 1 << 10, 1, 1, 1), 0);
	churn_show(&churn);
	key = churn_key(churn.hash[0]);
	assert_int_equal(table_delete(&churn.table, &key), 0);
	for (unsigned int i = 0; i < others; i++)
		assert_int_equal(table_insert(&churn.table,
					      &(struct hash_value){ key.hash, key.tag ^ (i + 1ULL) << ABI_END_BITS },
					      0),
				 0);
	assert_int_equal(table_insert(&churn.table, &key, 0), 0);
	for (size_t i = 0; i < COUNT(moments); i++) {
		assert_int_equal(table_set_end(&churn.table, &key, moments[i].end, NULL), 0);
		for (size_t e = 0; e < COUNT(epochs); e++) {
			churn.config.table[0].epoch = epochs[e];
			churn_tick = epochs[e] + moments[i].tick;
			assert_int_equal(churn_lookup(&churn.config.table[0], churn.hash[0]).result, moments[i].result);
		}
	}
	churn_close(&churn);
}

TEST(test_a_reader_goes_by_its_clock)
{
	for (size_t k = 0; k < TABLE_KINDS; k++)
		for (unsigned int others = 0; others < 2 * BUCKET_SLOTS; others++)
			if (table_kinds[k].options.is_exact)
				check_moments(&table_kinds[k], others);
}

/* A change: the entry gets an end, then no end again. */
static void change_end(struct churn *churn)
{
	const struct hash_value key = churn_key(churn->hash[0]);

	churn->lost += !!table_set_end(&churn->table, &key, TICK + 1, NULL);
	churn->lost += !!table_set_end(&churn->table, &key, 0, NULL);
}

/* The same in two steps. After the first step the record has no tag. */
static void change_end_by_record(struct churn *churn)
{
	const struct hash_value key = churn_key(churn->hash[0]);
	__u64 *record = table_record(&churn->table, core_exact(), place_of(&churn->table, &key));

	__atomic_store_n(record, 0, __ATOMIC_RELEASE);
	churn_dawdle();
	__atomic_store_n(record, abi_record(key.tag, TICK + 1), __ATOMIC_RELEASE);
}

static struct churn_result change_under_reader(void (*change)(struct churn *churn), __u64 lookups)
{
	struct churn_result result;
	struct churn churn;

	assert_int_equal(churn_open(&churn, &churn_right, KIND_EXACT->options, 1 << 10, 1, 1, 1), 0);
	churn_tick = TICK;
	result = churn_run(&churn, change, lookups, 1);
	print_message("# %llu look-ups, %llu misses\n", result.lookups, result.misses);
	assert_int_equal(churn.lost, 0);
	churn_close(&churn);
	return result;
}

TEST(test_no_miss_while_an_end_is_set)
{
	const struct churn_result result = change_under_reader(change_end, 10000000);

	assert_int_equal(result.misses, 0);
}

TEST(test_an_end_set_in_two_steps_misses)
{
	skip_without_two_processors();
	assert_int_equal(change_under_reader(change_end_by_record, 1000000000).misses, 1);
}

TEST_MAIN(NULL, NULL)
