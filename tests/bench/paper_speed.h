/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How fast each filter is, all in about the same memory: the paper's table 3 and its figures 5 (look-up
 * when full, by the share of present keys), 6 (look-up by occupancy), 7 (insert) and 8 (delete).
 */
#ifndef PAPER_SPEED_H
#define PAPER_SPEED_H

#include "paper_filters.h"

#define SPEED_RUNS_MAX 9
#define SPEED_STOPS 20     /* where an operation's speed is taken: every 5 % of what is full */
#define SPEED_SHARES 5     /* of present keys among those looked up: 0, 25, .. 100 % */
#define SPEED_TABLE_STEP 2 /* every second stop is printed */

FILTER_CUCKOO(cuckoo_12, 4, 12, 16)
FILTER_CUCKOO(cuckoo_16, 4, 16, 16)
FILTER_CUCKOO(semisorted_13, 4, 13, 0)
FILTER_CUCKOO(semisorted_17, 4, 17, 0)

static const struct filter_kind speed_kinds[] = {
	{ "CF-12",
	  FILTER_BATCHES_OF(cuckoo_12),
	  cuckoo_open,
	  cuckoo_close,
	  CUCKOO_LAYOUT(4, 12, 16),
	  { 12.60, 0.19, 5.00 } },
	{ "ssCF-13",
	  FILTER_BATCHES_OF(semisorted_13),
	  cuckoo_open,
	  cuckoo_close,
	  CUCKOO_LAYOUT(4, 13, 0),
	  { 12.58, 0.09, 3.13 } },
	{ "CF-16", FILTER_BATCHES_OF(cuckoo_16), cuckoo_open, cuckoo_close, CUCKOO_LAYOUT(4, 16, 16), {} },
	{ "ssCF-17", FILTER_BATCHES_OF(semisorted_17), cuckoo_open, cuckoo_close, CUCKOO_LAYOUT(4, 17, 0), {} },
	{ "PCF-16", FILTER_BATCHES_OF(perfect), perfect_open, cuckoo_close, PERFECT_LAYOUT, {} },
	{ "BF",
	  { bloom_insert_all, bloom_contains_all, NULL },
	  bloom_kind_open,
	  bloom_kind_close,
	  {},
	  { 13.00, 0.19, 3.91 } },
	{ "BBF",
	  { blocked_bloom_insert_all, blocked_bloom_contains_all, NULL },
	  blocked_bloom_kind_open,
	  blocked_bloom_kind_close,
	  {},
	  { 13.00, 0.43, 7.64 } },
	{ "QF", FILTER_BATCHES_OF(quotient), quotient_kind_open, quotient_kind_close, {}, { 13.33, 0.18, 1.91 } },
	{ "dlCBF", FILTER_BATCHES_OF(dleft), dleft_kind_open, dleft_kind_close, {}, { 15.51, 0.76, 4.78 } },
};

#define SPEED_KINDS (sizeof(speed_kinds) / sizeof(speed_kinds[0]))

struct speed_scale {
	unsigned int runs;
	size_t bytes;   /* of each filter */
	size_t lookups; /* of each stop and share */
	size_t absent;  /* keys looked up for the false-positive rate, each run */
};

/* Million operations a second. */
struct speed {
	double insert[SPEED_STOPS], delete[SPEED_STOPS];
	double lookup[SPEED_STOPS][SPEED_SHARES];
	double build; /* all inserts together */
	double false_positive_percent;
};

/* What is the same in every run. */
struct speed_size {
	double mebibytes, million_items, bits_per_item, packed_bits_per_item;
};

/* One filter under test. */
struct speed_test {
	const struct filter_kind *kind;
	const struct speed_scale *scale;
	struct raw_filter filter;
	__u64 first; /* number of its first key; the others follow */
	__u64 *key;  /* room for the keys of a stop, or of as many look-ups */
};

static size_t speed_stop(const struct speed_test *test, unsigned int stop)
{
	return test->filter.items * stop / SPEED_STOPS;
}

static double mops(size_t count, double start_s)
{
	return count / (seconds() - start_s) * 1e-6;
}

/* Present and absent keys mixed at random, the present ones in random order. */
static void speed_fill_mixed(const struct speed_test *test, size_t present, unsigned int share)
{
	for (size_t i = 0; i < test->scale->lookups; i++) {
		const __u64 random = key_of(~i);
		const bool is_present = random % (SPEED_SHARES - 1) < share;

		test->key[i] = key_of(is_present ? test->first + baseline_reduce(random, present) : KEY_ABSENT + i);
	}
}

static size_t speed_count_present(const struct speed_test *test, unsigned int share)
{
	size_t count = 0;

	for (size_t i = 0; i < test->scale->lookups; i++)
		count += key_of(~i) % (SPEED_SHARES - 1) < share;
	return count;
}

static void speed_look_up(struct speed_test *test, unsigned int stop, struct speed *speed)
{
	const size_t lookups = test->scale->lookups;

	for (unsigned int share = 0; share < SPEED_SHARES; share++) {
		const size_t present = speed_count_present(test, share);
		double start_s;
		size_t found;

		speed_fill_mixed(test, speed_stop(test, stop), share);
		start_s = seconds();
		found = test->kind->batches.contains(&test->filter, test->key, lookups);
		speed->lookup[stop - 1][share] = mops(lookups, start_s);
		if (found < present || found > present + lookups / 50)
			die("%s: %zu found, %zu present", test->kind->name, found, present);
	}
}

/* The operation on the keys between the stop before and this one. */
static double speed_apply(struct speed_test *test, unsigned int stop,
			  size_t (*operation)(struct raw_filter *filter, const __u64 *key, size_t count))
{
	const size_t from = speed_stop(test, stop - 1), count = speed_stop(test, stop) - from;
	size_t done;
	double start_s;

	keys_fill(test->key, count, test->first + from);
	start_s = seconds();
	done = operation(&test->filter, test->key, count);
	if (done != count)
		die("%s: %zu of %zu done up to %u/%u", test->kind->name, done, count, stop, SPEED_STOPS);
	return mops(count, start_s);
}

static void speed_fill(struct speed_test *test, struct speed *speed)
{
	double per_item = 0;

	for (unsigned int stop = 1; stop <= SPEED_STOPS; stop++) {
		speed->insert[stop - 1] = speed_apply(test, stop, test->kind->batches.insert);
		per_item += 1 / speed->insert[stop - 1] / SPEED_STOPS;
		speed_look_up(test, stop, speed);
	}
	speed->build = 1 / per_item;
}

/* Every item is found, whatever its place in the filter's life. */
static void speed_validate(struct speed_test *test)
{
	for (unsigned int stop = 1; stop <= SPEED_STOPS; stop++)
		speed_apply(test, stop, test->kind->batches.contains);
}

/* From full to empty, which it then is. */
static void speed_empty(struct speed_test *test, struct speed *speed)
{
	for (unsigned int stop = SPEED_STOPS; stop; stop--)
		speed->delete[stop - 1] =
			test->kind->batches.delete ? speed_apply(test, stop, test->kind->batches.delete) : NAN;
	if (test->kind->batches.delete &&test->kind->batches.contains(&test->filter, test->key, speed_stop(test, 1)) >
	    speed_stop(test, 1) / 1000)
		die("%s: deleted keys are found", test->kind->name);
}

static struct speed_size speed_size(const struct raw_filter *filter)
{
	return (struct speed_size){
		.mebibytes = filter->bytes / 1048576.,
		.million_items = filter->items * 1e-6,
		.bits_per_item = filter->bytes * 8. / filter->items,
		.packed_bits_per_item = (double)filter->packed_bits / filter->items,
	};
}

static struct speed_size speed_measure(const struct filter_kind *kind, const struct speed_scale *scale,
				       unsigned int run, struct speed *speed)
{
	struct speed_test test = { .kind = kind, .scale = scale, .first = KEY_SET(run) };
	struct speed_size size;
	size_t keys;

	raw_filter_open(&test.filter, kind, scale->bytes);
	keys = test.filter.items / SPEED_STOPS + 1;
	test.key = baseline_allocate((keys > scale->lookups ? keys : scale->lookups) * sizeof(__u64));
	if (!test.key)
		die("no memory for keys");
	speed_fill(&test, speed);
	if (run == 0)
		speed_validate(&test);
	speed->false_positive_percent =
		100. * filter_count_absent(&test.filter, &kind->batches, scale->absent) / scale->absent;
	size = speed_size(&test.filter);
	speed_empty(&test, speed);
	free(test.key);
	kind->close(&test.filter);
	return size;
}

/* A structure of nothing but doubles. */
static struct speed speed_median(const struct speed *run, unsigned int runs)
{
	struct speed result = {};

	for (size_t at = 0; at < sizeof(result) / sizeof(double); at++) {
		double value[SPEED_RUNS_MAX] = {};

		for (unsigned int i = 0; i < runs; i++)
			value[i] = ((const double *)&run[i])[at];
		((double *)&result)[at] = median(value, runs);
	}
	return result;
}

/* ---- what is printed ---- */

/* 0 of the paper: it does not say. */
static void print_beside(double ours, double paper)
{
	printf(" %8.4g", ours);
	if (paper)
		printf(" [%5.2f]", paper);
	else
		printf(" %7s", "");
}

static void speed_print_table(const struct speed *speed, const struct speed_size *size)
{
	FILE *file = output_file("table3");

	printf("Table 3: space and construction; in brackets the paper's (192 MB, Xeon L5640)\n"
	       "%-8s %6s %8s %8s %16s %16s %16s\n",
	       "filter", "MiB", "items M", "bits", "packed bits/item", "false pos. %", "inserts M/s");
	fprintf(file, "filter bits packed rate mops paper_bits paper_rate paper_mops");
	for (size_t i = 0; i < SPEED_KINDS; i++) {
		const struct filter_kind *kind = &speed_kinds[i];

		printf("%-8s %6.1f %8.2f %8.2f", kind->name, size[i].mebibytes, size[i].million_items,
		       size[i].bits_per_item);
		print_beside(size[i].packed_bits_per_item, kind->paper.bits_per_item);
		print_beside(speed[i].false_positive_percent, kind->paper.false_positive_percent);
		print_beside(speed[i].build, kind->paper.construction_mops);
		fprintf(file, "\n%s %g %g %g %g %g %g %g", kind->name, size[i].bits_per_item,
			size[i].packed_bits_per_item, speed[i].false_positive_percent, speed[i].build,
			kind->paper.bits_per_item, kind->paper.false_positive_percent, kind->paper.construction_mops);
		putchar('\n');
	}
	fputc('\n', file);
	putchar('\n');
	output_close(file);
}

/* A column for each filter: doubles of struct speed from `offset` on, each `stride` doubles on. */
static void speed_print_grid(const char *name, const char *title, const char *axis, const struct speed *speed,
			     size_t offset, size_t stride, size_t rows)
{
	struct grid grid = { .name = name, .title = title, .axis = axis, .rows = rows, .columns = SPEED_KINDS };

	for (size_t kind = 0; kind < SPEED_KINDS; kind++) {
		const double *value = (const void *)((const char *)&speed[kind] + offset);

		strcpy(grid.column[kind], speed_kinds[kind].name);
		for (size_t row = 0; row < rows; row++)
			grid.y[row][kind] = value[row * stride];
	}
	for (size_t row = 0; row < rows; row++)
		grid.x[row] = rows == SPEED_STOPS ? 100. * (row + 1) / rows : 100. * row / (rows - 1);
	grid_print(&grid, rows == SPEED_STOPS ? SPEED_TABLE_STEP : 1);
}

static void speed_print_figures(const struct speed *speed)
{
	speed_print_grid("lookup_by_share", "Figure 5: look-ups M/s of full filters, by percent present", "present",
			 speed, offsetof(struct speed, lookup[SPEED_STOPS - 1]), 1, SPEED_SHARES);
	speed_print_grid("lookup_absent", "Figure 6: look-ups M/s by percent of full, all absent", "full", speed,
			 offsetof(struct speed, lookup[0][0]), SPEED_SHARES, SPEED_STOPS);
	speed_print_grid("lookup_mixed", "Figure 6: look-ups M/s by percent of full, half present", "full", speed,
			 offsetof(struct speed, lookup[0][SPEED_SHARES / 2]), SPEED_SHARES, SPEED_STOPS);
	speed_print_grid("lookup_present", "Figure 6: look-ups M/s by percent of full, all present", "full", speed,
			 offsetof(struct speed, lookup[0][SPEED_SHARES - 1]), SPEED_SHARES, SPEED_STOPS);
	speed_print_grid("insert", "Figure 7: inserts M/s by percent of full", "full", speed,
			 offsetof(struct speed, insert), 1, SPEED_STOPS);
	speed_print_grid("delete", "Figure 8: deletes M/s by percent of full", "full", speed,
			 offsetof(struct speed, delete), 1, SPEED_STOPS);
}

/* The filters take turns, so that what slows the machine for a while slows all. */
static void speed_print(const struct speed_scale *scale)
{
	static struct speed run_speed[SPEED_KINDS][SPEED_RUNS_MAX];
	struct speed_size size[SPEED_KINDS] = {};
	struct speed speed[SPEED_KINDS];

	for (unsigned int run = 0; run < scale->runs; run++)
		for (size_t i = 0; i < SPEED_KINDS; i++)
			size[i] = speed_measure(&speed_kinds[i], scale, run, &run_speed[i][run]);
	for (size_t i = 0; i < SPEED_KINDS; i++)
		speed[i] = speed_median(run_speed[i], scale->runs);
	speed_print_table(speed, size);
	speed_print_figures(speed);
}

#endif
