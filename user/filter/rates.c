// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Gives each rule with a rate its bucket, and each key of such a rule a place that leads to the bucket: see
 * include/rate.h. Both tables of a filter share the buckets, so a rule keeps its bucket when its table is exchanged.
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
	__u64 hash, id; /* of the key under the table's secret; of the bucket: see struct abi_rate */
	__u64 rate;
	bool has_place;
};

struct wanted_places {
	const struct filter *filter;
	struct wanted_place *place;
	size_t count;
};

/*
 * The id of the bucket is a hash of the rule and its rate: a rule with another rate gets another bucket. The id of the
 * store is random, so that nobody can announce a rule that shares the bucket of another.
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

/* A packet that comes in between reads a number of another key, and once pays from the bucket of that. */
static void set_place(struct abi_rate_line *line, unsigned int place, __u64 hash, unsigned int number)
{
	line->number[place] = number;
	__atomic_store_n(&line->hash[place], hash, __ATOMIC_RELEASE);
}

/* Sets has_place of places that exist, and ABI_RATE_SHARED of shared keys. `removes`: frees places not wanted. */
static void check_places(const struct abi_rates *rates, struct abi_rate_line *lines, const struct wanted_places *wanted,
			 bool removes)
{
	for (unsigned int i = 0; i < ABI_RATE_LINES * ABI_RATE_PLACES; i++) {
		struct abi_rate_line *line = &lines[i / ABI_RATE_PLACES];
		const unsigned int place = i % ABI_RATE_PLACES;
		const struct wanted_place key = { .hash = line->hash[place],
						  .id = rates->rate[line->number[place] % ABI_RATES].id };
		struct wanted_place *found;

		if (!key.hash)
			continue;
		found = wanted->count ? bsearch(&key, wanted->place, wanted->count, sizeof(key), compare_places) : NULL;
		if (!found && removes) {
			set_place(line, place, 0, 0);
		} else if (found) {
			const bool is_shared = (found > wanted->place && found[-1].hash == key.hash) ||
					       (found + 1 < wanted->place + wanted->count && found[1].hash == key.hash);

			found->has_place = true;
			line->number[place] = line->number[place] % ABI_RATES | (is_shared ? ABI_RATE_SHARED : 0);
		}
	}
}

/* The bucket with this id among those in use, or else a free one, which it fills. ABI_RATES: all are in use. */
static unsigned int choose_bucket(struct abi_rates *rates, bool is_used[ABI_RATES], const struct wanted_place *wanted)
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

/* Gives a key a place in one of its two lines; the first place of the first line is the quickest. False: both are full. */
static bool add_place(struct abi_rate_line *lines, __u64 hash, unsigned int number)
{
	for (unsigned int i = 0; i < ABI_RATE_PLACES / 2; i++)
		for (unsigned int k = 0; k < 4; k++) {
			const unsigned int which = k / 2, place = 2 * i + k % 2;
			struct abi_rate_line *line = &lines[abi_rate_line_of(hash, which)];

			if (line->hash[place])
				continue;
			set_place(line, place, hash, number);
			return true;
		}
	return false;
}

int filter_sync_rates(struct filter *filter, struct store *store, bool has_rates, struct reason *reason)
{
	const struct kernel_map *map = &filter->kernel.map[KERNEL_RATES];
	struct abi_table *table = filter_abi_table(filter);
	struct wanted_places wanted = { .filter = filter };
	struct abi_rates *rates = map->memory;
	bool is_used[ABI_RATES] = {};
	struct abi_rate_line *lines;
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
	lines = &rates->line[table->first_rate_line];
	/* Places of a table that no packet uses would keep buckets of rules that are gone. */
	if (filter->shares_maps)
		memset(lines, 0, ABI_RATE_LINES * sizeof(*lines));
	else if (!filter->successor && filter->kernel.config->settled == filter->kernel.config->active)
		memset(&rates->line[ABI_RATE_LINES - table->first_rate_line], 0, ABI_RATE_LINES * sizeof(*lines));
	check_places(rates, lines, &wanted, false);
	for (unsigned int i = 0; i < 2 * ABI_RATE_LINES * ABI_RATE_PLACES; i++) {
		const struct abi_rate_line *line = &rates->line[i / ABI_RATE_PLACES];

		if (line->hash[i % ABI_RATE_PLACES])
			is_used[line->number[i % ABI_RATE_PLACES] % ABI_RATES] = true;
	}
	for (size_t i = 0; i < wanted.count && !error; i++) {
		const struct wanted_place *place = &wanted.place[i];
		const unsigned int number = place->has_place ? 0 : choose_bucket(rates, is_used, place);

		if (!place->has_place && (number == ABI_RATES || !add_place(lines, place->hash, number)))
			error = reason_set(reason, -ENOSPC, "there is no room for all rates in the filter");
	}
	/* After an error a key whose new place is missing keeps its old one. */
	if (!error)
		check_places(rates, lines, &wanted, true);
	/*
	 * The filter is slow to find any place but the first of a key's first line. Keys that found it taken, as by the old
	 * rate of the same rule, move there. A packet that comes in between may pay twice.
	 */
	for (unsigned int i = 0; i < ABI_RATE_LINES * ABI_RATE_PLACES && !error; i++) {
		struct abi_rate_line *line = &lines[i / ABI_RATE_PLACES];
		const unsigned int place = i % ABI_RATE_PLACES;
		const __u64 hash = line->hash[place];
		struct abi_rate_line *first = &lines[abi_rate_line_of(hash, 0)];

		if (!hash || first->hash[0])
			continue;
		set_place(first, 0, hash, line->number[place]);
		set_place(line, place, 0, 0);
	}
	table->rates = wanted.count;
	free(wanted.place);
	return error;
}
