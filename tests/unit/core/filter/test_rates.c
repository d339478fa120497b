// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The places of rates: as many as a filter takes, while it also has as many that are about to go. */
#include "unit/test.h"
#include "bench/random.h"

#define filter_sync_rates unused_here /* the library has it, too */
#include "filter/rates.c"             /* for its static functions */

#define TRIALS 200

struct scene {
	struct abi_rates rates;
	struct filter filter;
	struct sync sync;
};

/* Draws rules with two keys each; each fourth shares its keys with the rule before. */
static void draw(struct scene *scene, uint64_t *seed)
{
	for (size_t i = 0; i < WANTED; i++) {
		const bool is_shared = i % 8 >= 6;

		scene->sync.wanted[i] = (struct wanted_place){
			.hash = is_shared ? scene->sync.wanted[i - 2].hash : random_next(seed) | 1ULL << 63,
			.id = i % RULE_KEYS_MAX ? scene->sync.wanted[i - 1].id : random_next(seed) | 1,
			.rate = 10,
		};
	}
}

static unsigned int times_found(const struct scene *scene, const struct wanted_place *wanted)
{
	unsigned int found = 0;

	for (unsigned int i = 0; i < 2 * ABI_RATE_PLACES; i++) {
		const unsigned int which = i / ABI_RATE_PLACES, place = i % ABI_RATE_PLACES;
		const struct abi_rate_line *line = &scene->rates.line[abi_rate_line_of(wanted->hash, which)];

		if (which && abi_rate_line_of(wanted->hash, 0) == abi_rate_line_of(wanted->hash, 1))
			break;
		found += line->hash[place] == wanted->hash &&
			 scene->rates.rate[line->number[place] % ABI_RATES].id == wanted->id;
	}
	return found;
}

static void settle(struct scene *scene)
{
	struct sync *sync = &scene->sync;

	memset(sync->is_used, 0, sizeof(sync->is_used));
	for (unsigned int i = 0; i < PLACES; i++)
		if (scene->rates.line[i / ABI_RATE_PLACES].hash[i % ABI_RATE_PLACES])
			sync->is_used[scene->rates.line[i / ABI_RATE_PLACES].number[i % ABI_RATE_PLACES] % ABI_RATES] =
				true;
	assert_int_equal(take_places(sync), 0);
	assert_int_equal(add_places(sync), 0);
	for (size_t i = 0; i < WANTED; i++)
		assert_int_equal(times_found(scene, &scene->sync.wanted[i]), 1);
	remove_places(sync);
	end_moves(sync);
	for (size_t i = 0; i < WANTED; i++)
		assert_int_equal(times_found(scene, &scene->sync.wanted[i]), 1);
}

TEST(test_all_rates_fit_beside_as_many_others)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	uint64_t seed = seed_of_run();

	scene->filter.shares_maps = true; /* no packets */
	scene->sync = (struct sync){
		.filter = &scene->filter, .count = WANTED, .rates = &scene->rates, .lines = scene->rates.line
	};
	for (int trial = 0; trial < TRIALS; trial++) {
		if (trial % 2) /* the same rules with other rates */
			for (size_t i = 0; i < WANTED; i++) {
				scene->sync.wanted[i].id ^= 1ULL << 40;
				scene->sync.wanted[i].has_place = false;
			}
		else
			draw(scene, &seed);
		sort_wanted(&scene->sync);
		settle(scene);
	}
	free(scene);
}

TEST_MAIN(NULL, NULL)
