// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The look-up of a key in an exact table: it finds the key in any slot, among any mix of entries that look
 * similar, and counts the packet for it. Each run also checks that there was only one try.
 */
#include "kernel/kernel.h"
#include "unit/packets_fixture.h"

#define KEY_SLOTS (2 * BUCKET_SLOTS)

/* What is in another slot. */
enum neighbour {
	EMPTY,
	OTHER_KEY, /* same fingerprint, other tag */
	SAME_TAG,  /* other fingerprint, same tag; after a borrow the fingerprint can look equal */
	NEIGHBOURS,
};

/* The key of a rule that has only one. */
static struct rule_key key_of(const struct rule *rule)
{
	struct rule_key keys[RULE_KEYS_MAX];

	assert_int_equal(rule_keys(rule, keys), 1);
	return keys[0];
}

static struct hash_value value_of(const struct scene *scene, const struct rule *rule)
{
	struct rule_key key = key_of(rule);

	return rule_hash(&key, &scene->filter.config->table[0].secret);
}

static struct raw_filter_place place_of(unsigned int place)
{
	return (struct raw_filter_place){ place / BUCKET_SLOTS, place % BUCKET_SLOTS };
}

/* Adds a neighbour at a place (0 to 7) in the two buckets of the key, whatever its fingerprint. */
static void add_neighbour(struct scene *scene, const struct hash_value *value, enum neighbour neighbour,
			  unsigned int place)
{
	struct raw_filter *filter = &scene->filter;
	struct bucket_layout layout = raw_filter_layout(filter);
	struct bucket_pair pair = bucket_pair(value->hash, filter->table.geometry, layout);
	struct table_place at = { place < BUCKET_SLOTS ? pair.first : pair.second, place % BUCKET_SLOTS };
	__u64 record = abi_record(value->tag, 0);

	if (neighbour == OTHER_KEY)
		record ^= 1ULL << (ABI_END_BITS + place * 5 % HASH_TAG_BITS);
	else
		pair.fingerprint ^= 1;
	table_publish(&filter->table, layout, at, pair.fingerprint, record);
}

static void add_neighbours(struct scene *scene, const struct hash_value *value, unsigned int mix)
{
	for (unsigned int place = 0; place < KEY_SLOTS; place++, mix /= NEIGHBOURS)
		if (mix % NEIGHBOURS != EMPTY)
			add_neighbour(scene, value, mix % NEIGHBOURS, place);
}

static void check_run(struct scene *scene, size_t packet, enum abi_outcome outcome, __u32 number)
{
	const char *name = packets[packet].name;
	struct raw_filter_run run = raw_filter_run(&scene->filter, 0, frames[packet].byte, frames[packet].length);

	check(!run.error, name, "error", -run.error);
	check(run.outcome == outcome, name, "outcome", run.outcome);
	check(run.number == number, name, "counted number", run.number);
}

static unsigned int mixes(void)
{
	unsigned int count = 1;

	for (unsigned int place = 0; place < KEY_SLOTS; place++)
		count *= NEIGHBOURS;
	return count;
}

/* The first whole packet of a family. */
static size_t packet_of(enum flow_family family)
{
	size_t i = 0;

	while (packets[i].flow.family != family || packets[i].result != PARSE_OK)
		i++;
	return i;
}

/* The key is absent: no mix of other entries makes a hit. */
SCENE_TEST(test_no_match)
{
	size_t packet = packet_of(FLOW_IPV4);
	struct hash_value value;
	struct rule_key key;
	struct rule rule;

	rule_from_flow(&packets[packet].flow, &rule_kind_src, RULE_DROP, &rule);
	key = key_of(&rule);
	for (unsigned int mix = 0; mix < mixes(); mix++) {
		scene_set_up(scene);
		raw_filter_add_shape(&scene->filter, &key.shape);
		value = value_of(scene, &rule);
		add_neighbours(scene, &value, mix);
		check_run(scene, packet, OUTCOME_NO_RULE, RAW_FILTER_NO_NUMBER);
	}
}

/* The key is found at `place`, with a mix of neighbours in the other slots, and counted. */
static void check_match(struct scene *scene, size_t packet, unsigned int mix, unsigned int place)
{
	struct hash_value value;
	struct rule rule;

	rule_from_flow(&packets[packet].flow, &rule_kind_src, RULE_DROP, &rule);
	scene_set_up(scene);
	value = value_of(scene, &rule);
	add_neighbours(scene, &value, mix);
	scene_add_at(scene, &rule, place_of(place));
	check_run(scene, packet, OUTCOME_DROP_RULE, scene->number[0]);
}

SCENE_TEST(test_match)
{
	unsigned int divisor = 1;

	for (unsigned int place = 0; place < KEY_SLOTS; place++, divisor *= NEIGHBOURS)
		for (unsigned int mix = 0; mix < mixes(); mix++)
			if (mix / divisor % NEIGHBOURS == EMPTY)
				check_match(scene, packet_of(FLOW_IPV4), mix, place);
}

/* The same for IPv6, which has its own copy of the code: one other key, and the right one. */
SCENE_TEST(test_match_ipv6)
{
	unsigned int other = OTHER_KEY;

	for (unsigned int before = 0; before < KEY_SLOTS; before++, other *= NEIGHBOURS)
		for (unsigned int place = 0; place < KEY_SLOTS; place++)
			if (place != before)
				check_match(scene, packet_of(FLOW_IPV6), other, place);
}

/* The fingerprint is the key's, but the record is not. */
SCENE_TEST(test_record_of_another_key)
{
	size_t packet = packet_of(FLOW_IPV4);
	struct bucket_pair pair;
	__u64 *record;
	struct rule rule;

	rule_from_flow(&packets[packet].flow, &rule_kind_src, RULE_DROP, &rule);
	scene_set_up(scene);
	scene_add_at(scene, &rule, place_of(0));
	pair = bucket_pair(value_of(scene, &rule).hash, scene->filter.table.geometry,
			   raw_filter_layout(&scene->filter));
	record = &scene->filter.table.memory.record[(size_t)pair.first * BUCKET_SLOTS];
	check_run(scene, packet, OUTCOME_DROP_RULE, 0);
	*record = 0;
	check_run(scene, packet, OUTCOME_NO_RULE, RAW_FILTER_NO_NUMBER);
}

static __u32 tick_now(void)
{
	double ticks_per_second;
	struct reason reason;
	__u32 tick;

	assert_int_equal(kernel_tick(&tick, &ticks_per_second, &reason), 0);
	return tick;
}

/* Adds an entry with this end at place 1. Place 0 is empty or has a neighbour. */
static void add_ending(struct scene *scene, size_t packet, struct rule *rule, __u32 epoch, enum neighbour neighbour,
		       __u32 end)
{
	struct hash_value value;

	rule_from_flow(&packets[packet].flow, &rule_kind_src, RULE_DROP, rule);
	scene_set_up(scene);
	value = value_of(scene, rule);
	if (neighbour != EMPTY)
		add_neighbour(scene, &value, neighbour, 0);
	scene->filter.config->table[0].epoch = epoch;
	scene->filter.end = end;
	scene_add_at(scene, rule, place_of(1));
}

/*
 * An entry that has ended matches and counts nothing. An entry that ends later matches like one that never
 * ends.
 */
SCENE_TEST(test_ends)
{
	const __u32 now = tick_now();
	const struct {
		__u32 epoch, end;
		bool is_over;
	} ends[] = { { 0, 0, false },
		     { 0, 1, true },
		     { 0, now, true },
		     { 0, now + 100000, false },
		     { now - 10, 0, false },
		     { now - 10, 1, true },
		     { now - 10, 10, true },
		     { now - 10, 100000, false },
		     { now - 10, ABI_END_MAX, false },
		     { now - ABI_END_MAX - 10, ABI_END_MAX, true } };
	struct rule rule;

	for (size_t i = 0; i < COUNT(ends); i++)
		for (enum flow_family family = 0; family < FLOW_FAMILIES; family++)
			for (enum neighbour other = EMPTY; other < NEIGHBOURS; other++) {
				add_ending(scene, packet_of(family), &rule, ends[i].epoch, other, ends[i].end);
				if (ends[i].is_over)
					check_run(scene, packet_of(family), OUTCOME_NO_RULE, RAW_FILTER_NO_NUMBER);
				else
					check_run(scene, packet_of(family), OUTCOME_DROP_RULE, scene->number[0]);
			}
}

/* A packet sent before the end of an entry matches; a packet sent after it does not. */
SCENE_TEST(test_an_end_comes)
{
	const size_t packet = packet_of(FLOW_IPV4);
	const __u32 epoch = tick_now() - 1, end = 3;
	unsigned long matched = 0;
	__u32 before, after;
	struct rule rule;

	add_ending(scene, packet, &rule, epoch, EMPTY, end);
	do {
		struct raw_filter_run run;

		before = tick_now();
		run = raw_filter_run(&scene->filter, 0, frames[packet].byte, frames[packet].length);
		after = tick_now();
		check(!run.error, "end", "error", -run.error);
		if (after - epoch < end)
			check(run.outcome == OUTCOME_DROP_RULE, "before its end", "outcome", run.outcome);
		if (before - epoch >= end)
			check(run.outcome == OUTCOME_NO_RULE, "after its end", "outcome", run.outcome);
		matched += run.outcome == OUTCOME_DROP_RULE;
	} while (before - epoch < end);
	assert_int_not_equal(matched, 0);
}

/* Packets and bytes are counted for each rule, whatever its action. */
SCENE_TEST(test_counts)
{
	static const enum rule_action actions[FLOW_FAMILIES] = { RULE_DROP, RULE_PASS };
	const struct table *table = &scene->filter.table;
	struct rule rule[FLOW_FAMILIES];
	__u64 bytes[FLOW_FAMILIES] = {};

	scene_set_up(scene);
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		size_t packet = packet_of(family);

		rule_from_flow(&packets[packet].flow, &rule_kind_src, actions[family], &rule[family]);
		scene_add(scene, &rule[family]);
	}
	for (int i = 0; i < 10; i++)
		for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
			size_t packet = packet_of(family);

			scene_check(scene, packet);
			bytes[family] += scene->filter.programs * frames[packet].length;
		}
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		const struct abi_counter *counter = &table->memory.counter[scene->filter.slot[family]];

		check(counter->packets == 10 * scene->filter.programs, "rule", "packets", family);
		check(counter->bytes == bytes[family], "rule", "bytes", family);
	}
}

/* The options and sizes of the object as other loaders load it; the tool can adopt such a filter. */
TEST(test_defaults)
{
	static const struct abi_options exact = {
		.format = BUCKET_16, .is_exact = 1, .has_counts = 1, .orders_loads = !ABI_LOADS_IN_ORDER
	};
	static const __u32 slots = 1 << ABI_SLOTS_DEFAULT_LOG2;
	struct raw_filter filter = { .object = bpf_object__open_file(XDP_CUCKOO_OBJECT, NULL) };

	assert_non_null(filter.object);
	assert_memory_equal(raw_filter_constant(filter.object, "xc_options"), &exact, sizeof(exact));
	assert_int_equal(bpf_map__max_entries(raw_filter_find_map(&filter, RAW_FILTER_BUCKETS)), slots / BUCKET_SLOTS);
	assert_int_equal(bpf_map__max_entries(raw_filter_find_map(&filter, RAW_FILTER_RECORDS)), slots);
	assert_int_equal(bpf_map__max_entries(raw_filter_find_map(&filter, RAW_FILTER_COUNTS)), slots);
	raw_filter_close(&filter);
}

int main(void)
{
	build_frames();
	return cmocka_run_group_tests(tests, scene_open_exact, scene_close);
}
