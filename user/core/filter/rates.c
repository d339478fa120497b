// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Gives each rule with a rate its meter, and each key of such a rule a place that leads to the
 * meter: see include/rate.h. Both tables of a filter share the meters, so a rule keeps its meter
 * when its table is exchanged. A key without a place matches nothing.
 *
 * The places of a table are in lines, and the maps have twice as many lines as a table needs: those
 * in use, and the idle ones. Nobody changes what packets read. All places are planned in plain
 * memory, and then:
 *
 *    wait until no packet reads idle lines, which were in use before
 *    fill the new meters                         no line in use names them
 *    write the idle lines
 *    they become those of the table              one store: a packet finds all old places, or all new
 *
 * A key's place comes before its entry, and goes after it. So while a change is made, `keeps` keeps
 * the places of rules that go. A rule whose rate changes gets another meter, and its place leads
 * there from one packet to the next.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/waiting.h"
#include "filter/internal.h"
#include "hash.h"

#define WANTED (ABI_RATES_MAX * RULE_KEYS_MAX)
#define PLACES (ABI_RATE_LINES * ABI_RATE_PLACES) /* of one table */
#define NO_METER ABI_RATES

/* A key with a place. */
struct rate_key {
	__u64 hash, id; /* of the key under the table's secret; of the meter: see struct abi_rate */
	__u64 rate;
	unsigned int number; /* of the meter */
	bool has_place;      /* now, or that of a rule which goes; later: in the plan */
};

struct rate_plan {
	const struct filter *filter;
	struct abi_rates *rates;
	const struct abi_rate_line *in_use; /* by packets; NULL: none are */
	struct rate_key key[PLACES];        /* those of the store, sorted; then kept ones */
	size_t wanted, count;               /* of the store; all */
	__u64 id[ABI_RATES];                /* of meters in use, or of the plan; 0: a free meter */
	__u64 new_rate[ABI_RATES];          /* of meters that must be filled first; 0: of others */
	struct abi_rate_line line[ABI_RATE_LINES];
};

/* ---- which keys ---- */

/*
 * The id of the meter is a hash of the rule and its rate: a rule with another rate gets another meter. The id of the
 * store is random, so that nobody can announce a rule that shares the meter of another.
 */
static int want_rule(const struct rule *rule, void *context)
{
	struct rate_plan *plan = context;
	const struct abi_config *config = plan->filter->kernel.config;
	__u64 words[(RULE_ENCODED_BYTES + 7) / 8] = {}, id = config->store_id[0] ^ rule->rate;
	struct rule_key keys[RULE_KEYS_MAX];
	const size_t count = rule_keys(rule, keys);

	rule_encode(rule, (__u8 *)words);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		id = hash_mix((id ^ words[i]) + config->store_id[1]);
	if (plan->wanted + count > WANTED)
		return -ENOSPC;
	for (size_t i = 0; i < count; i++)
		plan->key[plan->wanted++] = (struct rate_key){
			.hash = rule_hash(&keys[i], &filter_abi_table(plan->filter)->secret).hash,
			.id = id ? id : 1,
			.rate = rule->rate,
			.number = NO_METER,
		};
	return 0;
}

static int compare_keys(const void *left, const void *right)
{
	const struct rate_key *a = left, *b = right;

	return a->hash != b->hash ? (a->hash > b->hash) - (a->hash < b->hash) : (a->id > b->id) - (a->id < b->id);
}

/* A wanted key with this hash (never 0): that of the meter `id`; id 0: one without a place. */
static struct rate_key *find_wanted(struct rate_plan *plan, __u64 hash, __u64 id)
{
	size_t from = 0, to = plan->wanted;

	while (from < to) {
		const size_t middle = (from + to) / 2;

		if (plan->key[middle].hash < hash)
			from = middle + 1;
		else
			to = middle;
	}
	for (; from < plan->wanted && plan->key[from].hash == hash; from++)
		if (id ? plan->key[from].id == id : !plan->key[from].has_place)
			return &plan->key[from];
	return NULL;
}

/* Of place `at` of those in use: the number of the meter; returns the hash, 0 if it is free. */
static __u64 place_in_use(const struct rate_plan *plan, unsigned int at, unsigned int *number)
{
	const struct abi_rate_line *line = &plan->in_use[at / ABI_RATE_PLACES];

	*number = line->number[at % ABI_RATE_PLACES] % ABI_RATES;
	return line->hash[at % ABI_RATE_PLACES];
}

/* A wanted key that has a place keeps its meter. */
static void look_at_places(struct rate_plan *plan)
{
	for (unsigned int at = 0, number; at < PLACES; at++) {
		const __u64 hash = place_in_use(plan, at, &number);
		struct rate_key *key;

		if (!hash)
			continue;
		plan->id[number] = plan->rates->rate[number].id;
		key = find_wanted(plan, hash, plan->id[number]);
		if (!key)
			continue;
		key->number = number;
		key->has_place = true;
	}
}

/* Keeps places of rules that go, unless another rule of the key, as with another rate, comes. */
static int keep_places(struct rate_plan *plan)
{
	for (unsigned int at = 0, number; at < PLACES; at++) {
		const __u64 hash = place_in_use(plan, at, &number);
		struct rate_key *key;

		if (!hash || find_wanted(plan, hash, plan->id[number]))
			continue;
		key = find_wanted(plan, hash, 0);
		if (key)
			key->has_place = true;
		else if (plan->count == PLACES)
			return -ENOSPC;
		else
			plan->key[plan->count++] = (struct rate_key){ .hash = hash, .number = number };
	}
	return 0;
}

/* ---- their meters ---- */

static int choose_meters(struct rate_plan *plan)
{
	for (struct rate_key *key = plan->key; key < plan->key + plan->wanted; key++) {
		unsigned int number, free = NO_METER;

		if (key->number != NO_METER)
			continue;
		for (number = 0; number < ABI_RATES && plan->id[number] != key->id; number++)
			if (!plan->id[number] && free == NO_METER)
				free = number;
		if (number == ABI_RATES && free == NO_METER)
			return -ENOSPC;
		if (number == ABI_RATES) {
			number = free;
			plan->id[number] = key->id;
			plan->new_rate[number] = key->rate;
		}
		key->number = number;
	}
	return 0;
}

static struct abi_rate full_meter(__u64 id, __u64 rate)
{
	const double jiffies = ticks_jiffies(), unit = 1 << ABI_RATE_SHIFT;
	const bool is_bits = rate & RULE_RATE_BITS;
	const double each_second = (rate & ~RULE_RATE_BITS) * unit / (is_bits ? 8 : 1);
	const double least = (is_bits ? ABI_RATE_BURST_BYTES : ABI_RATE_BURST_PACKETS) * unit;
	const double burst = each_second * ABI_RATE_BURST_MS / 1000;

	return (struct abi_rate){
		.refill = (__u64)(2 * each_second / jiffies + 1) / 2, /* rounded */
		.burst = burst > least ? burst : least,
		.batch = each_second / jiffies / ABI_RATE_BATCHES,
		.each_byte = is_bits ? 1 << ABI_RATE_SHIFT : 0,
		.each_packet = is_bits ? 0 : 1 << ABI_RATE_SHIFT,
		.id = id,
	};
}

/* ---- their places in the plan ---- */

/* The first free place of a line. ABI_RATE_PLACES: none is free. */
static unsigned int free_place(const struct rate_plan *plan, unsigned int line)
{
	unsigned int place = 0;

	while (place < ABI_RATE_PLACES && plan->line[line].hash[place])
		place++;
	return place;
}

static void set_place(struct rate_plan *plan, unsigned int line, unsigned int place, __u64 hash, unsigned int number)
{
	plan->line[line].hash[place] = hash;
	plan->line[line].number[place] = number;
}

/* As in a cuckoo filter, a key of a full line moves to its other line. False: all those are full, too. */
static bool make_room(struct rate_plan *plan, unsigned int line)
{
	for (unsigned int place = ABI_RATE_PLACES; place-- > 0;) {
		const __u64 hash = plan->line[line].hash[place];
		const unsigned int other = abi_rate_line_of(hash, 0) ^ abi_rate_line_of(hash, 1) ^ line;
		const unsigned int to = free_place(plan, other);

		if (to == ABI_RATE_PLACES)
			continue;
		set_place(plan, other, to, hash, plan->line[line].number[place]);
		set_place(plan, line, place, 0, 0);
		return true;
	}
	return false;
}

/* Gives a key a place in that of its two lines which has more. */
static bool place_key(struct rate_plan *plan, const struct rate_key *key)
{
	const unsigned int first = abi_rate_line_of(key->hash, 0), second = abi_rate_line_of(key->hash, 1);
	unsigned int line = free_place(plan, second) < free_place(plan, first) ? second : first;

	if (free_place(plan, line) == ABI_RATE_PLACES && !make_room(plan, line)) {
		line = second;
		if (!make_room(plan, line))
			return false;
	}
	set_place(plan, line, free_place(plan, line), key->hash, key->number);
	return true;
}

/* The filter is quick to find the first place of a key's first line: these are given first. */
static int place_keys(struct rate_plan *plan)
{
	struct rate_key *key = plan->key;

	qsort(key, plan->count, sizeof(*key), compare_keys);
	for (size_t i = 1; i < plan->count; i++)
		if (key[i].hash == key[i - 1].hash) {
			key[i - 1].number |= ABI_RATE_SHARED;
			key[i].number |= ABI_RATE_SHARED;
		}
	for (size_t i = 0; i < plan->count; i++) {
		const unsigned int line = abi_rate_line_of(key[i].hash, 0);

		key[i].has_place = !plan->line[line].hash[0];
		if (key[i].has_place)
			set_place(plan, line, 0, key[i].hash, key[i].number);
	}
	for (size_t i = 0; i < plan->count; i++)
		if (!key[i].has_place && !place_key(plan, &key[i]))
			return -ENOSPC;
	return 0;
}

/* From the wanted keys, and the places in use, to the lines. -ENOSPC. */
static int plan_places(struct rate_plan *plan, bool keeps)
{
	int error = 0;

	qsort(plan->key, plan->wanted, sizeof(*plan->key), compare_keys);
	plan->count = plan->wanted;
	if (plan->in_use)
		look_at_places(plan);
	if (plan->in_use && keeps)
		error = keep_places(plan);
	if (!error)
		error = choose_meters(plan);
	return error ? error : place_keys(plan);
}

/* ---- what packets see: the top of this file explains the order ---- */

static int publish_places(const struct rate_plan *plan, struct reason *reason)
{
	const struct kernel_filter *kernel = &plan->filter->kernel;
	struct abi_table *table = filter_abi_table(plan->filter);
	const __u32 idle = abi_active(kernel->config)->first_rate_line ? 0 : ABI_RATE_LINES;
	struct abi_rate_line *line = &plan->rates->line[idle];
	/* Also if this table has no packets yet: those of the other table may read these lines. */
	const int error = kernel->attachments_count ? grace_wait() : 0;

	if (error)
		return reason_set(reason, error, "cannot wait for a grace period: %s", strerror(-error));
	for (unsigned int number = 0; number < ABI_RATES; number++)
		if (plan->new_rate[number])
			plan->rates->rate[number] = full_meter(plan->id[number], plan->new_rate[number]);
	for (unsigned int i = 0; i < ABI_RATE_LINES; i++)
		if (memcmp(&line[i], &plan->line[i], sizeof(*line)))
			line[i] = plan->line[i];
	/* If this process ends here, the lines count as in use. */
	if (plan->count)
		table->rates = plan->count;
	__atomic_store_n(&table->first_rate_line, idle, __ATOMIC_RELEASE);
	table->rates = plan->count;
	return 0;
}

int filter_sync_rates(struct filter *filter, struct store *store, bool keeps, struct reason *reason)
{
	const struct kernel_map *map = &filter->kernel.map[KERNEL_RATES];
	const struct abi_table *table = filter_abi_table(filter), *active = abi_active(filter->kernel.config);
	FREED struct rate_plan *plan = calloc(1, sizeof(*plan));
	int error;

	if (!plan)
		return filter_unmapped_reason(reason);
	plan->filter = filter;
	error = store_each_rate(store, want_rule, plan);
	if (error && error != -ENOSPC)
		return store_unread_reason(error, reason);
	if (!error && !plan->wanted && !table->rates)
		return 0;
	if (kernel_map_part(map, 0, map->bytes))
		return filter_unmapped_reason(reason);
	plan->rates = map->memory;
	plan->in_use = active->rates ? &plan->rates->line[active->first_rate_line] : NULL;
	if (!error)
		error = plan_places(plan, keeps);
	if (error)
		return reason_set(reason, error, "there is no room for all rates in the filter");
	if (table == active && plan->in_use && !memcmp(plan->in_use, plan->line, sizeof(plan->line)))
		return 0;
	return publish_places(plan, reason);
}
