// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A table of addresses: exact without records, as full as other tables, and what it holds can be read back. */
#include "unit/random_fill.h"
#include "unit/table_fixture.h"

static const struct table_kind kind = { "addresses", { .format = BUCKET_ADDRESS, .has_counts = 1 } };

#define HOST 0xffffffffU

static struct permute_secret secret;

static struct hash_value key_of(__u32 address)
{
	return (struct hash_value){ .hash = permute(&secret, permute_number(address, HOST)) };
}

/* A permutation of all addresses: which are in the table is known without a list of them. */
static __u32 nth(__u32 i)
{
	return i * 2654435761U;
}

static __u32 number_of(__u32 address)
{
	return address * 244002641U;
}

static void open_filled(struct fixture *f, __u64 slots, __u32 count)
{
	uint64_t random = seed_of_run();

	assert_int_equal(nth(number_of(12345)), 12345);
	random_fill(&random, &secret, sizeof(secret));
	fixture_open(f, &kind, slots);
	for (__u32 i = 0; i < count; i++) {
		const struct hash_value key = key_of(nth(i));

		assert_int_equal(table_insert(&f->table, &key, 0), 0);
	}
	assert_int_equal(f->table.used, count);
	assert_int_equal(table_count(&f->table), count);
}

/* With ADDRESSES_STEP=1 all 2^32 of them. */
TEST(test_no_other_address_is_found)
{
	const uint64_t step = environment_number("ADDRESSES_STEP", 509);
	enum { RULES = 990000 };
	__u64 hits = 0, wanted = 0;
	struct fixture f;

	open_filled(&f, table_address_slots(table_slots_for(RULES)), RULES);
	for (uint64_t address = 0; address < 1ULL << 32; address += step) {
		const struct hash_value key = key_of(address);
		const bool is_found = table_find(&f.table, &key, NULL), is_wanted = number_of(address) < RULES;

		hits += is_found;
		wanted += is_wanted;
		if (is_found != is_wanted)
			fail_msg("%llx", (unsigned long long)address);
	}
	print_message("# %llu of %llu addresses found\n", (unsigned long long)hits, (1ULL << 32) / step);
	assert_int_equal(hits, wanted);
	fixture_close(&f);
}

/* After moves and deletes, too. Each key's counter goes with it. */
TEST(test_what_it_holds_can_be_read_back)
{
	enum { FULL = TABLE_ADDRESS_SLOTS_MIN * TABLE_LOAD_PERCENT / 100 };
	struct fixture f;
	__u32 slot, found = 0;

	open_filled(&f, TABLE_ADDRESS_SLOTS_MIN, FULL / 2);
	for (__u32 i = 0; i < FULL / 2; i++) {
		const struct hash_value key = key_of(nth(i));

		assert_true(table_find(&f.table, &key, &slot));
		f.memory.counter[slot].packets = 1 + i;
	}
	for (__u32 i = FULL / 2; i < FULL; i++) {
		const struct hash_value key = key_of(nth(i));

		assert_int_equal(table_insert(&f.table, &key, 0), 0);
	}
	assert_in_range(f.table.moves, 1000, ~0ULL);
	for (__u32 i = 0; i < FULL; i += 3) {
		const struct hash_value key = key_of(nth(i));

		assert_int_equal(table_delete(&f.table, &key), 0);
		assert_int_equal(table_delete(&f.table, &key), -ENOENT);
	}
	for (__u64 at = 0; at < table_slots(&f.table); at++) {
		const __u64 x = table_address(&f.table, at);
		__u32 number;

		if (x >> PERMUTE_BITS)
			continue;
		number = number_of(permute_back(&secret, x) >> 1);
		assert_int_equal(x, key_of(nth(number)).hash);
		assert_in_range(number, 0, FULL - 1);
		assert_int_not_equal(number % 3, 0);
		assert_int_equal(f.memory.counter[at].packets, number < FULL / 2 ? 1 + number : 0);
		found++;
	}
	assert_int_equal(found, f.table.used);
	fixture_close(&f);
}

TEST(test_a_small_table_is_refused)
{
	struct table_memory memory = {};
	struct table table;

	assert_int_equal(table_open(&table, BUCKET_ADDRESS, table_geometry(1 << 20), &memory), -EINVAL);
}

/* Twice the same entry, as a crash may leave it, and another set of entries. */
TEST(test_reconcile)
{
	enum { COUNT = 100000 };
	struct table_entry *entry = calloc(COUNT, sizeof(*entry));
	struct table_difference difference;
	struct bucket_pair pair;
	struct fixture f;

	open_filled(&f, TABLE_ADDRESS_SLOTS_MIN, COUNT);
	for (__u32 i = 0; i < COUNT; i++)
		entry[i].key = key_of(nth(i + COUNT / 4));
	pair = address_pair(entry[0].key.hash, f.table.geometry, f.table.reciprocal);
	for (__u32 at = pair.first, side = 0; side < 2; at = pair.second, side++) {
		struct table_place place;

		if (core_find_free(&f.table, bucket_layout(BUCKET_ADDRESS), at, &place))
			table_store(&f.table, bucket_layout(BUCKET_ADDRESS), place,
				    pair.fingerprint | (side ? BUCKET_SIDE : 0));
	}
	assert_int_equal(table_reconcile(&f.table, entry, COUNT, &difference), 0);
	assert_int_equal(difference.added, COUNT / 4);
	assert_int_equal(difference.removed, COUNT / 4 + 2);
	assert_holds(&f, entry, COUNT);
	fixture_close(&f);
	free(entry);
}

TEST_MAIN(NULL, NULL)
