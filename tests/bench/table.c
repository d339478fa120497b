// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The table engine alone: speed of each operation, what an insert costs at high load, how full a
 * table gets, and what readers miss while it works: `table [LOOKUPS]`, 10^9 of each scenario.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "churn.h"

#define RUNS 5
#define CHURN_LOOKUPS 1000000000
#define CHURN_SLOTS_LOG2 10
#define HIGH_LOAD_PERCENT 94

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double value[RUNS])
{
	qsort(value, RUNS, sizeof(value[0]), compare);
	return value[RUNS / 2];
}

static void *allocate(size_t bytes)
{
	void *memory = malloc(bytes);

	if (!memory) {
		perror("malloc");
		exit(1);
	}
	/* Touched once, so that no page fault is measured. */
	return memset(memory, 0, bytes);
}

static void open_table(struct table *table, unsigned int slots_log2, __u64 *sequence)
{
	__u64 buckets = (1ULL << slots_log2) / BUCKET_SLOTS;

	if (table_open(table, allocate(buckets * sizeof(__u64)), buckets, sequence)) {
		fprintf(stderr, "table_open: 2^%u slots\n", slots_log2);
		exit(1);
	}
}

static void close_table(struct table *table)
{
	free(table->bucket);
	table_close(table);
}

static void make_hashes(__u64 *hash, size_t count, __u64 seed)
{
	for (size_t i = 0; i < count; i++)
		hash[i] = churn_hash(seed, i);
}

enum operation { INSERT, HIT, MISS, DELETE, FILL, EQUAL, OPERATIONS };

static const char *const operation_names[OPERATIONS] = {
	"insert, 0 to 95 %",	    "look-up, present", "look-up, absent", "delete",
	"reconcile, empty to 95 %", "reconcile, equal",
};

static size_t apply(struct table *table, enum operation operation, __u64 *hash, size_t count)
{
	struct table_difference difference;
	size_t done = 0;

	switch (operation) {
	case INSERT:
		for (size_t i = 0; i < count; i++)
			done += !table_insert(table, hash[i]);
		return done;
	case HIT:
	case MISS:
		for (size_t i = 0; i < count; i++)
			done += table_contains(table, hash[i]);
		return done;
	case DELETE:
		for (size_t i = 0; i < count; i++)
			done += !table_delete(table, hash[i]);
		return done;
	default:
		return table_reconcile(table, hash, count, &difference) ? 0 : count;
	}
}

static void bench_operations(unsigned int slots_log2)
{
	const size_t count = (1ULL << slots_log2) * TABLE_LOAD_PERCENT / 100;
	__u64 *hash = allocate(count * sizeof(*hash)), sequence = 0;
	double taken_s[OPERATIONS][RUNS];
	struct table table;

	for (unsigned int run = 0; run < RUNS; run++) {
		open_table(&table, slots_log2, &sequence);
		for (enum operation operation = 0; operation < OPERATIONS; operation++) {
			double start_s;
			size_t done;

			make_hashes(hash, count, operation == MISS ? ~0ULL : run);
			start_s = seconds();
			done = apply(&table, operation, hash, count);
			taken_s[operation][run] = seconds() - start_s;
			if (operation == MISS ? done > count / 1000 : done != count) {
				fprintf(stderr, "%s: %zu of %zu\n", operation_names[operation],
					done, count);
				exit(1);
			}
		}
		close_table(&table);
	}
	for (enum operation operation = 0; operation < OPERATIONS; operation++)
		printf("2^%-2u slots  %-26s %7.1f M/s\n", slots_log2, operation_names[operation],
		       count / median(taken_s[operation]) * 1e-6);
	free(hash);
}

/* What inserts cost between 94 and 95 %, and where the first one fails. */
static void bench_load(unsigned int slots_log2)
{
	const size_t slots = 1ULL << slots_log2, from = slots * HIGH_LOAD_PERCENT / 100,
		     to = slots * TABLE_LOAD_PERCENT / 100;
	double full[RUNS], moves[RUNS], nodes[RUNS], longest[RUNS], longest_full[RUNS];

	for (unsigned int run = 0; run < RUNS; run++) {
		__u64 moves_before = 0, nodes_queued = 0, sequence = 0;
		struct table table;
		size_t i = 0;

		open_table(&table, slots_log2, &sequence);
		for (; i < to; i++) {
			if (i == from)
				moves_before = table.moves;
			table.search->count = 0;
			if (table_insert(&table, churn_hash(run, i)))
				break;
			nodes_queued += i >= from ? table.search->count : 0;
		}
		moves[run] = (double)(table.moves - moves_before) / (to - from);
		nodes[run] = (double)nodes_queued / (to - from);
		longest[run] = table.longest_path;
		while (!table_insert(&table, churn_hash(run, i)))
			i++;
		full[run] = 100. * i / slots;
		longest_full[run] = table.longest_path;
		close_table(&table);
	}
	printf("2^%-2u slots  at 94-95 %%: %.2f moves, %.1f buckets queued an insert, longest path "
	       "%.0f; first failure at %.1f %%, longest path %.0f\n",
	       slots_log2, median(moves), median(nodes), median(longest), median(full),
	       median(longest_full));
}

static void bench_readers(const struct churn_engine *engine, void (*change)(struct churn *churn),
			  size_t count, __u64 lookups)
{
	struct churn_result result;
	struct churn churn;
	double taken_s;

	if (churn_open(&churn, engine, CHURN_SLOTS_LOG2, (count + 1) / 2, count, 1)) {
		fprintf(stderr, "churn_open: 2^%u slots\n", CHURN_SLOTS_LOG2);
		exit(1);
	}
	taken_s = -seconds();
	result = churn_run(&churn, change, lookups, ~0ULL);
	taken_s += seconds();
	printf("%s, %s: %.3g look-ups, %llu missed, %llu unsettled (%.1f M/s, %.1f M moves/s)\n",
	       change == churn_bounce ? "one entry bounced" : "churn at 95 %", engine->name,
	       (double)result.lookups, result.misses, result.unsettled,
	       result.lookups / taken_s * 1e-6, result.moves / taken_s * 1e-6);
	churn_close(&churn);
}

int main(int argc, char **argv)
{
	const __u64 lookups = argc > 1 ? strtoull(argv[1], NULL, 0) : CHURN_LOOKUPS;
	const struct churn_engine *const engines[] = { &churn_right, &churn_wrong };

	bench_operations(20);
	bench_operations(24);
	for (unsigned int slots_log2 = 10; slots_log2 <= 24; slots_log2 += 2)
		bench_load(slots_log2);
	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
		bench_readers(engines[i], churn_replace,
			      (1ULL << CHURN_SLOTS_LOG2) * TABLE_LOAD_PERCENT / 100, lookups);
		bench_readers(engines[i], churn_bounce, 1, lookups);
	}
	return 0;
}
