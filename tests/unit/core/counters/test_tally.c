// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sums of counters by row and CPU, and differences between two tallies, also after a reset. */
#include "unit/test.h"
#include "base/memory.h"
#include "counters/counters.h"
#include "filter/filter.h"

#define CPUS 3
#define CELLS ((size_t)ABI_COUNTER_ROWS * CPUS * ABI_COUNTERS)
#define DROPS (OUTCOME_DROP_RULE * VERDICTS + VERDICT_DROP)

/* ---- what fails below it ---- */

static unsigned int until_failure; /* calls for memory */
static int cpus = CPUS, row_error;
static unsigned int rows_read;

#define FAILING(type, name, parameters, arguments, failed) \
	type __real_##name parameters; \
	type __wrap_##name parameters; \
	type __wrap_##name parameters \
	{ \
		return until_failure && !--until_failure ? (failed) : __real_##name arguments; \
	}

static unsigned int freed;

void __real_free(void *memory);
void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
	freed++;
	__real_free(memory);
}

FAILING(void *, calloc, (size_t count, size_t each), (count, each), NULL)
FAILING(int, array_grow, (void *array, size_t count, size_t each), (array, count, each), -ENOMEM)

int __wrap_kernel_cpus(void);
int __wrap_kernel_cpus(void)
{
	return cpus;
}

/* The first counter of each CPU in a row is the row's number. */
int __wrap_kernel_row_counters(const struct kernel_filter *filter, __u32 row, struct abi_counter *counters,
			       struct reason *reason);
int __wrap_kernel_row_counters(const struct kernel_filter *filter, __u32 row, struct abi_counter *counters,
			       struct reason *reason)
{
	(void)filter, (void)reason;
	rows_read++;
	for (int cpu = 0; cpu < cpus; cpu++)
		counters[cpu * ABI_COUNTERS].packets = row;
	return row == 5 ? row_error : 0;
}

/* A tally with these maps at that time. All counters are 0. */
static struct tally tally_of(double seconds, size_t parts, ...)
{
	struct tally tally = { .part = calloc(parts, sizeof(*tally.part)),
			       .parts = parts,
			       .cpus = CPUS,
			       .filters = parts,
			       .seconds = seconds };
	va_list ids;

	va_start(ids, parts);
	for (size_t i = 0; i < parts; i++)
		tally.part[i] = (struct tally_part){ va_arg(ids, __u32), calloc(CELLS, sizeof(struct abi_counter)) };
	va_end(ids);
	return tally;
}

static struct abi_counter *cell(const struct tally *tally, size_t part, unsigned int row, unsigned int cpu,
				unsigned int counter)
{
	return &tally->part[part].counter[((size_t)row * CPUS + cpu) * ABI_COUNTERS + counter];
}

static __u64 packets(const struct tally *tally, unsigned int row, unsigned int cpu, unsigned int counter)
{
	struct abi_counter sum[ABI_COUNTERS];

	memset(sum, 0xff, sizeof(sum));
	tally_sum(tally, row, cpu, sum);
	return sum[counter].packets;
}

/* Each counter is another power of two, so that a sum shows its parts. */
TEST(test_sums)
{
	struct tally tally = tally_of(0, 2, 7, 9);
	struct abi_counter sum[ABI_COUNTERS], verdicts[VERDICTS];

	cell(&tally, 0, 1, 0, DROPS)->packets = 1;
	cell(&tally, 0, 1, 2, DROPS)->packets = 2;
	cell(&tally, 0, 63, 2, DROPS)->packets = 4;
	cell(&tally, 1, 1, 2, DROPS)->packets = 8;
	cell(&tally, 1, 1, 2, 0)->packets = 16;
	cell(&tally, 1, 0, 2, ABI_COUNTER_RETRIES)->packets = 32;
	cell(&tally, 1, 1, 2, DROPS)->bytes = 64;
	assert_int_equal(packets(&tally, TALLY_ALL, TALLY_ALL, DROPS), 15);
	assert_int_equal(packets(&tally, 1, TALLY_ALL, DROPS), 11);
	assert_int_equal(packets(&tally, 63, TALLY_ALL, DROPS), 4);
	assert_int_equal(packets(&tally, TALLY_ALL, 2, DROPS), 14);
	assert_int_equal(packets(&tally, 1, 2, DROPS), 10);
	assert_int_equal(packets(&tally, 0, TALLY_ALL, DROPS), 0);
	tally_sum(&tally, TALLY_ALL, TALLY_ALL, sum);
	memset(verdicts, 0xff, sizeof(verdicts));
	tally_verdicts(sum, verdicts);
	assert_int_equal(verdicts[VERDICT_DROP].packets, 15);
	assert_int_equal(verdicts[VERDICT_DROP].bytes, 64);
	assert_int_equal(verdicts[VERDICT_PASS].packets, 16);
	strcpy(tally.interfaces[1], "eth0");
	tally_sum_elsewhere(&tally, sum);
	assert_int_equal(sum[DROPS].packets, 4);
	assert_int_equal(sum[ABI_COUNTER_RETRIES].packets, 0);
	/* Received and sent. */
	cell(&tally, 0, 1 + ABI_COUNTER_SENT, 0, DROPS)->packets = 128;
	assert_int_equal(packets(&tally, 1 + ABI_COUNTER_SENT, TALLY_ALL, DROPS), 128);
	assert_int_equal(packets(&tally, 1, TALLY_ALL, DROPS), 11);
	assert_int_equal(packets(&tally, 1 | TALLY_BOTH, TALLY_ALL, DROPS), 139);
	assert_string_equal(tally_direction(ABI_COUNTER_SENT - 1), "received");
	assert_string_equal(tally_direction(ABI_COUNTER_SENT), "sent");
	tally_close(&tally);
}

TEST(test_are_there_packets)
{
	struct abi_counter counters[ABI_COUNTERS] = {};

	counters[ABI_COUNTER_RETRIES].packets = 1; /* these are no packets */
	counters[0].bytes = 1;
	assert_false(tally_has_packets(counters));
	for (int i = 0; i < OUTCOMES * VERDICTS; i++) {
		counters[i].packets = 1;
		assert_true(tally_has_packets(counters));
		counters[i].packets = 0;
	}
}

TEST(test_words)
{
	void (*const explain[])(FILE * to) = { explain_outcomes, explain_policies };
	const int counts[] = { OUTCOMES, OUTCOME_POLICIES };

	for (size_t i = 0; i < COUNT(explain); i++) {
		char text[4096] = "", *line = text;
		FILE *file = fmemopen(text, sizeof(text), "w");

		explain[i](file);
		fclose(file);
		for (int outcome = 0; outcome < counts[i]; outcome++) {
			const char *name = outcome_words[outcome].name;

			assert_int_equal(strncmp(line, "  ", 2), 0);
			assert_int_equal(strncmp(line + 2, name, strlen(name)), 0);
			line = strchr(line, '\n') + 1;
		}
		assert_string_equal(line, "");
	}
}

#define LONG "abcdefghijklmno" /* the longest name */

TEST(test_names_of_interfaces)
{
	static const struct {
		const char *last, *end;
	} rows[] = { { "pq", "+pq" }, { "pqr", "..." } };
	struct abi_config config = {};
	struct kernel_attachment attachments[6] = {};
	struct kernel_filter filter = { .config = &config, .attachments = attachments, .attachments_count = 5 };
	struct reason reason;

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct tally tally = {};

		for (size_t k = 0; k < COUNT(attachments); k++) {
			attachments[k].ifindex = 3 + k / 5; /* the last one is none of the filter's */
			strcpy(attachments[k].interface, k < 3 ? LONG : k == 3 ? "bcdefghijklm" : rows[i].last);
		}
		assert_int_equal(tally_add(&tally, &filter, &reason), 0);
		assert_int_equal(strlen(tally.interfaces[3]), TALLY_NAME_BYTES - 1);
		assert_int_equal(strncmp(tally.interfaces[3], LONG "+" LONG "+" LONG "+bcdefghijkl", 59), 0);
		assert_string_equal(tally.interfaces[3] + 60, rows[i].end);
		assert_string_equal(tally.interfaces[4], "");
		tally_close(&tally);
	}
}

TEST(test_what_fails)
{
	struct abi_config config = {};
	struct kernel_filter filter = { .config = &config };
	struct tally tally = {}, before = tally_of(1, 2, 7, 8), now = tally_of(2, 2, 7, 8), difference;
	struct reason reason;

	for (unsigned int failing = 1; failing <= 4; failing++) {
		until_failure = failing;
		assert_int_equal(tally_since(&before, &now, &difference), -ENOMEM);
		assert_true(!difference.part && !difference.parts);
	}
	tally_close(&before);
	freed = 0;
	tally_close(&now);
	assert_int_equal(freed, 3);
	until_failure = 1;
	assert_int_equal(tally_add(&tally, &filter, &reason), -ENOMEM);
	tally_close(&tally);
	cpus = 0;
	assert_int_equal(tally_add(&tally, &filter, &reason), -EIO);
	cpus = 1;
	row_error = -EPERM;
	rows_read = 0;
	assert_int_equal(tally_add(&tally, &filter, &reason), -EPERM);
	assert_int_equal(rows_read, 6);
	tally_close(&tally);
	cpus = CPUS;
	row_error = 0;
	assert_int_equal(tally_add(&tally, &filter, &reason), 0);
	assert_true(tally.seconds > 0 && tally.cpus == CPUS);
	for (unsigned int row = 0; row < ABI_COUNTER_ROWS; row++)
		assert_int_equal(packets(&tally, row, CPUS - 1, 0), row);
	tally_close(&tally);
}

TEST(test_rate)
{
	struct tally before = tally_of(100.5, 1, 7), now = tally_of(102.5, 1, 7), difference;

	*cell(&before, 0, 1, 1, DROPS) = (struct abi_counter){ 1000, 64000 };
	*cell(&now, 0, 1, 1, DROPS) = (struct abi_counter){ 1500, 94000 };
	cell(&now, 0, 2, 0, DROPS)->packets = 3;
	assert_int_equal(tally_since(&before, &now, &difference), 0);
	assert_true(difference.seconds == 2);
	assert_int_equal(cell(&difference, 0, 1, 1, DROPS)->packets, 500);
	assert_int_equal(cell(&difference, 0, 1, 1, DROPS)->bytes, 30000);
	assert_int_equal(packets(&difference, TALLY_ALL, TALLY_ALL, DROPS), 503);
	assert_int_equal(packets(&now, TALLY_ALL, TALLY_ALL, DROPS), 1503);
	tally_close(&difference);
	tally_close(&now);
	tally_close(&before);
}

/* As packets, those that the cards had no room for: by row, and no row more. */
TEST(test_lost)
{
	struct {
		struct tally tally;
		__u64 behind;
	} before = { .behind = 1 }, now = { .behind = 8 }, difference = { .behind = 99 };

	for (int row = 0; row < ABI_COUNTER_ROWS; row++) {
		before.tally.lost[row] = row;
		now.tally.lost[row] = row % 5 ? 3 * row : 1;
	}
	assert_int_equal(tally_since(&before.tally, &now.tally, &difference.tally), 0);
	for (int row = 0; row < ABI_COUNTER_ROWS; row++)
		assert_int_equal(difference.tally.lost[row], row % 5 ? 2 * row : 1);
	assert_int_equal(difference.behind, 99);
}

/* After a reset, some counters are lower than before, others are higher again. */
TEST(test_counted_from_0_again)
{
	struct tally before = tally_of(1, 1, 7), now = tally_of(2, 1, 7), difference;

	*cell(&before, 0, 1, 0, DROPS) = (struct abi_counter){ 1000, 64000 };
	*cell(&now, 0, 1, 0, DROPS) = (struct abi_counter){ 30, 1800 };
	assert_int_equal(tally_since(&before, &now, &difference), 0);
	assert_int_equal(cell(&difference, 0, 1, 0, DROPS)->packets, 30);
	assert_int_equal(cell(&difference, 0, 1, 0, DROPS)->bytes, 1800);
	tally_close(&difference);
	tally_close(&now);
	tally_close(&before);
}

/* A new load counts in another map. If one of two filters goes, its counts are not an increase elsewhere. */
TEST(test_other_maps)
{
	struct tally before = tally_of(1, 2, 7, 8), now = tally_of(2, 2, 8, 9), difference;

	cell(&before, 0, 1, 0, DROPS)->packets = 10;
	cell(&before, 1, 1, 0, DROPS)->packets = 100;
	cell(&now, 0, 1, 0, DROPS)->packets = 150;
	cell(&now, 1, 1, 0, DROPS)->packets = 2000;
	assert_int_equal(tally_since(&before, &now, &difference), 0);
	assert_int_equal(packets(&difference, TALLY_ALL, TALLY_ALL, DROPS), 2050);
	tally_close(&difference);
	tally_close(&now);
	tally_close(&before);
}

TEST(test_verdicts_of_outcomes)
{
	static const bool can[OUTCOMES][VERDICTS] = { [0 ... OUTCOME_POLICIES - 1] = { true, true, true },
						      [OUTCOME_PASS_RULE] = { true, false, false },
						      [OUTCOME_DROP_RULE] = { false, true, true },
						      [OUTCOME_MONITOR_RULE] = { false, false, true },
						      [OUTCOME_MONITOR_RULE + 1 ... OUTCOMES - 1] = { true, false,
												      false } };

	for (int i = 0; i < OUTCOMES * VERDICTS; i++)
		assert_int_equal(outcome_can_have(i / VERDICTS, i % VERDICTS), can[i / VERDICTS][i % VERDICTS]);
}

/* ---- by rule: which filters are read ---- */

static struct abi_config configs[3] = { { .magic = ABI_MAGIC, .name = "other" },
					{ .magic = ABI_MAGIC, .name = "own" },
					{ .magic = ABI_MAGIC, .name = "own" } };
static int find_error, open_errors[3];
static unsigned int tables_opened, tables_closed, visits;
static bool has_counts;
static int shapes_error;

int __wrap_kernel_find_filters(struct kernel_wish wish, struct kernel_filter **filters, size_t *count,
			       struct reason *reason);
int __wrap_kernel_find_filters(struct kernel_wish wish, struct kernel_filter **filters, size_t *count,
			       struct reason *reason)
{
	(void)reason;
	assert_string_equal(wish.must_see, "own");
	*count = 3;
	*filters = __real_calloc(*count, sizeof(**filters));
	for (size_t i = 0; i < *count; i++) {
		(*filters)[i].config = &configs[i];
		(*filters)[i].options.has_counts = has_counts && i == 2;
	}
	return find_error;
}

void __wrap_kernel_filters_free(struct kernel_filter *filters, size_t count);
void __wrap_kernel_filters_free(struct kernel_filter *filters, size_t count)
{
	assert_int_equal(count, 3);
	free(filters);
}

int __wrap_filter_open_tables(const struct kernel_filter *filter, struct filter_tables *tables);
int __wrap_filter_open_tables(const struct kernel_filter *filter, struct filter_tables *tables)
{
	(void)tables;
	tables_opened++;
	return open_errors[filter->config - configs];
}

void __wrap_filter_tables_close(struct filter_tables *tables);
void __wrap_filter_tables_close(struct filter_tables *tables)
{
	(void)tables;
	tables_closed++;
}

int __wrap_store_shapes(struct store *store, struct shape_list *list);
int __wrap_store_shapes(struct store *store, struct shape_list *list)
{
	(void)store, (void)list;
	return shapes_error;
}

int __wrap_store_each(struct store *store, int (*visit)(const struct rule *rule, void *context), void *context);
int __wrap_store_each(struct store *store, int (*visit)(const struct rule *rule, void *context), void *context)
{
	(void)store, (void)visit, (void)context;
	visits++;
	return -EPERM;
}

TEST(test_filters_that_count_by_rule)
{
	static const struct {
		const char *name;
		bool has_counts;
		int find_error, open_error, expected;
		unsigned int opened, closed;
	} rows[] = {
		{ "own", true, 0, 0, 0, 1, 3 },
		{ "own", true, 0, -EINVAL, -EOPNOTSUPP, 1, 3 },
		{ "own", true, 0, -ENOMEM, -ENOMEM, 1, 3 },
		{ "own", false, 0, 0, -EOPNOTSUPP, 0, 3 },
		{ "else", true, 0, 0, -ENOENT, 0, 3 },
		{ "own", true, -EPERM, 0, -EPERM, 0, 0 },
	};
	struct rule_counts counts;
	struct list_counts sums;
	struct reason reason;

	for (size_t i = 0; i < COUNT(rows); i++) {
		strcpy(configs[1].name, rows[i].name);
		strcpy(configs[2].name, rows[i].name);
		has_counts = rows[i].has_counts;
		find_error = rows[i].find_error;
		open_errors[2] = rows[i].open_error;
		tables_opened = tables_closed = 0;
		counts = (struct rule_counts){};
		assert_int_equal(rule_counts_open(&counts, "own", &reason), rows[i].expected);
		rule_counts_close(&counts);
		assert_int_equal(tables_opened, rows[i].opened);
		assert_int_equal(tables_closed, rows[i].closed);
	}
	find_error = 0;
	until_failure = 1;
	counts = (struct rule_counts){};
	assert_int_equal(rule_counts_open(&counts, "own", &reason), -ENOMEM);
	rule_counts_close(&counts);
	shapes_error = -EIO;
	memset(&sums, 0xff, sizeof(sums));
	assert_int_equal(list_counts_read(NULL, &counts, &sums), -EIO);
	assert_int_equal(visits, 0);
	assert_int_equal(list_counts_read(NULL, NULL, &sums), -EPERM);
	assert_int_equal(visits, 1);
	for (size_t i = 0; i < sizeof(sums); i++)
		assert_int_equal(((const char *)&sums)[i], 0);
}

TEST_MAIN(NULL, NULL)
