/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How full the engine's tables get, by fingerprint bits and by slots of a bucket, and what an item costs
 * for a false-positive rate: the paper's sections 4 and 5.
 */
#ifndef PAPER_SPACE_H
#define PAPER_SPACE_H

#include "paper_filters.h"

#define SPACE_RUNS_MAX 10
#define SPACE_SIZES_MAX 4
#define LN_2 0.6931471805599453
#define SPACE_BLOOM_BITS_MIN 4
#define SPACE_BLOOM_BITS_MAX 20

/* The layouts looked at: name, slots, fingerprint bits, lane bits. */
#define SPACE_LAYOUTS(X) \
	X(space_4_2, 4, 2, 8) \
	X(space_4_4, 4, 4, 8) \
	X(space_4_6, 4, 6, 8) \
	X(space_4_8, 4, 8, 8) \
	X(space_4_10, 4, 10, 16) \
	X(space_4_12, 4, 12, 16) \
	X(space_4_14, 4, 14, 16) \
	X(space_4_16, 4, 16, 16) \
	X(space_1_16, 1, 16, 16) \
	X(space_2_8, 2, 8, 8) \
	X(space_2_12, 2, 12, 16) \
	X(space_2_16, 2, 16, 16) \
	X(space_8_8, 8, 8, 8) \
	X(space_8_12, 8, 12, 16) \
	X(space_8_16, 8, 16, 16) \
	X(space_semisorted_7, 4, 7, 0) \
	X(space_semisorted_9, 4, 9, 0) \
	X(space_semisorted_11, 4, 11, 0) \
	X(space_semisorted_13, 4, 13, 0) \
	X(space_semisorted_15, 4, 15, 0) \
	X(space_semisorted_17, 4, 17, 0)

SPACE_LAYOUTS(FILTER_CUCKOO)

#define SPACE_KIND(name, ...) \
	{ #name, FILTER_BATCHES_OF(name), cuckoo_open, cuckoo_close, CUCKOO_LAYOUT(__VA_ARGS__), {} },
static const struct filter_kind space_kinds[] = { SPACE_LAYOUTS(SPACE_KIND) };

#define SPACE_KINDS (sizeof(space_kinds) / sizeof(space_kinds[0]))

/* The paper's load factors in percent: of 4 slots by fingerprint bits, and by slots (section 5.1). */
static const double space_paper_bits[] = {
	[2] = 17.5, [4] = 67.7, [6] = 95.4, [8] = 95.6, [12] = 95.8, [16] = 95.8,
};
static const double space_paper_slots[] = { [1] = 50, [2] = 84, [4] = 95, [8] = 98 };

struct space_scale {
	unsigned int bits_runs, bits_buckets_log2[SPACE_SIZES_MAX]; /* load factor by bits; 0: end */
	unsigned int runs, slots_log2;                              /* of all else */
	size_t absent; /* keys looked up for a false-positive rate, each run */
};

struct space {
	double load_percent[SPACE_RUNS_MAX];
	size_t found; /* of the absent keys, in all runs */
};

/* Inserts until the first failure; returns how many went in, all of which are found. */
static size_t space_fill(const struct filter_kind *kind, struct raw_filter *filter, __u64 first)
{
	static __u64 key[KEYS_BATCH];
	size_t items = 0, done, count;

	do {
		keys_fill(key, KEYS_BATCH, first + items);
		done = kind->batches.insert(filter, key, KEYS_BATCH);
		items += done;
	} while (done == KEYS_BATCH);
	for (size_t i = 0; i < items; i += count) {
		count = items - i < KEYS_BATCH ? items - i : KEYS_BATCH;
		keys_fill(key, count, first + i);
		if (kind->batches.contains(filter, key, count) != count)
			die("%s: an item is missing", kind->name);
	}
	return items;
}

static struct space space_measure(const struct filter_kind *kind, unsigned int slots_log2, unsigned int runs,
				  size_t absent)
{
	const double slots = 1ULL << slots_log2;
	const size_t bytes = slots / kind->layout.slots * bucket_bits(kind->layout) / 8;
	struct space space = {};

	for (unsigned int run = 0; run < runs; run++) {
		struct raw_filter filter;

		raw_filter_open(&filter, kind, bytes);
		space.load_percent[run] = 100 * space_fill(kind, &filter, KEY_SET(run)) / slots;
		space.found += filter_count_absent(&filter, &kind->batches, absent);
		kind->close(&filter);
	}
	qsort(space.load_percent, runs, sizeof(double), compare);
	return space;
}

static double mean(const double *value, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += value[i];
	return sum / count;
}

/* ---- load factors ---- */

/* Three columns: mean, least, greatest. */
static void space_grid_loads(struct grid *grid, size_t column, const struct space *space, unsigned int runs)
{
	double *y = grid->y[grid->rows] + column;

	y[0] = mean(space->load_percent, runs);
	y[1] = space->load_percent[0];
	y[2] = space->load_percent[runs - 1];
}

static void space_print_by_bits(const struct space_scale *scale)
{
	static struct grid grid = {
		.name = "load_by_bits",
		.title = "Load factor at the first failed insert, percent, 4 slots a bucket, by "
			 "fingerprint bits and buckets: mean, least, greatest",
		.axis = "bits",
		.columns = 1,
		.column = { "paper" },
	};

	for (const unsigned int *log2 = scale->bits_buckets_log2; *log2; log2++) {
		snprintf(grid.column[grid.columns++], sizeof(grid.column[0]), "2^%u", *log2);
		strcpy(grid.column[grid.columns++], "least");
		strcpy(grid.column[grid.columns++], "greatest");
	}
	for (size_t i = 0; i < SPACE_KINDS; i++) {
		const struct bucket_layout layout = space_kinds[i].layout;

		if (layout.slots != BUCKET_SLOTS || !layout.lane_bits)
			continue;
		grid.x[grid.rows] = layout.fingerprint_bits;
		grid.y[grid.rows][0] = space_paper_bits[layout.fingerprint_bits] ?: NAN;
		for (size_t at = 0; scale->bits_buckets_log2[at]; at++) {
			const unsigned int slots_log2 = scale->bits_buckets_log2[at] + 2;
			const struct space space = space_measure(&space_kinds[i], slots_log2, scale->bits_runs, 0);

			space_grid_loads(&grid, 1 + 3 * at, &space, scale->bits_runs);
		}
		grid.rows++;
	}
	grid_print(&grid, 1);
}

static void space_print_by_slots(const struct space_scale *scale, const struct space *space)
{
	static struct grid grid = {
		.name = "load_by_slots",
		.title = "Load factor at the first failed insert, percent, 16-bit fingerprints, by "
			 "slots of a bucket: mean, least, greatest",
		.axis = "slots",
		.columns = 4,
		.column = { "paper", "ours", "least", "greatest" },
	};

	for (unsigned int slots = 1; slots <= 8; slots *= 2) {
		for (size_t i = 0; i < SPACE_KINDS; i++)
			if (space_kinds[i].layout.slots == slots && space_kinds[i].layout.fingerprint_bits == 16)
				space_grid_loads(&grid, 1, &space[i], scale->runs);
		grid.x[grid.rows] = slots;
		grid.y[grid.rows++][0] = space_paper_slots[slots];
	}
	grid_print(&grid, 1);
}

/* ---- bits an item by false-positive rate ---- */

/* Digit by digit; no libm for one logarithm. */
static double log2_of(double x)
{
	double result = 0;

	for (; x < 1; x *= 2)
		result--;
	for (; x >= 2; x /= 2)
		result++;
	for (double digit = 0.5; digit > 1e-9; digit /= 2) {
		x *= x;
		if (x >= 2) {
			x /= 2;
			result += digit;
		}
	}
	return result;
}

/* One row; the last column is what a Bloom filter with the best number of hashes needs. */
static void space_print_rate(FILE *file, unsigned int bits, double load_percent, double bits_per_item, double rate)
{
	printf("%-12u %8.2f %10.2f %12.5f %10.2f\n", bits, load_percent, bits_per_item, 100 * rate,
	       -log2_of(rate) / LN_2);
	fprintf(file, "%g %g\n", 100 * rate, bits_per_item);
}

static void space_start_family(FILE *file, const char *name)
{
	printf("%s\n", name);
	fprintf(file, "%s\"%s\"\n", ftell(file) ? "\n\n" : "", name);
}

static void space_print_cuckoo_rates(FILE *file, const struct space_scale *scale, const struct space *space)
{
	struct bucket_layout last = {};

	for (size_t i = 0; i < SPACE_KINDS; i++) {
		const struct bucket_layout layout = space_kinds[i].layout;
		const double load_percent = mean(space[i].load_percent, scale->runs);
		const double rate = (double)space[i].found / scale->absent / scale->runs;
		char name[32];

		if (layout.slots != last.slots || !layout.lane_bits != !last.lane_bits) {
			snprintf(name, sizeof(name), "%s, %u slots", layout.lane_bits ? "cuckoo" : "semi-sorted",
				 layout.slots);
			space_start_family(file, name);
		}
		last = layout;
		space_print_rate(file, layout.fingerprint_bits, load_percent,
				 (layout.fingerprint_bits - !layout.lane_bits) * 100 / load_percent, rate);
	}
}

static void space_print_bloom_rates(FILE *file, const struct space_scale *scale)
{
	const size_t items = 1ULL << scale->slots_log2;
	static __u64 key[KEYS_BATCH];

	space_start_family(file, "Bloom, best number of hashes");
	for (unsigned int bits = SPACE_BLOOM_BITS_MIN; bits <= SPACE_BLOOM_BITS_MAX; bits += 2) {
		struct raw_filter filter = {};
		size_t found;

		if (bloom_open(&filter.bloom, items * bits, bits * LN_2 + 0.5))
			die("bloom: no memory");
		for (size_t i = 0; i < items; i += KEYS_BATCH) {
			keys_fill(key, KEYS_BATCH, i);
			bloom_insert_all(&filter, key, KEYS_BATCH);
		}
		found = filter_count_absent(&filter, &(struct filter_batches){ .contains = bloom_contains_all },
					    scale->absent * scale->runs);
		space_print_rate(file, bits, 100, bits, (double)found / scale->absent / scale->runs);
		bloom_close(&filter.bloom);
	}
}

static void space_print(const struct space_scale *scale)
{
	static struct space space[SPACE_KINDS];
	FILE *file = output_file("bits_by_rate");

	space_print_by_bits(scale);
	for (size_t i = 0; i < SPACE_KINDS; i++)
		space[i] = space_measure(&space_kinds[i], scale->slots_log2, scale->runs, scale->absent);
	space_print_by_slots(scale, space);
	printf("Bits an item, packed, of a table filled to its first failure, and false positives\n"
	       "%-12s %8s %10s %12s %10s\n",
	       "fingerprint", "load %", "bits/item", "rate %", "Bloom's");
	space_print_cuckoo_rates(file, scale, space);
	space_print_bloom_rates(file, scale);
	putchar('\n');
	output_close(file);
}

#endif
