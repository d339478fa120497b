// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The table engine alone: speed of each operation in each kind of table, the bulk build beside a
 * plain random walk, what an insert costs at high load, how full tables of all shapes get, and what
 * readers miss while it works: `table [LOOKUPS]`, 3 * 10^8 of each scenario.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/timing.h"
#include "unit/churn.h"

#define RUNS 5
#define RUNS_LARGE 3 /* from 2^24 slots on; of the hugest table one, which takes long enough */
#define CHURN_LOOKUPS 300000000
#define CHURN_SLOTS_LOG2 10
#define HIGH_LOAD_PERCENT 94
#define WALK_KICKS 500
#define HUGE_SLOTS_LOG2 27
#define HUGE_MEMORY_BYTES (4ULL << 30)

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static unsigned int runs_of(__u64 slots)
{
	if (slots < 1 << 24)
		return RUNS;
	return slots < 1 << HUGE_SLOTS_LOG2 ? RUNS_LARGE : 1;
}

/* ---- tables and keys ---- */

struct bench_table {
	struct table table;
	struct table_memory memory;
	__u64 sequence;
};

static void open_table(struct bench_table *bench, const struct table_kind *kind, __u64 slots)
{
	const struct bucket_geometry geometry = table_geometry(slots);

	*bench = (struct bench_table){};
	/* All of it is written once, so that no page fault is measured. */
	if (churn_allocate(&bench->memory, kind->options, geometry))
		fail("memory for a table");
	bench->memory.sequence = &bench->sequence;
	errno = -table_open(&bench->table, kind->options.format, geometry, &bench->memory);
	if (errno)
		fail("table_open");
}

static void close_table(struct bench_table *bench)
{
	table_close(&bench->table);
	churn_free(&bench->memory);
}

static struct table_entry *allocate_entries(size_t count)
{
	struct table_entry *entry = calloc(count, sizeof(*entry));

	if (!entry)
		fail("memory for entries");
	return entry;
}

static void make_entries(struct table_entry *entry, size_t count, __u64 seed)
{
	for (size_t i = 0; i < count; i++)
		entry[i].key = churn_key(churn_hash(seed, i));
}

/* ---- each operation ---- */

enum operation { INSERT, HIT, MISS, DELETE, FILL, EQUAL, BUILD, OPERATIONS };

static const char *const operation_names[OPERATIONS] = {
	"insert, 0 to 95 %",        "look-up, present", "look-up, absent",  "delete",
	"reconcile, empty to 95 %", "reconcile, equal", "build, 0 to 95 %",
};

static size_t session(struct table *table, enum operation operation, struct table_entry *entry, size_t count)
{
	struct table_difference difference;
	size_t done = 0;

	switch (operation) {
	case INSERT:
		for (size_t i = 0; i < count; i++)
			done += !table_insert(table, &entry[i].key, entry[i].end);
		return done;
	case HIT:
	case MISS:
		for (size_t i = 0; i < count; i++)
			done += table_find(table, &entry[i].key, NULL);
		return done;
	case DELETE:
		for (size_t i = 0; i < count; i++)
			done += !table_delete(table, &entry[i].key);
		return done;
	case BUILD:
		return table_build(table, entry, count) ? 0 : count;
	default:
		return table_reconcile(table, entry, count, &difference) ? 0 : count;
	}
}

/* Times one operation, and checks what it did. */
static double time_operation(struct table *table, enum operation operation, struct table_entry *entry, size_t count)
{
	const double absent_max = 2 * count * table_false_positive_rate(table->format, 1) + 10;
	const double start_s = seconds();
	const size_t done = session(table, operation, entry, count);
	const double taken_s = seconds() - start_s;

	if (operation == MISS ? done > absent_max : done != count) {
		fprintf(stderr, "%s: %zu of %zu\n", operation_names[operation], done, count);
		exit(1);
	}
	return taken_s;
}

static void bench_operations(const struct table_kind *kind, unsigned int slots_log2)
{
	const __u64 slots = 1ULL << slots_log2;
	const size_t count = slots * TABLE_LOAD_PERCENT / 100;
	struct table_entry *entry = allocate_entries(count);
	double taken_s[OPERATIONS][RUNS];

	for (unsigned int run = 0; run < runs_of(slots); run++) {
		struct bench_table bench;

		open_table(&bench, kind, slots);
		for (enum operation operation = 0; operation < OPERATIONS; operation++) {
			if (operation == BUILD) {
				close_table(&bench);
				open_table(&bench, kind, slots);
			}
			make_entries(entry, count, operation == MISS ? ~0ULL : run);
			taken_s[operation][run] = time_operation(&bench.table, operation, entry, count);
		}
		close_table(&bench);
	}
	for (enum operation operation = 0; operation < OPERATIONS; operation++)
		printf("2^%-2u slots  %-24s  %-26s %7.1f M/s\n", slots_log2, kind->name, operation_names[operation],
		       count / median(taken_s[operation], runs_of(slots)) * 1e-6);
	free(entry);
}

/* ---- the build beside a random walk ---- */

/*
 * How the authors of the cuckoo filter insert (github.com/efficient/cuckoofilter, AddImpl): a
 * victim drawn at random gives way, and looks for its other bucket. Over the same buckets, from the
 * same hash.
 */
static int walk_insert(struct table *table, __u64 hash, __u64 *random)
{
	const struct bucket_layout layout = bucket_layout(BUCKET_16);
	struct bucket_pair pair = bucket_pair(hash, table->geometry, layout);
	struct table_place place;

	for (unsigned int kicks = 0; kicks < WALK_KICKS; kicks++) {
		if (core_find_free(table, layout, pair.first, &place)) {
			table_store(table, layout, place, pair.fingerprint);
			return 0;
		}
		if (kicks) {
			__u32 victim;

			*random = *random * 6364136223846793005ULL + 1442695040888963407ULL;
			place.slot = *random >> 62;
			victim = table_load(table, layout, place);
			table_store(table, layout, place, pair.fingerprint);
			pair.fingerprint = victim;
		}
		pair.first ^= bucket_step(pair.fingerprint, table->geometry.step_shift);
	}
	return -ENOSPC;
}

static double time_walk(struct table *table, const struct table_entry *entry, size_t count)
{
	const double start_s = seconds();
	__u64 random = 1, failed = 0;

	for (size_t i = 0; i < count; i++)
		failed += !!walk_insert(table, entry[i].key.hash, &random);
	if (failed > count / 1000) {
		fprintf(stderr, "random walk: %llu of %zu failed\n", failed, count);
		exit(1);
	}
	return seconds() - start_s;
}

/* By turns, so that whatever slows the machine slows both. */
static void bench_build(unsigned int slots_log2)
{
	const __u64 slots = 1ULL << slots_log2;
	const unsigned int runs = runs_of(slots);
	const size_t count = slots * TABLE_LOAD_PERCENT / 100;
	struct table_entry *entry = allocate_entries(count);
	double build_s[RUNS] = {}, walk_s[RUNS] = {};

	make_entries(entry, count, 1);
	for (unsigned int run = 0; run < runs; run++) {
		struct bench_table bench;

		open_table(&bench, KIND_COMPACT, slots);
		build_s[run] = time_operation(&bench.table, BUILD, entry, count);
		memset(bench.memory.bucket, 0, table_bucket_bytes(BUCKET_16, bench.table.geometry));
		walk_s[run] = time_walk(&bench.table, entry, count);
		close_table(&bench);
	}
	printf("2^%-2u slots  0 to 95 %%: build %.1f M/s, random walk %.1f M/s\n", slots_log2,
	       count / median(build_s, runs) * 1e-6, count / median(walk_s, runs) * 1e-6);
	free(entry);
}

static void bench_huge_build(void)
{
	const __u64 bytes = (__u64)sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE);

	if (bytes < HUGE_MEMORY_BYTES)
		printf("2^%d slots  not enough memory to measure\n", HUGE_SLOTS_LOG2);
	else
		bench_build(HUGE_SLOTS_LOG2);
}

/* ---- high load ---- */

/* What inserts cost between 94 and 95 %, and where the first one fails. */
static void bench_load(__u64 slots)
{
	const size_t from = slots * HIGH_LOAD_PERCENT / 100, to = slots * TABLE_LOAD_PERCENT / 100;
	double full[RUNS], moves[RUNS], nodes[RUNS], longest[RUNS], longest_full[RUNS];

	for (unsigned int run = 0; run < RUNS; run++) {
		__u64 moves_before = 0, nodes_queued = 0;
		struct bench_table bench;
		struct table *table = &bench.table;
		size_t i = 0;

		open_table(&bench, KIND_COMPACT, slots);
		for (;; i++) {
			const struct hash_value key = churn_key(churn_hash(run, i));

			if (i == from)
				moves_before = table->moves;
			if (i == to) {
				moves[run] = (double)(table->moves - moves_before) / (to - from);
				nodes[run] = (double)nodes_queued / (to - from);
				longest[run] = table->longest_path;
			}
			table->search->count = 0;
			if (table_insert(table, &key, 0))
				break;
			nodes_queued += i >= from ? table->search->count : 0;
		}
		full[run] = 100. * i / slots;
		longest_full[run] = table->longest_path;
		close_table(&bench);
	}
	printf("%8llu slots  at 94-95 %%: %.2f moves, %.1f buckets queued an insert, longest path "
	       "%.0f; first failure at %.1f %%, longest path %.0f\n",
	       slots, median(moves, RUNS), median(nodes, RUNS), median(longest, RUNS), median(full, RUNS),
	       median(longest_full, RUNS));
}

/* ---- readers ---- */

static void bench_readers(const struct churn_engine *engine, const struct table_kind *kind,
			  void (*change)(struct churn *churn), size_t count, __u64 lookups)
{
	struct churn_result result;
	struct churn churn;
	double taken_s;

	errno = -churn_open(&churn, engine, kind->options, 1 << CHURN_SLOTS_LOG2, (count + 1) / 2, count, 1);
	if (errno)
		fail("churn_open");
	taken_s = -seconds();
	result = churn_run(&churn, change, lookups, ~0ULL);
	taken_s += seconds();
	printf("%s, %s, %s: %.3g look-ups, %llu missed, %llu unsettled  (%.1f M/s, %.1f M moves/s)\n",
	       change == churn_bounce ? "one entry bounced" : "churn at 95 %", kind->name, engine->name,
	       (double)result.lookups, result.misses, result.unsettled, result.lookups / taken_s * 1e-6,
	       result.moves / taken_s * 1e-6);
	churn_close(&churn);
}

static void bench_scenarios(const struct churn_engine *engine, const struct table_kind *kind, __u64 lookups)
{
	bench_readers(engine, kind, churn_replace, (1 << CHURN_SLOTS_LOG2) * TABLE_LOAD_PERCENT / 100, lookups);
	bench_readers(engine, kind, churn_bounce, 1, lookups);
}

int main(int argc, char **argv)
{
	static const unsigned int eighths[] = { 9, 11, 15 };
	const __u64 lookups = argc > 1 ? strtoull(argv[1], NULL, 0) : CHURN_LOOKUPS;

	for (size_t k = 0; k < TABLE_KINDS; k++)
		bench_operations(&table_kinds[k], 20);
	bench_operations(KIND_COMPACT, 24);
	bench_operations(KIND_EXACT, 24);
	bench_build(20);
	bench_huge_build();
	for (unsigned int slots_log2 = 10; slots_log2 <= 24; slots_log2 += 2)
		bench_load(1ULL << slots_log2);
	for (size_t i = 0; i < sizeof(eighths) / sizeof(eighths[0]); i++) {
		bench_load((__u64)eighths[i] << 16);
		bench_load((__u64)eighths[i] << 19);
	}
	for (size_t k = 0; k < TABLE_KINDS; k++)
		bench_scenarios(&churn_right, &table_kinds[k], lookups);
	bench_scenarios(&churn_wrong, KIND_COMPACT, lookups);
	return 0;
}
