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
#include "filter/internal.h"
#include "hash.h"

/* A key that must have a place. */
struct wanted_place {
	__u64 hash, id; /* of the key under the table's secret; of the meter: see struct abi_rate */
	__u64 rate;
	__u16 shared; /* ABI_RATE_SHARED if another one has the same hash */
	bool has_place;
};

#define WANTED (ABI_RATES_MAX * RULE_KEYS_MAX)
#define PLACES (ABI_RATE_LINES * ABI_RATE_PLACES) /* of one table */

struct sync {
	const struct filter *filter;
	struct wanted_place wanted[WANTED]; /* sorted by hash */
	size_t count;
	struct abi_rates *rates;
	bool is_used[ABI_RATES];     /* meters that a place names */
	struct abi_rate_line *lines; /* of the table */
	bool leaves[PLACES];         /* the key has another place, too: see end_moves() */
};

/*
 * The id of the meter is a hash of the rule and its rate: a rule with another rate gets another meter. The id of the
 * store is random, so that nobody can announce a rule that shares the meter of another.
 */
static int want_rule(const struct rule *rule, void *context)
{
	struct sync *sync = context;
	const struct abi_config *config = sync->filter->kernel.config;
	__u64 words[(RULE_ENCODED_BYTES + 7) / 8] = {}, id = config->store_id[0] ^ rule->rate;
	struct rule_key keys[RULE_KEYS_MAX];
	const size_t count = rule_keys(rule, keys);

	rule_encode(rule, (__u8 *)words);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		id = hash_mix((id ^ words[i]) + config->store_id[1]);
	if (sync->count + count > WANTED)
		return -ENOSPC;
	for (size_t i = 0; i < count; i++)
		sync->wanted[sync->count++] = (struct wanted_place){
			.hash = rule_hash(&keys[i], &filter_abi_table(sync->filter)->secret).hash,
			.id = id ? id : 1,
			.rate = rule->rate,
		};
	return 0;
}

static int compare_places(const void *left, const void *right)
{
	const struct wanted_place *a = left, *b = right;

	return a->hash != b->hash ? (a->hash > b->hash) - (a->hash < b->hash) : (a->id > b->id) - (a->id < b->id);
}

static void sort_wanted(struct sync *sync)
{
	qsort(sync->wanted, sync->count, sizeof(*sync->wanted), compare_places);
	for (size_t i = 1; i < sync->count; i++)
		if (sync->wanted[i].hash == sync->wanted[i - 1].hash)
			sync->wanted[i].shared = sync->wanted[i - 1].shared = ABI_RATE_SHARED;
}

/* The wanted place of a hash with this id, or with id 0 one that has no place yet; NULL. No key has the hash 0. */
static struct wanted_place *find_wanted(struct sync *sync, __u64 hash, __u64 id)
{
	size_t from = 0, to = sync->count;

	while (from < to) {
		const size_t middle = (from + to) / 2;

		if (sync->wanted[middle].hash < hash)
			from = middle + 1;
		else
			to = middle;
	}
	for (; from < sync->count && sync->wanted[from].hash == hash; from++)
		if (id ? sync->wanted[from].id == id : !sync->wanted[from].has_place)
			return &sync->wanted[from];
	return NULL;
}

/* Places have numbers: six of the first line, then those of the second. */
static __u64 *hash_at(const struct sync *sync, unsigned int at)
{
	return &sync->lines[at / ABI_RATE_PLACES].hash[at % ABI_RATE_PLACES];
}

static __u16 *number_at(const struct sync *sync, unsigned int at)
{
	return &sync->lines[at / ABI_RATE_PLACES].number[at % ABI_RATE_PLACES];
}

/*
 * A free place (hash 0) keeps its number: a packet that has read the hash still pays from the meter of its key. A number comes
 * after the hash before it is gone, and after its meter is filled.
 */
static void set_place(const struct sync *sync, unsigned int at, __u64 hash, unsigned int number)
{
	if (hash)
		__atomic_store_n(number_at(sync, at), number, __ATOMIC_RELEASE);
	__atomic_store_n(hash_at(sync, at), hash, __ATOMIC_RELEASE);
}

/* The meter with this id among those in use, or else a free one, which it fills. ABI_RATES: all are in use. */
static unsigned int choose_meter(struct sync *sync, const struct wanted_place *wanted)
{
	struct abi_rate *rate = sync->rates->rate;
	const double jiffies = ticks_jiffies(), unit = 1 << ABI_RATE_SHIFT;
	const bool is_bits = wanted->rate & RULE_RATE_BITS;
	const double each_second = (wanted->rate & ~RULE_RATE_BITS) * unit / (is_bits ? 8 : 1);
	const double least = (is_bits ? ABI_RATE_BURST_BYTES : ABI_RATE_BURST_PACKETS) * unit;
	const double burst = each_second * ABI_RATE_BURST_MS / 1000;
	unsigned int number;

	for (number = 0; number < ABI_RATES; number++)
		if (sync->is_used[number] && rate[number].id == wanted->id)
			return number;
	for (number = 0; number < ABI_RATES && sync->is_used[number]; number++)
		;
	if (number == ABI_RATES)
		return number;
	sync->is_used[number] = true;
	rate[number] = (struct abi_rate){
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

/* How many places of a line are taken from its first on. ABI_RATE_PLACES: none is free. */
static unsigned int free_place(const struct sync *sync, unsigned int line)
{
	unsigned int place = 0;

	while (place < ABI_RATE_PLACES && sync->lines[line].hash[place])
		place++;
	return place;
}

/* Gives a key a place in that of its two lines which has more. The first place of the first line is the quickest. */
static bool add_place(const struct sync *sync, const struct wanted_place *wanted, unsigned int number)
{
	unsigned int line = abi_rate_line_of(wanted->hash, 0), place = free_place(sync, line);
	const unsigned int second = abi_rate_line_of(wanted->hash, 1), in_second = free_place(sync, second);

	if (place && in_second < place) {
		line = second;
		place = in_second;
	}
	if (place < ABI_RATE_PLACES)
		set_place(sync, line * ABI_RATE_PLACES + place, wanted->hash, number | wanted->shared);
	return place < ABI_RATE_PLACES;
}

/* Copies a key to another place. The old one is free after end_moves(). */
static void begin_move(struct sync *sync, unsigned int from, unsigned int to)
{
	set_place(sync, to, *hash_at(sync, from), *number_at(sync, from));
	sync->leaves[from] = true;
}

/*
 * A packet that has passed the new place, before the key came, must still find it in the old one. Another packet may find
 * both, and pay twice.
 */
static void end_moves(struct sync *sync)
{
	if (!memchr(sync->leaves, true, sizeof(sync->leaves)))
		return;
	filter_wait_for_packets(sync->filter, &(struct reason){}); /* if it fails, one packet may miss its rate */
	for (unsigned int at = 0; at < PLACES; at++)
		if (sync->leaves[at])
			set_place(sync, at, 0, 0);
	memset(sync->leaves, 0, sizeof(sync->leaves));
}

/* As in a cuckoo filter, a key of a full line moves to its other line. False: all those are full, too. */
static bool make_room(struct sync *sync, unsigned int line)
{
	const unsigned int first = line * ABI_RATE_PLACES;

	if (free_place(sync, line) < ABI_RATE_PLACES || memchr(&sync->leaves[first], true, ABI_RATE_PLACES))
		return true;
	for (unsigned int at = first; at < first + ABI_RATE_PLACES; at++) {
		const __u64 hash = *hash_at(sync, at);
		const unsigned int other = abi_rate_line_of(hash, 0) ^ abi_rate_line_of(hash, 1) ^ line;
		const unsigned int place = free_place(sync, other);

		if (place == ABI_RATE_PLACES)
			continue;
		begin_move(sync, at, other * ABI_RATE_PLACES + place);
		return true;
	}
	return false;
}

/* The wanted place for the key and the meter of a place; NULL: the rule is gone, or has another rate. */
static struct wanted_place *wanted_at(struct sync *sync, unsigned int at)
{
	return find_wanted(sync, *hash_at(sync, at), sync->rates->rate[*number_at(sync, at) % ABI_RATES].id);
}

static void lead_to(const struct sync *sync, unsigned int at, unsigned int number, struct wanted_place *wanted)
{
	__atomic_store_n(number_at(sync, at), number % ABI_RATES | wanted->shared, __ATOMIC_RELEASE);
	wanted->has_place = true;
}

/*
 * Finds the places that wanted keys have. Then a place whose rule is gone, as one with the old rate of a rule, leads to
 * another meter of its key from one moment to the next. -ENOSPC: there is no meter.
 */
static int take_places(struct sync *sync)
{
	for (unsigned int at = 0; at < PLACES; at++) {
		struct wanted_place *wanted = wanted_at(sync, at);

		if (wanted && wanted->has_place) /* a tool died while it moved the key */
			set_place(sync, at, 0, 0);
		else if (wanted)
			lead_to(sync, at, *number_at(sync, at), wanted);
	}
	for (unsigned int at = 0; at < PLACES; at++) {
		struct wanted_place *wanted = wanted_at(sync, at) ? NULL : find_wanted(sync, *hash_at(sync, at), 0);
		const unsigned int number = wanted ? choose_meter(sync, wanted) : 0;

		if (number == ABI_RATES)
			return -ENOSPC;
		if (wanted)
			lead_to(sync, at, number, wanted);
	}
	return 0;
}

/* Gives places to all keys that have none. Each round may make room for the next one. -ENOSPC. */
static int add_places(struct sync *sync)
{
	size_t left = 1;

	for (int round = 0; round < PLACE_ROUNDS && left; round++) {
		left = 0;
		for (size_t i = 0; i < sync->count; i++) {
			struct wanted_place *wanted = &sync->wanted[i];
			unsigned int number;

			if (wanted->has_place)
				continue;
			number = choose_meter(sync, wanted);
			if (number == ABI_RATES)
				return -ENOSPC;
			wanted->has_place = add_place(sync, wanted, number);
			left += !wanted->has_place;
			if (!wanted->has_place && !make_room(sync, abi_rate_line_of(wanted->hash, 0)) &&
			    !make_room(sync, abi_rate_line_of(wanted->hash, 1)))
				return -ENOSPC;
		}
		end_moves(sync);
	}
	return left ? -ENOSPC : 0;
}

/*
 * Frees the places of rules that are gone. The filter is slow to find any place but the first of a key's first line. Keys
 * that found it taken, as by such a rule, move there.
 */
static void remove_places(struct sync *sync)
{
	for (unsigned int at = 0; at < PLACES; at++)
		if (*hash_at(sync, at) && !wanted_at(sync, at))
			set_place(sync, at, 0, 0);
	for (unsigned int at = 0; at < PLACES; at++) {
		const unsigned int first = abi_rate_line_of(*hash_at(sync, at), 0) * ABI_RATE_PLACES;

		if (*hash_at(sync, at) && !*hash_at(sync, first))
			begin_move(sync, at, first);
	}
}

/* Empties the places of a table that no packet uses: they would keep meters of rules that are gone. */
static void empty_unused(struct sync *sync)
{
	const struct filter *filter = sync->filter;
	const size_t bytes = ABI_RATE_LINES * sizeof(*sync->lines);

	if (filter->shares_maps)
		memset(sync->lines, 0, bytes);
	else if (!filter->successor && filter->kernel.config->settled == filter->kernel.config->active)
		memset(&sync->rates->line[ABI_RATE_LINES - filter_abi_table(filter)->first_rate_line], 0, bytes);
}

/* Of both tables. */
static void note_used_meters(struct sync *sync)
{
	for (unsigned int i = 0; i < 2 * PLACES; i++) {
		const struct abi_rate_line *line = &sync->rates->line[i / ABI_RATE_PLACES];

		if (line->hash[i % ABI_RATE_PLACES])
			sync->is_used[line->number[i % ABI_RATE_PLACES] % ABI_RATES] = true;
	}
}

/*
 * The order: a key that has a place is led to the meter of its rule; then new keys get places; only then old places go. After
 * an error a key whose new place is missing keeps its old one.
 */
int filter_sync_rates(struct filter *filter, struct store *store, bool has_rates, bool removes, struct reason *reason)
{
	const struct kernel_map *map = &filter->kernel.map[KERNEL_RATES];
	struct abi_table *table = filter_abi_table(filter);
	FREED struct sync *sync = NULL;
	int error;

	if (!has_rates && !table->rates)
		return 0;
	sync = calloc(1, sizeof(*sync));
	if (!sync || kernel_map_part(map, 0, map->bytes))
		return filter_unmapped_reason(reason);
	sync->filter = filter;
	sync->rates = map->memory;
	sync->lines = &sync->rates->line[table->first_rate_line];
	error = store_each_rate(store, want_rule, sync);
	if (error && error != -ENOSPC)
		return store_unread_reason(error, reason);
	sort_wanted(sync);
	empty_unused(sync);
	note_used_meters(sync);
	if (!error)
		error = take_places(sync);
	if (!error)
		error = add_places(sync);
	if (!error && removes)
		remove_places(sync);
	end_moves(sync);
	table->rates = sync->count;
	return error ? reason_set(reason, error, "there is no room for all rates in the filter") : 0;
}
