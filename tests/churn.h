/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One thread changes a table without pause while another looks up entries that are in it all the
 * time, with the very code of bpf/probe.h. Two engines: the real one, and one that overwrites an
 * entry before it has its copy, made of the same source, by which a test shows that it can fail.
 */
#ifndef XDP_CUCKOO_CHURN_H
#define XDP_CUCKOO_CHURN_H

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "abi.h"
#include "table.h"
#include "table_move.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* The reader: the map of buckets is the table under test. */
#include "maps.h"

static __u64 *churn_bucket;

#define bpf_map_lookup_elem(map, key) (&churn_bucket[*(key)])
#include "probe.h"
#undef bpf_map_lookup_elem

static inline void churn_move_wrong(struct table *table, struct table_place from,
				    struct table_place to)
{
	__u16 fingerprint = table_load(table, from);

	table_store(table, from, 0);
	table_announce(table);
	table_store(table, to, fingerprint);
	table->moves++;
}

/* The wrong engine. */
#define table_open wrong_open
#define table_close wrong_close
#define table_insert wrong_insert
#define table_delete wrong_delete
#define table_contains wrong_contains
#define table_count wrong_count
#define table_slots wrong_slots
#define table_slots_for wrong_slots_for
#define table_move churn_move_wrong
#include "../user/table.c"
#undef table_open
#undef table_close
#undef table_insert
#undef table_delete
#undef table_contains
#undef table_count
#undef table_slots
#undef table_slots_for
#undef table_move

#pragma GCC diagnostic pop

struct churn_engine {
	const char *name;
	int (*insert)(struct table *table, __u64 hash);
	int (*remove)(struct table *table, __u64 hash);
	void (*move)(struct table *table, struct table_place from, struct table_place to);
};

static const struct churn_engine churn_right = { "copy, announce, overwrite", table_insert,
						 table_delete, table_move };
static const struct churn_engine churn_wrong = { "overwrite, announce, copy", wrong_insert,
						 wrong_delete, churn_move_wrong };

struct churn_result {
	__u64 lookups, misses, unsettled, moves;
};

/* A table in which the first `residents` of `count` hashes stay, and the rest comes and goes. */
struct churn {
	struct abi_config config __attribute__((aligned(64))); /* sequence: a line of its own */
	const struct churn_engine *engine;
	struct table table;
	__u64 *bucket, *hash;
	size_t residents, count;
	__u64 seed, next; /* number of the next hash that never was */
	__u64 lost;	  /* entries that a delete did not find */
	void (*change)(struct churn *churn);
	__u64 lookups, misses_max;
	struct churn_result result;
	bool is_stopping;
};

/* Independent, uniform, and the same each time. */
static inline __u64 churn_hash(__u64 seed, __u64 number)
{
	const struct siphash_key key = { { seed, 0 } };

	return siphash13(&key, &number, sizeof(number));
}

static inline void churn_close(struct churn *churn)
{
	table_close(&churn->table);
	free(churn->bucket);
	free(churn->hash);
}

static inline void churn_insert_new(struct churn *churn, size_t at)
{
	do
		churn->hash[at] = churn_hash(churn->seed, churn->next++);
	while (churn->engine->insert(&churn->table, churn->hash[at]));
}

/* Fills a table of 2^slots_log2 slots with `count` entries. Returns 0 or -errno. */
static inline int churn_open(struct churn *churn, const struct churn_engine *engine,
			     unsigned int slots_log2, size_t residents, size_t count, __u64 seed)
{
	__u64 buckets = (1ULL << slots_log2) / BUCKET_SLOTS;
	int error;

	*churn = (struct churn){
		.engine = engine, .residents = residents, .count = count, .seed = seed
	};
	churn->bucket = calloc(buckets, sizeof(*churn->bucket));
	churn->hash = calloc(count, sizeof(*churn->hash));
	if (!churn->bucket || !churn->hash) {
		churn_close(churn);
		return -ENOMEM;
	}
	error = table_open(&churn->table, churn->bucket, buckets, &churn->config.sequence);
	if (error) {
		churn_close(churn);
		return error;
	}
	churn->config.bucket_mask = churn->table.bucket_mask;
	churn->config.step_shift = churn->table.step_shift;
	for (size_t i = 0; i < count; i++)
		churn_insert_new(churn, i);
	return 0;
}

/* A change: one entry that is not a resident goes, another comes. */
static inline void churn_replace(struct churn *churn)
{
	size_t at = churn->residents + churn->next % (churn->count - churn->residents);

	if (churn->engine->remove(&churn->table, churn->hash[at]))
		churn->lost++;
	churn_insert_new(churn, at);
}

/* A change: the only entry of the table moves to its other bucket and back. */
static inline void churn_bounce(struct churn *churn)
{
	struct table *table = &churn->table;
	struct bucket_pair pair =
		bucket_pair(churn->hash[0], table->bucket_mask, table->step_shift);
	struct table_place first = { pair.first, 0 }, second = { pair.second, 0 };

	churn->engine->move(table, first, second);
	churn->engine->move(table, second, first);
}

static inline void *churn_write(void *context)
{
	struct churn *churn = context;

	while (!__atomic_load_n(&churn->is_stopping, __ATOMIC_RELAXED))
		churn->change(churn);
	return NULL;
}

static inline void *churn_read(void *context)
{
	struct churn *churn = context;
	struct churn_result result = {};

	for (size_t i = 0; result.lookups < churn->lookups && result.misses < churn->misses_max;
	     i++) {
		enum probe_result found;

		i = i < churn->residents ? i : 0;
		found = probe(&churn->config, churn->hash[i]);
		result.lookups++;
		result.misses += found == PROBE_MISS;
		result.unsettled += found == PROBE_UNSETTLED;
	}
	churn->result = result;
	return NULL;
}

/* The nth processor that this process may use, counted round. */
static inline cpu_set_t churn_processor(int n)
{
	cpu_set_t usable, one;
	int cpu = 0;

	if (sched_getaffinity(0, sizeof(usable), &usable))
		abort();
	for (n %= CPU_COUNT(&usable); n || !CPU_ISSET(cpu, &usable); cpu++)
		n -= !!CPU_ISSET(cpu, &usable);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return one;
}

/* On a processor of its own: two threads that take turns on one see no half of a move. */
static inline pthread_t churn_start(struct churn *churn, void *(*run)(void *context), int processor)
{
	cpu_set_t one = churn_processor(processor);
	pthread_attr_t attributes;
	pthread_t thread;

	if (pthread_attr_init(&attributes) ||
	    pthread_attr_setaffinity_np(&attributes, sizeof(one), &one) ||
	    pthread_create(&thread, &attributes, run, churn))
		abort();
	pthread_attr_destroy(&attributes);
	return thread;
}

/* Looks residents up, `lookups` times or until `misses_max` were missed, while `change` goes on. */
static inline struct churn_result
churn_run(struct churn *churn, void (*change)(struct churn *churn), __u64 lookups, __u64 misses_max)
{
	__u64 moves = churn->table.moves;
	pthread_t reader, writer;

	churn_bucket = churn->bucket;
	churn->change = change;
	churn->lookups = lookups;
	churn->misses_max = misses_max;
	churn->is_stopping = false;
	writer = churn_start(churn, churn_write, 0);
	reader = churn_start(churn, churn_read, 1);
	pthread_join(reader, NULL);
	__atomic_store_n(&churn->is_stopping, true, __ATOMIC_RELAXED);
	pthread_join(writer, NULL);
	churn->result.moves = churn->table.moves - moves;
	return churn->result;
}

#endif
