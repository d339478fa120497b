// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The ranking of keys by packets between two passes over the counters. */
#include "unit/test.h"
#include "counters/counters.h"
#include "filter/filter.h"

static unsigned int until_failure; /* calls of calloc() */

void *__real_calloc(size_t count, size_t each);
void *__wrap_calloc(size_t count, size_t each);
void *__wrap_calloc(size_t count, size_t each)
{
	return until_failure && !--until_failure ? NULL : __real_calloc(count, each);
}

/* A table with only counters and records. The key in slot n has the tag n. */
static struct table table_of(__u64 slots)
{
	static __u64 sequence;
	struct table table = { .geometry = { .buckets = slots / BUCKET_SLOTS },
			       .memory = { .record = calloc(slots, sizeof(__u64)),
					   .counter = calloc(slots, sizeof(struct abi_counter)),
					   .sequence = &sequence } };

	assert_non_null(table.memory.record);
	assert_non_null(table.memory.counter);
	for (__u64 slot = 0; slot < slots; slot++)
		table.memory.record[slot] = abi_record(slot << ABI_END_BITS, 0);
	return table;
}

/* Makes all steps of one pass, which begins at that second. Until it is complete, the last one counts. */
static unsigned int pass(struct hits *hits, const struct table *table, double second)
{
	struct hit ranked[HITS_BEST];
	unsigned int steps = 1;

	memcpy(ranked, hits->ranked, sizeof(ranked));
	for (; !hits_step(hits, &(struct filter_tables){ .part = { *table } }, second); steps++)
		assert_memory_equal(hits->ranked, ranked, sizeof(ranked));
	return steps;
}

static void assert_ranked(const struct hits *hits, size_t place, __u64 slot, double rate)
{
	assert_true(place < hits->ranked_count);
	assert_int_equal(hits->ranked[place].tag, slot << ABI_END_BITS);
	assert_true(hits->ranked[place].rate == rate);
}

TEST(test_rates)
{
	struct table table = table_of(1024);
	struct hits hits;

	assert_int_equal(hits_open(&hits, 1024), 0);
	table.memory.counter[5].packets = 1000;
	table.memory.counter[6].packets = 50;
	pass(&hits, &table, 10);
	assert_int_equal(hits.ranked_count, 0);
	table.memory.counter[5].packets += 8;
	table.memory.counter[6].packets += 20;
	table.memory.counter[900].packets += 8;
	table.memory.counter[1023].packets += 2;
	pass(&hits, &table, 12);
	assert_int_equal(hits.ranked_count, 4);
	assert_ranked(&hits, 0, 6, 10);
	/* Of equals, the first. */
	assert_ranked(&hits, 1, 5, 4);
	assert_ranked(&hits, 2, 900, 4);
	assert_ranked(&hits, 3, 1023, 1);
	pass(&hits, &table, 13);
	assert_int_equal(hits.ranked_count, 0);
	assert_int_equal(hits.passes, 3);
	hits_close(&hits);
	free(table.memory.record);
	free(table.memory.counter);
}

/* After a reset, or if a key was deleted and added again, the whole count is new. */
TEST(test_counted_from_0_again)
{
	struct table table = table_of(1024);
	struct hits hits;

	assert_int_equal(hits_open(&hits, 1024), 0);
	table.memory.counter[5].packets = 1000;
	table.memory.counter[6].packets = 1000;
	pass(&hits, &table, 1);
	table.memory.counter[5].packets = 30;
	table.memory.counter[6].packets = 0;
	pass(&hits, &table, 2);
	assert_int_equal(hits.ranked_count, 1);
	assert_ranked(&hits, 0, 5, 30);
	hits_close(&hits);
	free(table.memory.record);
	free(table.memory.counter);
}

static void put(const struct table *table, __u64 slot, __u64 tag, __u64 packets)
{
	table->memory.record[slot] = abi_record(tag << ABI_END_BITS, 0);
	table->memory.counter[slot].packets = packets;
}

/* A moved key brings its old count along. So it is not ranked in this pass, but in the next. */
TEST(test_moved_with_its_count)
{
	struct table table = table_of(1024);
	struct hits hits;

	assert_int_equal(hits_open(&hits, 1024), 0);
	put(&table, 5, 5, 1000000);
	put(&table, 6, 6, 1000);
	pass(&hits, &table, 1);
	put(&table, 700, 5, 1000003);
	table.memory.counter[5].packets = 0;
	table.memory.counter[6].packets += 2;
	++*table.memory.sequence;
	pass(&hits, &table, 2);
	assert_int_equal(hits.ranked_count, 1);
	assert_ranked(&hits, 0, 6, 2);
	table.memory.counter[700].packets += 30;
	pass(&hits, &table, 3);
	assert_int_equal(hits.ranked_count, 1);
	assert_ranked(&hits, 0, 5, 30);
	hits_close(&hits);
	free(table.memory.record);
	free(table.memory.counter);
}

/* Another key gets the slot. The old count of the slot and the count that the key brings are not new packets. */
TEST(test_another_key_in_its_slot)
{
	struct table table = table_of(1024);
	struct hits hits;

	assert_int_equal(hits_open(&hits, 1024), 0);
	put(&table, 5, 5, 1000);
	put(&table, 6, 6, 1000);
	pass(&hits, &table, 1);
	put(&table, 5, 1ULL << (HASH_TAG_BITS - 1), 900000);
	put(&table, 6, 6ULL << (HASH_TAG_BITS - 4), 10);
	++*table.memory.sequence;
	pass(&hits, &table, 2);
	assert_int_equal(hits.ranked_count, 0);
	table.memory.counter[5].packets += 7;
	table.memory.counter[6].packets += 9;
	pass(&hits, &table, 3);
	assert_int_equal(hits.ranked_count, 2);
	assert_ranked(&hits, 0, 6ULL << (HASH_TAG_BITS - 4), 9);
	assert_ranked(&hits, 1, 1ULL << (HASH_TAG_BITS - 1), 7);
	hits_close(&hits);
	free(table.memory.record);
	free(table.memory.counter);
}

/* With more keys than places, the highest rates are ranked, in order. */
TEST(test_best_of_many)
{
	const __u64 slots = 2 * HITS_CHUNK + 1000;
	struct table table = table_of(slots);
	struct hits hits;

	assert_int_equal(hits_open(&hits, slots), 0);
	assert_int_equal(pass(&hits, &table, 1), 3);
	for (__u32 i = 0; i < 1000; i++)
		table.memory.counter[(__u64)i * 521].packets = i * 7919 % 1009 + 1;
	assert_int_equal(pass(&hits, &table, 2), 3);
	assert_int_equal(hits.ranked_count, HITS_BEST);
	for (size_t i = 0; i < HITS_BEST; i++) {
		assert_true(hits.ranked[i].rate == table.memory.counter[hits.ranked[i].tag >> ABI_END_BITS].packets);
		assert_true(!i || hits.ranked[i].rate <= hits.ranked[i - 1].rate);
	}
	for (__u32 i = 0, above = 0; i < 1000; i++) {
		above += table.memory.counter[(__u64)i * 521].packets > hits.ranked[HITS_BEST - 1].rate;
		assert_true(above < HITS_BEST);
	}
	hits_close(&hits);
	free(table.memory.record);
	free(table.memory.counter);
}

TEST(test_too_large)
{
	struct hits hits;

	assert_int_equal(hits_open(&hits, HITS_SLOTS_MAX + 1ULL), -E2BIG);
	assert_int_equal(hits.slots, 0);
	hits_close(&hits);
	for (unsigned int failing = 1; failing <= 2; failing++) {
		until_failure = failing;
		assert_int_equal(hits_open(&hits, 1024), -ENOMEM);
		assert_true(!hits.slots && !hits.seen && !hits.visited);
	}
	/* The memory is not touched. */
	assert_int_equal(hits_open(&hits, HITS_SLOTS_MAX), 0);
	assert_int_equal(hits.slots, HITS_SLOTS_MAX);
	hits_close(&hits);
	assert_null(hits.seen);
}

TEST_MAIN(NULL, NULL)
