/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One thread changes a table without pause while another looks up entries that are in it all the
 * time, with the very code of bpf/lookup_key.h. Two engines: the real one, and one of the same source
 * that does things in a wrong order, by which a test shows that it can fail.
 */
#ifndef XDP_CUCKOO_CHURN_H
#define XDP_CUCKOO_CHURN_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "bench/random.h"
#include "table/table.h"
#include "table/publish_order.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* ---- the reader: its maps are the table under test ---- */

#define XDP_CUCKOO_MAPS_H

static struct abi_options xc_options;
static struct table_memory churn_maps;
static __u64 churn_elements; /* of the map of buckets */

static inline const __u16 *maps_prefixes(void)
{
	return semisort_prefixes();
}

static inline const void *maps_bucket(__u32 element)
{
	const size_t bytes = xc_options.format == BUCKET_32 ? 16 : 8;

	return element < churn_elements ? (const char *)churn_maps.bucket + element * bytes : NULL;
}

static inline const __u64 *maps_record(__u32 slot)
{
	return &churn_maps.record[slot];
}

static __u32 churn_tick; /* the reader's clock */

static inline void maps_touch_count(__u32 slot)
{
	(void)slot;
}

static inline __u32 maps_tick(void)
{
	return __atomic_load_n(&churn_tick, __ATOMIC_RELAXED);
}

static inline void maps_count(__u32 number, __u64 times)
{
	(void)number, (void)times;
}

#include "lookup_key.h"

/* ---- the wrong engine ---- */

static enum churn_fault {
	CHURN_OVERWRITE_FIRST, /* an entry is gone before its copy is there */
	CHURN_RECORD_LAST,     /* the record follows when the source is gone */
} churn_fault;

/* As long as it takes a reader to look. */
static inline void churn_dawdle(void)
{
	for (volatile int i = 0; i < 50; i++)
		;
}

FLOW_INLINE void churn_move_wrong(struct table *table, struct bucket_layout layout, struct table_place from,
				  struct table_place to)
{
	const __u32 fingerprint = table_load(table, layout, from);
	const __u64 record = layout.has_records ? *table_record(table, layout, from) : 0;

	if (churn_fault == CHURN_OVERWRITE_FIRST) {
		table_store(table, layout, from, 0);
		table_announce(table);
		table_publish(table, layout, to, fingerprint, record);
	} else {
		table_store(table, layout, to, fingerprint);
		table_announce(table);
		table_store(table, layout, from, 0);
		churn_dawdle();
		__atomic_store_n(table_record(table, layout, to), record, __ATOMIC_RELEASE);
	}
	table->moves++;
}

#define table_open wrong_open
#define table_close wrong_close
#define table_insert wrong_insert
#define table_set_end wrong_set_end
#define table_reset_counts wrong_reset_counts
#define table_delete wrong_delete
#define table_find wrong_find
#define table_address wrong_address
#define table_address_slots wrong_address_slots_for
#define table_count wrong_count
#define table_slots wrong_slots
#define table_slots_of wrong_slots_of
#define table_slots_for wrong_slots_for
#define table_geometry wrong_geometry
#define table_bucket_bytes wrong_bucket_bytes
#define table_false_positive_rate wrong_false_positive_rate
#define table_move churn_move_wrong
#include "table/table.c"
#undef table_open
#undef table_close
#undef table_insert
#undef table_set_end
#undef table_reset_counts
#undef table_delete
#undef table_find
#undef table_address
#undef table_address_slots
#undef table_count
#undef table_slots
#undef table_slots_of
#undef table_slots_for
#undef table_geometry
#undef table_bucket_bytes
#undef table_false_positive_rate
#undef table_move

#pragma GCC diagnostic pop

struct churn_engine {
	const char *name;
	enum churn_fault fault;
	int (*insert)(struct table *table, const struct hash_value *key, __u32 end);
	int (*remove)(struct table *table, const struct hash_value *key);
	void (*move)(struct table *table, struct table_place from, struct table_place to);
};

static inline void churn_move_by_right(struct table *table, struct table_place from, struct table_place to)
{
	CORE_CALL(table_move, table, from, to);
}

static inline void churn_move_by_wrong(struct table *table, struct table_place from, struct table_place to)
{
	CORE_CALL(churn_move_wrong, table, from, to);
}

static const struct churn_engine churn_right = { "copy, announce, overwrite", 0, table_insert, table_delete,
						 churn_move_by_right };
static const struct churn_engine churn_wrong = { "overwrite, announce, copy", CHURN_OVERWRITE_FIRST, wrong_insert,
						 wrong_delete, churn_move_by_wrong };

/* ---- keys and memory ---- */

/* Every kind of table there is. */
static const struct table_kind {
	const char *name;
	struct abi_options options;
} table_kinds[] = {
	{ "16 bits", { .format = BUCKET_16 } },
	{ "16 bits, exact", { .format = BUCKET_16, .is_exact = 1 } },
	{ "16 bits, exact, counting", { .format = BUCKET_16, .is_exact = 1, .has_counts = 1 } },
	{ "32 bits", { .format = BUCKET_32 } },
	{ "8 bits", { .format = BUCKET_8 } },
	{ "17 bits", { .format = BUCKET_17 } },
};

#define TABLE_KINDS (sizeof(table_kinds) / sizeof(table_kinds[0]))
#define KIND_COMPACT (&table_kinds[0])
#define KIND_EXACT (&table_kinds[2])

/* Independent, uniform, and the same each time. */
static inline __u64 churn_hash(__u64 seed, __u64 number)
{
	uint64_t state = seed;

	state = random_next(&state) + number * RANDOM_STEP;
	return random_next(&state);
}

/* What a reader has the tag of a hash from: a key of that one word. */
static inline struct hash_input churn_input(const __u64 word[FLOW_KEY_WORDS_IPV4])
{
	static const struct hash_secret secret = {
		.factor = { { [HASH_LANE_TAG] = { 0x243f6a8885a308d3, 0x13198a2e03707345 } } },
	};
	static const __u64 mask[FLOW_KEY_WORDS_IPV4] = { ~0ULL };

	return (struct hash_input){ &secret, word, mask, 0, FLOW_IPV4 };
}

static inline struct hash_value churn_key(__u64 hash)
{
	const __u64 word[FLOW_KEY_WORDS_IPV4] = { hash };
	const struct hash_input input = churn_input(word);

	return (struct hash_value){ hash, hash_tag(&input, hash) };
}

/* The look-up of the packet path. */
static inline struct lookup_answer churn_lookup(const struct abi_table *table, __u64 hash)
{
	const __u64 word[FLOW_KEY_WORDS_IPV4] = { hash };
	const struct hash_input input = churn_input(word);

	return lookup_key(table, hash, &input);
}

/* A hash that has this bucket for its first, and this fingerprint. */
static inline __u64 churn_hash_at(const struct table *table, __u32 bucket, __u32 fingerprint)
{
	const __u64 buckets = table->geometry.buckets;
	const __u64 low = (((__u64)bucket << 32) + buckets - 1) / buckets;

	return (__u64)fingerprint << (64 - bucket_layout(table->format).fingerprint_bits) | low;
}

static inline struct bucket_pair churn_pair(const struct table *table, __u64 hash)
{
	return bucket_pair(hash, table->geometry, bucket_layout(table->format));
}

/* An equal entry that prefers the other bucket. */
static inline __u64 churn_twin(const struct table *table, __u64 hash)
{
	const struct bucket_pair pair = churn_pair(table, hash);

	return churn_hash_at(table, pair.second, pair.fingerprint);
}

/* All that a table may need, zeroed, but for its sequence. */
static inline void churn_free(struct table_memory *memory)
{
	free(memory->bucket);
	free(memory->record);
	free(memory->counter);
	*memory = (struct table_memory){};
}

static inline int churn_allocate(struct table_memory *memory, struct abi_options options,
				 struct bucket_geometry geometry)
{
	const __u64 slots = table_slots_of(geometry), bucket_bytes = table_bucket_bytes(options.format, geometry);

	memory->bucket = aligned_alloc(64, (bucket_bytes + 63) & -64ULL);
	memory->record = options.is_exact ? aligned_alloc(64, slots * sizeof(*memory->record)) : NULL;
	memory->counter = options.has_counts ? aligned_alloc(64, slots * sizeof(*memory->counter)) : NULL;
	if (!memory->bucket || (options.is_exact && !memory->record) || (options.has_counts && !memory->counter)) {
		churn_free(memory);
		return -ENOMEM;
	}
	memset(memory->bucket, 0, bucket_bytes);
	if (memory->record)
		memset(memory->record, 0, slots * sizeof(*memory->record));
	if (memory->counter)
		memset(memory->counter, 0, slots * sizeof(*memory->counter));
	return 0;
}

/* ---- a table in which the first `residents` of `count` keys stay, the rest comes and goes ---- */

struct churn_result {
	__u64 lookups, misses, unsettled, moves;
};

struct churn {
	struct abi_config config __attribute__((aligned(64))); /* sequence: a line of its own */
	const struct churn_engine *engine;
	struct table table;
	struct table_memory memory;
	__u64 *hash;
	size_t residents, count;
	__u64 seed, next; /* number of the next hash that never was */
	__u64 lost;       /* entries that a delete did not find */
	void (*change)(struct churn *churn);
	__u64 lookups, faults_max;
	struct churn_result result;
	bool is_stopping;
};

static inline void churn_close(struct churn *churn)
{
	table_close(&churn->table);
	churn_free(&churn->memory);
	free(churn->hash);
}

static inline int churn_insert(struct churn *churn, __u64 hash)
{
	const struct hash_value key = churn_key(hash);

	return churn->engine->insert(&churn->table, &key, 0);
}

static inline int churn_remove(struct churn *churn, __u64 hash)
{
	const struct hash_value key = churn_key(hash);

	return churn->engine->remove(&churn->table, &key);
}

static inline void churn_insert_new(struct churn *churn, size_t at)
{
	do
		churn->hash[at] = churn_hash(churn->seed, churn->next++);
	while (churn_insert(churn, churn->hash[at]));
}

static inline int churn_open_table(struct churn *churn, struct abi_options options, __u64 slots)
{
	const struct bucket_geometry geometry = table_geometry(slots);
	int error = churn_allocate(&churn->memory, options, geometry);

	if (error)
		return error;
	churn->memory.sequence = &churn->config.table[0].sequence;
	churn->config.table[0].geometry = geometry;
	churn->config.options = options;
	return table_open(&churn->table, options.format, geometry, &churn->memory);
}

/* Fills a table of `slots` slots with `count` entries. Returns 0 or -errno. */
static inline int churn_open(struct churn *churn, const struct churn_engine *engine, struct abi_options options,
			     __u64 slots, size_t residents, size_t count, __u64 seed)
{
	int error;

	*churn = (struct churn){ .engine = engine, .residents = residents, .count = count, .seed = seed };
	churn_fault = engine->fault;
	churn->hash = calloc(count, sizeof(*churn->hash));
	error = churn->hash ? churn_open_table(churn, options, slots) : -ENOMEM;
	if (error) {
		churn_close(churn);
		return error;
	}
	for (size_t i = 0; i < count; i++)
		churn_insert_new(churn, i);
	for (size_t i = 0; i < residents; i++) {
		const struct hash_value key = churn_key(churn->hash[i]);

		churn->lost += !table_find(&churn->table, &key, NULL);
	}
	return 0;
}

/* A change: one entry that is not a resident goes, another comes. */
static inline void churn_replace(struct churn *churn)
{
	size_t at = churn->residents + churn->next % (churn->count - churn->residents);

	if (churn_remove(churn, churn->hash[at]))
		churn->lost++;
	churn_insert_new(churn, at);
}

/* A change: the only entry of the table moves to its other bucket and back. */
static inline void churn_bounce(struct churn *churn)
{
	const struct bucket_pair pair = churn_pair(&churn->table, churn->hash[0]);
	/* Where an entry stands that is alone in its bucket, and where a free slot is. */
	const unsigned int filled = churn->table.format == BUCKET_17 ? BUCKET_SLOTS - 1 : 0;

	churn->engine->move(&churn->table, (struct table_place){ pair.first, filled },
			    (struct table_place){ pair.second, 0 });
	churn->engine->move(&churn->table, (struct table_place){ pair.second, filled },
			    (struct table_place){ pair.first, 0 });
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

	for (size_t i = 0; result.lookups < churn->lookups && result.misses < churn->faults_max; i++) {
		struct lookup_answer answer;

		i = i < churn->residents ? i : 0;
		answer = churn_lookup(&churn->config.table[0], churn->hash[i]);
		result.lookups++;
		result.misses += answer.result == LOOKUP_MISS;
		result.unsettled += answer.result == LOOKUP_UNSETTLED;
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

	if (pthread_attr_init(&attributes) || pthread_attr_setaffinity_np(&attributes, sizeof(one), &one) ||
	    pthread_create(&thread, &attributes, run, churn))
		abort();
	pthread_attr_destroy(&attributes);
	return thread;
}

/* Makes the table the one that readers look at. */
static inline void churn_show(const struct churn *churn)
{
	xc_options = churn->config.options;
	churn_maps = churn->memory;
	churn_elements = churn->config.table[0].geometry.buckets / (xc_options.format == BUCKET_8 ? 2 : 1);
}

/*
 * Looks residents up, `lookups` times or until `faults_max` were missed,
 * while `change` goes on.
 */
static inline struct churn_result churn_run(struct churn *churn, void (*change)(struct churn *churn), __u64 lookups,
					    __u64 faults_max)
{
	__u64 moves = churn->table.moves;
	pthread_t reader, writer;

	churn_show(churn);
	churn->change = change;
	churn->lookups = lookups;
	churn->faults_max = faults_max;
	churn->is_stopping = false;
	writer = churn_start(churn, churn_write, 0);
	reader = churn_start(churn, churn_read, 1);
	pthread_join(reader, NULL);
	__atomic_store_n(&churn->is_stopping, true, __ATOMIC_RELAXED);
	pthread_join(writer, NULL);
	churn->result.moves = churn->table.moves - moves;
	return churn->result;
}

/* Makes the table hold exactly these entries, all with the turn 0. */
static inline int table_reconcile(struct table *table, struct table_entry *entries, size_t count,
				  struct table_difference *difference)
{
	struct table_claims claims;
	int error;

	*difference = (struct table_difference){};
	error = table_claim(table, entries, count, 0, &claims, &difference->retimed);
	if (!error) {
		difference->removed = claims.others;
		difference->kept = count - claims.missing;
		table_remove_others(table, &claims);
		error = table_add_missing(table, entries, count, 0, difference);
	}
	table_claims_close(&claims);
	return error;
}

#endif
