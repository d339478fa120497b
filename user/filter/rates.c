// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Gives each rule with a rate its meter, and each key of such a rule a place that leads to the meter: see
 * include/rate.h. Both tables of a filter share the meters, so a rule keeps its meter when its table is exchanged.
 * Places change while packets use the table: a key without a place matches nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/waiting.h"
#include "filter/internal.h"
#include "hash.h"

/* A key that must have a place. */
struct wanted_place {
	__u64 hash, id; /* of the key under the table's secret; of the meter: see struct abi_rate */
	__u64 rate;
	bool has_place;
};

struct wanted_places {
	const struct filter *filter;
	struct wanted_place *place;
	size_t count;
};

/*
 * The id of the meter is a hash of the rule and its rate: a rule with another rate gets another meter. The id of the
 * store is random, so that nobody can announce a rule that shares the meter of another.
 */
static int want_rule(const struct rule *rule, void *context)
{
	struct wanted_places *wanted = context;
	const struct abi_config *config = wanted->filter->kernel.config;
	__u64 words[(RULE_ENCODED_BYTES + 7) / 8] = {}, id = config->store_id[0] ^ rule->rate;
	struct rule_key keys[RULE_KEYS_MAX];
	const size_t count = rule_keys(rule, keys);

	rule_encode(rule, (__u8 *)words);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		id = hash_mix((id ^ words[i]) + config->store_id[1]);
	for (size_t i = 0; i < count; i++) {
		if (array_grow(&wanted->place, wanted->count, sizeof(*wanted->place)))
			return -ENOMEM;
		wanted->place[wanted->count++] = (struct wanted_place){
			.hash = rule_hash(&keys[i], &filter_abi_table(wanted->filter)->secret).hash,
			.id = id ? id : 1,
			.rate = rule->rate,
		};
	}
	return 0;
}

static int compare_places(const void *left, const void *right)
{
	const struct wanted_place *a = left, *b = right;

	return a->hash != b->hash ? (a->hash > b->hash) - (a->hash < b->hash) : (a->id > b->id) - (a->id < b->id);
}

/* The wanted place of a hash with this id, or with id 0 one that has no place yet; NULL. *is_shared: the hash has several. */
static struct wanted_place *find_wanted(const struct wanted_places *wanted, __u64 hash, __u64 id, bool *is_shared)
{
	size_t from = 0, to = wanted->count;

	while (from < to) {
		const size_t middle = (from + to) / 2;

		if (wanted->place[middle].hash < hash)
			from = middle + 1;
		else
			to = middle;
	}
	*is_shared = from + 1 < wanted->count && wanted->place[from + 1].hash == hash;
	for (; from < wanted->count && wanted->place[from].hash == hash; from++)
		if (id ? wanted->place[from].id == id : !wanted->place[from].has_place)
			return &wanted->place[from];
	return NULL;
}

/* A free place keeps its number: a packet that has read the hash still pays from the meter of its key. */
static void set_place(struct abi_rate_line *line, unsigned int place, __u64 hash, unsigned int number)
{
	if (hash)
		__atomic_store_n(&line->number[place], number, __ATOMIC_RELAXED);
	__atomic_store_n(&line->hash[place], hash, __ATOMIC_RELEASE);
}

/* The meter with this id among those in use, or else a free one, which it fills. ABI_RATES: all are in use. */
static unsigned int choose_meter(struct abi_rates *rates, bool is_used[ABI_RATES], const struct wanted_place *wanted)
{
	const double jiffies = ticks_jiffies(), unit = 1 << ABI_RATE_SHIFT;
	const bool is_bits = wanted->rate & RULE_RATE_BITS;
	const double each_second = (wanted->rate & ~RULE_RATE_BITS) * unit / (is_bits ? 8 : 1);
	const double least = (is_bits ? ABI_RATE_BURST_BYTES : ABI_RATE_BURST_PACKETS) * unit;
	const double burst = each_second * ABI_RATE_BURST_MS / 1000;
	unsigned int number;

	for (number = 0; number < ABI_RATES; number++)
		if (is_used[number] && rates->rate[number].id == wanted->id)
			return number;
	for (number = 0; number < ABI_RATES && is_used[number]; number++)
		;
	if (number == ABI_RATES)
		return number;
	is_used[number] = true;
	rates->rate[number] = (struct abi_rate){
		.refill = (__u64)(2 * each_second / jiffies + 1) / 2, /* rounded */
		.burst = burst > least ? burst : least,
		.batch = each_second / jiffies / ABI_RATE_BATCHES,
		.each_byte = is_bits ? 1 << ABI_RATE_SHIFT : 0,
		.each_packet = is_bits ? 0 : 1 << ABI_RATE_SHIFT,
		.id = wanted->id,
	};
	return number;
}

/* ---- places ---- */

/* 1,024 rules, while the filter also has the keys of 1,024 others, fill 4,096 of 6,144 places. That takes 3 rounds. */
#define PLACE_ROUNDS 16

/* The places of one table. */
struct places {
	struct abi_rate_line *lines;
	bool has_readers;                                /* packets may look for keys */
	bool leaves[ABI_RATE_LINES * ABI_RATE_PLACES];   /* the key has another place, too: see end_moves() */
};

static unsigned int free_place(const struct abi_rate_line *line)
{
	unsigned int place = 0;

	while (place < ABI_RATE_PLACES && line->hash[place])
		place++;
	return place;
}

/* Gives a key a place in that of its two lines which has more. The first place of the first line is the quickest. */
static bool add_place(struct abi_rate_line *lines, __u64 hash, unsigned int number)
{
	struct abi_rate_line *first = &lines[abi_rate_line_of(hash, 0)], *second = &lines[abi_rate_line_of(hash, 1)];
	const unsigned int in_first = free_place(first), in_second = free_place(second);
	const bool is_second = in_first && in_second < in_first;
	const unsigned int place = is_second ? in_second : in_first;

	if (place < ABI_RATE_PLACES)
		set_place(is_second ? second : first, place, hash, number);
	return place < ABI_RATE_PLACES;
}

/* Copies a key to another place. The old one is free after end_moves(). */
static void begin_move(struct places *places, unsigned int from, struct abi_rate_line *to, unsigned int place)
{
	const struct abi_rate_line *line = &places->lines[from / ABI_RATE_PLACES];

	set_place(to, place, line->hash[from % ABI_RATE_PLACES], line->number[from % ABI_RATE_PLACES]);
	places->leaves[from] = true;
}

/*
 * A packet that has passed the new place, before the key came, must still find it in the old one. Another packet may find
 * both, and pay twice.
 */
static void end_moves(struct places *places)
{
	if (!memchr(places->leaves, true, sizeof(places->leaves)))
		return;
	if (places->has_readers)
		grace_wait(); /* if it fails, one packet may miss its rate */
	for (unsigned int i = 0; i < sizeof(places->leaves); i++)
		if (places->leaves[i])
			set_place(&places->lines[i / ABI_RATE_PLACES], i % ABI_RATE_PLACES, 0, 0);
	memset(places->leaves, 0, sizeof(places->leaves));
}

/* As in a cuckoo filter, a key of a full line moves to its other line. False: all those are full, too. */
static bool make_room(struct places *places, unsigned int number)
{
	const struct abi_rate_line *line = &places->lines[number];

	if (free_place(line) < ABI_RATE_PLACES || memchr(&places->leaves[number * ABI_RATE_PLACES], true, ABI_RATE_PLACES))
		return true;
	for (unsigned int i = 0; i < ABI_RATE_PLACES; i++) {
		const unsigned int other =
			abi_rate_line_of(line->hash[i], 0) ^ abi_rate_line_of(line->hash[i], 1) ^ number;
		const unsigned int place = free_place(&places->lines[other]);

		if (place == ABI_RATE_PLACES)
			continue;
		begin_move(places, number * ABI_RATE_PLACES + i, &places->lines[other], place);
		return true;
	}
	return false;
}

/*
 * Looks at all places: sets has_place of those that exist, and ABI_RATE_SHARED of shared keys. A place whose rule is not
 * wanted any more, as one with the old rate of a rule, leads to another meter of its key from one moment to the next.
 * `removes`: others are freed. -ENOSPC: there is no meter.
 */
static int check_places(struct abi_rates *rates, struct places *places, bool is_used[ABI_RATES],
			const struct wanted_places *wanted, bool removes)
{
	for (unsigned int i = 0; i < 2 * ABI_RATE_LINES * ABI_RATE_PLACES; i++) {
		struct abi_rate_line *line = &places->lines[i / ABI_RATE_PLACES % ABI_RATE_LINES];
		const unsigned int place = i % ABI_RATE_PLACES;
		unsigned int number = line->number[place] % ABI_RATES;
		const bool is_second_round = i >= ABI_RATE_LINES * ABI_RATE_PLACES;
		struct wanted_place *found;
		bool is_shared, is_twice; /* a tool died while it moved the key */

		if (!line->hash[place])
			continue;
		found = find_wanted(wanted, line->hash[place], rates->rate[number].id, &is_shared);
		is_twice = found && found->has_place && !removes && !is_second_round;
		if (!found && is_second_round) {
			found = find_wanted(wanted, line->hash[place], 0, &is_shared);
			number = found ? choose_meter(rates, is_used, found) : 0;
		}
		if (number == ABI_RATES)
			return -ENOSPC;
		if (is_twice || (!found && removes))
			set_place(line, place, 0, 0);
		if (is_twice || !found)
			continue;
		number |= is_shared ? ABI_RATE_SHARED : 0;
		__atomic_store_n(&line->number[place], number, __ATOMIC_RELAXED);
		found->has_place = true;
	}
	return 0;
}

/* Gives places to all keys that have none. Each round may make room for the next one. -ENOSPC. */
static int add_places(struct abi_rates *rates, struct places *places, bool is_used[ABI_RATES],
		      const struct wanted_places *wanted)
{
	size_t left = 1;

	for (int round = 0; round < PLACE_ROUNDS && left; round++) {
		left = 0;
		for (size_t i = 0; i < wanted->count; i++) {
			struct wanted_place *place = &wanted->place[i];
			unsigned int number;
			bool is_shared;

			if (place->has_place)
				continue;
			number = choose_meter(rates, is_used, place);
			if (number == ABI_RATES)
				return -ENOSPC;
			find_wanted(wanted, place->hash, place->id, &is_shared);
			place->has_place = add_place(places->lines, place->hash,
						     number | (is_shared ? ABI_RATE_SHARED : 0));
			left += !place->has_place;
			if (!place->has_place && !make_room(places, abi_rate_line_of(place->hash, 0)) &&
			    !make_room(places, abi_rate_line_of(place->hash, 1)))
				return -ENOSPC;
		}
		end_moves(places);
	}
	return left ? -ENOSPC : 0;
}

int filter_sync_rates(struct filter *filter, struct store *store, bool has_rates, bool removes, struct reason *reason)
{
	const struct kernel_map *map = &filter->kernel.map[KERNEL_RATES];
	struct abi_table *table = filter_abi_table(filter);
	struct wanted_places wanted = { .filter = filter };
	struct abi_rates *rates = map->memory;
	bool is_used[ABI_RATES] = {};
	struct places places = { .has_readers = !filter->shares_maps && filter->kernel.attachments_count };
	int error;

	if (!has_rates && !table->rates)
		return 0;
	error = kernel_map_part(map, 0, map->bytes) ? -ENOMEM : store_each_rate(store, want_rule, &wanted);
	if (error) {
		free(wanted.place);
		return error == -ENOMEM ? filter_unmapped_reason(reason) : store_unread_reason(error, reason);
	}
	if (wanted.count)
		qsort(wanted.place, wanted.count, sizeof(*wanted.place), compare_places);
	places.lines = &rates->line[table->first_rate_line];
	/* Places of a table that no packet uses would keep meters of rules that are gone. */
	if (filter->shares_maps)
		memset(places.lines, 0, ABI_RATE_LINES * sizeof(*places.lines));
	else if (!filter->successor && filter->kernel.config->settled == filter->kernel.config->active)
		memset(&rates->line[ABI_RATE_LINES - table->first_rate_line], 0, ABI_RATE_LINES * sizeof(*places.lines));
	for (unsigned int i = 0; i < 2 * ABI_RATE_LINES * ABI_RATE_PLACES; i++) {
		const struct abi_rate_line *line = &rates->line[i / ABI_RATE_PLACES];

		if (line->hash[i % ABI_RATE_PLACES])
			is_used[line->number[i % ABI_RATE_PLACES] % ABI_RATES] = true;
	}
	error = check_places(rates, &places, is_used, &wanted, false);
	if (!error)
		error = add_places(rates, &places, is_used, &wanted);
	/* After an error a key whose new place is missing keeps its old one. */
	if (!error && removes)
		error = check_places(rates, &places, is_used, &wanted, true);
	/*
	 * The filter is slow to find any place but the first of a key's first line. Keys that found it taken, as by a rule that
	 * is gone, move there.
	 */
	for (unsigned int i = 0; i < ABI_RATE_LINES * ABI_RATE_PLACES && !error && removes; i++) {
		const __u64 hash = places.lines[i / ABI_RATE_PLACES].hash[i % ABI_RATE_PLACES];
		struct abi_rate_line *first = &places.lines[abi_rate_line_of(hash, 0)];

		if (hash && !first->hash[0])
			begin_move(&places, i, first, 0);
	}
	end_moves(&places);
	table->rates = wanted.count;
	free(wanted.place);
	return error ? reason_set(reason, error, "there is no room for all rates in the filter") : 0;
}
