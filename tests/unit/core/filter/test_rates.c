// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The places of rates: as many as a filter takes, while it also has as many that are about to go. */
#include "unit/test.h"
#include "bench/random.h"

#define filter_sync_rates unused_here /* the library has it, too */
#include "filter/rates.c"             /* for its static functions */

#define TRIALS 200

/* A filter without packets, and its plan. */
struct scene {
	struct abi_config config;
	struct abi_rates rates;
	struct filter filter;
	struct rate_plan plan;
};

/* Draws rules with two keys each; each fourth shares its keys with the rule before. */
static void draw(struct rate_key *keys, uint64_t *seed)
{
	for (size_t i = 0; i < WANTED; i++) {
		const bool is_shared = i % 8 >= 6;

		keys[i] = (struct rate_key){
			.hash = is_shared ? keys[i - 2].hash : random_next(seed) | 1ULL << 63,
			.id = i % RULE_KEYS_MAX ? keys[i - 1].id : random_next(seed) | 1,
		};
	}
}

static const struct abi_rate_line *lines_of(const struct scene *scene)
{
	return &scene->rates.line[scene->config.table[0].first_rate_line];
}

static unsigned int times_found(const struct scene *scene, const struct rate_key *wanted)
{
	unsigned int found = 0;

	for (unsigned int i = 0; i < 2 * ABI_RATE_PLACES; i++) {
		const unsigned int which = i / ABI_RATE_PLACES, place = i % ABI_RATE_PLACES;
		const struct abi_rate_line *line = lines_of(scene) + abi_rate_line_of(wanted->hash, which);

		if (which && abi_rate_line_of(wanted->hash, 0) == abi_rate_line_of(wanted->hash, 1))
			break;
		found += line->hash[place] == wanted->hash &&
			 scene->rates.rate[line->number[place] % ABI_RATES].id == wanted->id;
	}
	return found;
}

static void sync_keys(struct scene *scene, const struct rate_key *keys, bool keeps)
{
	struct rate_plan *plan = &scene->plan;

	*plan = (struct rate_plan){ .filter = &scene->filter, .rates = &scene->rates, .wanted = WANTED };
	plan->in_use = scene->config.table[0].rates ? lines_of(scene) : NULL;
	memcpy(plan->key, keys, WANTED * sizeof(*keys));
	for (size_t i = 0; i < WANTED; i++) {
		plan->key[i].rate = 10;
		plan->key[i].number = NO_METER;
	}
	assert_int_equal(plan_places(plan, keeps), 0);
	assert_int_equal(publish_places(plan, &(struct reason){}), 0);
	for (size_t i = 0; i < WANTED; i++)
		assert_int_equal(times_found(scene, &keys[i]), 1);
}

TEST(test_all_rates_fit_beside_as_many_others)
{
	struct rate_key *before = calloc(WANTED, sizeof(*before)), *keys = calloc(WANTED, sizeof(*keys));
	struct scene *scene = calloc(1, sizeof(*scene));
	uint64_t seed = seed_of_run();
	size_t first = 0;

	scene->filter.kernel.config = &scene->config;
	draw(keys, &seed);
	sync_keys(scene, keys, false);
	for (int trial = 0; trial < TRIALS; trial++) {
		const bool has_other_rates = trial % 2;

		memcpy(before, keys, WANTED * sizeof(*keys));
		if (!has_other_rates)
			draw(keys, &seed);
		for (size_t i = 0; i < WANTED && has_other_rates; i++)
			keys[i].id ^= 1ULL << 40;
		sync_keys(scene, keys, true);
		/* What goes is still there, unless the same key has another rate. */
		for (size_t i = 0; i < WANTED; i++)
			assert_int_equal(times_found(scene, &before[i]), !has_other_rates);
		sync_keys(scene, keys, false);
		for (size_t i = 0; i < WANTED; i++) {
			assert_int_equal(times_found(scene, &before[i]), 0);
			first += lines_of(scene)[abi_rate_line_of(keys[i].hash, 0)].hash[0] == keys[i].hash;
		}
	}
	/* 1,024 lines have 1,024 first places, and 885 of them are the first line of a key. */
	assert_true(first > TRIALS * 800UL);
	free(scene);
	free(before);
	free(keys);
}

/* A rule that stays keeps its meter, with what packets took. */
TEST(test_a_rule_keeps_its_meter)
{
	struct rate_key *keys = calloc(WANTED, sizeof(*keys));
	struct scene *scene = calloc(1, sizeof(*scene));
	uint64_t seed = seed_of_run();

	scene->filter.kernel.config = &scene->config;
	draw(keys, &seed);
	sync_keys(scene, keys, false);
	for (unsigned int number = 0; number < ABI_RATES; number++)
		scene->rates.rate[number].spent = scene->rates.rate[number].id;
	for (size_t i = 0; i < WANTED / 2; i++)
		keys[i].id ^= 1ULL << 40;
	sync_keys(scene, keys, true);
	sync_keys(scene, keys, false);
	for (unsigned int number = 0; number < ABI_RATES; number++)
		for (size_t i = 0; i < WANTED; i++)
			if (scene->rates.rate[number].id == keys[i].id)
				assert_int_equal(scene->rates.rate[number].spent, i < WANTED / 2 ? 0 : keys[i].id);
	free(scene);
	free(keys);
}

TEST_MAIN(NULL, NULL)
