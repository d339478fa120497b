// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The token bucket of a rule with a rate (include/rate.h), on simulated jiffies and processors: whatever the load and its
 * spread over processors, packets pass at the rate, within 1 %, after a burst of the documented size.
 */
#include <pthread.h>

#include "bench/random.h"
#include "rule/rule.h"
#include "unit/test.h"

#define CPUS 64
#define TOKEN (1ULL << ABI_RATE_SHIFT)

struct simulation {
	struct abi_rate rate;
	struct abi_rate_credit credit[CPUS];
	uint64_t random, now;
	unsigned int hz;
	__u64 per_s, passed; /* tokens of a second; whole tokens that passed */
};

static __u64 burst_of(__u64 per_s, bool is_bytes)
{
	const __u64 least = is_bytes ? ABI_RATE_BURST_BYTES : ABI_RATE_BURST_PACKETS;

	return per_s * ABI_RATE_BURST_MS / 1000 > least ? per_s * ABI_RATE_BURST_MS / 1000 : least;
}

static struct simulation simulate(__u64 per_s, bool is_bytes, unsigned int hz)
{
	struct simulation s = { .random = seed_of_run(), .hz = hz, .per_s = per_s, .now = 0x100000000ULL - 300 * hz };

	s.rate.refill = (double)per_s * TOKEN / hz + 0.5;
	s.rate.burst = burst_of(per_s, is_bytes) * TOKEN;
	s.rate.batch = s.rate.refill / ABI_RATE_BATCHES;
	*(is_bytes ? &s.rate.each_byte : &s.rate.each_packet) = TOKEN;
	return s;
}

static bool take(struct simulation *s, struct abi_rate_credit *credit, unsigned int tokens)
{
	const __u64 cost = abi_rate_cost(&s->rate, tokens, 1);

	if (!abi_rate_has(&s->rate, credit, s->now, cost))
		return false;
	abi_rate_pay(&s->rate, credit, s->now, cost);
	return true;
}

/* A jiffy in which each of `cpus` processors gets `packets` packets of these tokens, in random order. */
static void load(struct simulation *s, unsigned int cpus, unsigned int packets, unsigned int tokens)
{
	s->now++;
	for (unsigned int i = 0; i < cpus * packets; i++)
		if (take(s, &s->credit[random_below(&s->random, cpus)], tokens))
			s->passed += tokens;
}

static void flood(__u64 per_s, bool is_bytes, unsigned int hz, unsigned int cpus, unsigned int tokens)
{
	struct simulation s = simulate(per_s, is_bytes, hz);
	const unsigned int packets = 4 * per_s / hz / tokens / cpus + 2, seconds = per_s < 100 ? 200 : 2;
	__u64 burst;

	load(&s, cpus, packets, tokens);
	for (unsigned int i = 1; i < hz; i++)
		load(&s, cpus, packets, tokens);
	/* The first second has the burst in addition; processors may take a batch or a packet too much between them. */
	burst = burst_of(per_s, is_bytes) + per_s / hz + cpus * (per_s / hz / ABI_RATE_BATCHES + tokens);
	assert_true(s.passed <= per_s + burst);
	assert_true(s.passed + tokens >= per_s);
	s.passed = 0;
	for (unsigned int i = 0; i < seconds * hz; i++)
		load(&s, cpus, packets, tokens);
	if (s.passed > seconds * per_s * 1.01 + tokens || s.passed < seconds * per_s * 0.99 - tokens)
		fail_msg("%llu/s at HZ %u on %u processors: %llu passed in %u s", per_s, hz, cpus, s.passed, seconds);
}

TEST(test_floods)
{
	static const unsigned int hz[] = { 100, 250, 300, 1000 }, cpus[] = { 1, 2, 7, CPUS };

	for (size_t i = 0; i < COUNT(hz); i++)
		for (size_t k = 0; k < COUNT(cpus); k++) {
			flood(1, false, hz[i], cpus[k], 1);
			flood(333, false, hz[i], cpus[k], 1);
			flood(100000, false, hz[i], cpus[k], 1);
			flood(1000000, true, hz[i], cpus[k], 1514); /* 8 Mbit/s */
			flood(1000000, true, hz[i], cpus[k], 64);
			flood(125000000, true, hz[i], cpus[k], 1514);
			flood(1250000, true, hz[i], cpus[k], 65226); /* a packet of many segments */
			flood(5000000000, true, hz[i], cpus[k], 9014);
		}
}

/* What comes below the rate passes, also in bursts, and on any processor. */
TEST(test_below_the_rate)
{
	struct simulation s = simulate(1000, false, 250);

	for (unsigned int i = 0; i < 5000; i++)
		load(&s, 1, 3, 1);
	assert_int_equal(s.passed, 15000);
	s = simulate(1000, false, 250);
	for (unsigned int i = 0; i < 5000; i++)
		load(&s, CPUS, i % 25 ? 0 : 1, 1);
	assert_int_equal(s.passed, 200 * CPUS);
}

/* A pause is worth one burst, however long it lasts, also where the counts have wrapped. */
TEST(test_pauses)
{
	struct simulation s = simulate(1250000000, true, 100);

	for (unsigned int i = 0; i < 200; i++) {
		const __u64 burst = burst_of(s.per_s, true);

		s.now += 1ULL << random_below(&s.random, 40);
		s.passed = 0;
		load(&s, 1, 3000, 100000);
		/* What is left of the jiffy before comes in addition. */
		assert_true(s.passed <= burst + s.per_s / s.hz + 200000);
		if (s.passed < burst / 10)
			fail_msg("after a pause %llu bytes passed", s.passed);
	}
}

/* A meter that is new, or was idle, gives its burst at once, also where the earnings since boot have wrapped. */
static void check_full(struct simulation *s, __u64 at, const char *what)
{
	const __u64 cost = s->rate.burst / 5;
	struct abi_rate_credit credit = {};
	unsigned int passed = 0;

	for (; passed < 20 && abi_rate_has(&s->rate, &credit, at, cost); passed++)
		abi_rate_pay(&s->rate, &credit, at, cost);
	/* One more, because a packet of any size passes while there is a token; and what a credit had. */
	if (passed < 5 || passed > 7)
		fail_msg("%s at jiffy %llu, %llu/s at HZ %u: %u fifths", what, at, s->per_s, s->hz, passed);
}

TEST(test_wraps)
{
	static const unsigned int hz[] = { 100, 250, 300, 1000 };
	static const int near[] = { -100000, -30, -1, 0, 1, 2, 25, 4000, 100000 };

	for (__u64 per_s = 1; per_s <= 125000000000; per_s = per_s * 3 + 1) /* up to 1 Tbit/s */
		for (size_t i = 0; i < 2 * COUNT(hz) * COUNT(near); i++) {
			const bool is_bytes = i % 2;
			struct simulation fresh = simulate(per_s, is_bytes, hz[i / 2 % COUNT(hz)]), idle = fresh;
			const double wrap = 0x1p64 / fresh.rate.refill;

			for (__u64 k = fresh.now / wrap, n = k; n < k + 3 && n * wrap < 0x1p40; n++) {
				const double at = n * wrap + near[i / 2 / COUNT(hz)];

				if (at < fresh.now)
					continue;
				fresh.rate.spent = fresh.rate.used_at = 0;
				check_full(&fresh, at, "new");
				idle.now = fresh.now;
				abi_rate_pay(&idle.rate, &idle.credit[0], idle.now, idle.rate.burst);
				if (at > idle.now + 7570.0 * idle.hz / per_s + idle.hz)
					check_full(&idle, at, "idle");
				idle.rate.spent = idle.rate.used_at = 0;
			}
		}
}

/* What another rule has left in the credit of a processor is worth nothing. */
TEST(test_a_number_that_another_rule_had)
{
	struct simulation s = simulate(10, false, 1000);

	for (unsigned int i = 0; i < CPUS; i++)
		s.credit[i] = (struct abi_rate_credit){ .held = 1000000 * TOKEN };
	load(&s, CPUS, 100, 1);
	assert_int_equal(s.passed, ABI_RATE_BURST_PACKETS);
}

#define RACERS 4

struct race {
	struct simulation *simulation;
	pthread_barrier_t start;
	unsigned int passed;
};

static void *race_once(void *context)
{
	struct race *race = context;
	struct abi_rate_credit credit = {};
	const __u64 cost = abi_rate_cost(&race->simulation->rate, 1, 1);

	pthread_barrier_wait(&race->start);
	if (abi_rate_has(&race->simulation->rate, &credit, race->simulation->now, cost)) {
		abi_rate_pay(&race->simulation->rate, &credit, race->simulation->now, cost);
		__atomic_fetch_add(&race->passed, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Processors that race for the last token, or for that of a meter that was idle, pay for each packet that passes. */
TEST(test_a_race_for_the_last_token)
{
	struct simulation s = simulate(12500000000, true, 100); /* 100 Gbit/s */
	const __u64 idle = s.now * s.rate.refill - s.rate.burst;
	struct race race = { .simulation = &s };

	assert_int_equal(pthread_barrier_init(&race.start, NULL, RACERS), 0);
	for (unsigned int round = 0; round < 3000; round++) {
		pthread_t racer[RACERS];

		const bool is_idle = round % 2;
		const __u64 from = is_idle ? idle : idle + s.rate.burst - 1;

		s.rate.spent = is_idle ? idle - 1000 * s.rate.burst : from;
		s.rate.used_at = s.now;
		race.passed = 0;
		for (size_t i = 0; i < RACERS; i++)
			assert_int_equal(pthread_create(&racer[i], NULL, race_once, &race), 0);
		for (size_t i = 0; i < RACERS; i++)
			pthread_join(racer[i], NULL);
		assert_in_range(race.passed, is_idle ? RACERS : 1, RACERS);
		assert_in_range(s.rate.spent - from, s.rate.batch, race.passed * s.rate.batch);
		assert_true(s.rate.spent - from >= race.passed * TOKEN);
	}
	pthread_barrier_destroy(&race.start);
}

/* A flood does not make processors write the meter more often than 16 times in a jiffy and once each. */
TEST(test_writes)
{
	struct simulation s = simulate(1000000, false, 1000);
	__u64 last = 0;
	unsigned int writes = 0;

	for (unsigned int i = 0; i < 1000; i++)
		load(&s, CPUS, 20, 1);
	for (unsigned int i = 0; i < 1000; i++) {
		s.now++;
		for (unsigned int k = 0; k < 100000; k++) {
			last = s.rate.spent;
			take(&s, &s.credit[random_below(&s.random, CPUS)], 1);
			writes += s.rate.spent != last;
		}
	}
	assert_in_range(writes, 1000, 1000 * (ABI_RATE_BATCHES + 1));
}

TEST_MAIN(NULL, NULL)
