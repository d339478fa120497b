// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sums of counters by row and CPU, and differences between two tallies, also after a reset. */
#include "unit/test.h"
#include "counters/counters.h"

#define CPUS 3
#define CELLS ((size_t)ABI_COUNTER_ROWS * CPUS * ABI_COUNTERS)
#define DROPS (OUTCOME_DROP_RULE * VERDICTS + VERDICT_DROP)

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
	tally_verdicts(sum, verdicts);
	assert_int_equal(verdicts[VERDICT_DROP].packets, 15);
	assert_int_equal(verdicts[VERDICT_DROP].bytes, 64);
	assert_int_equal(verdicts[VERDICT_PASS].packets, 16);
	strcpy(tally.interfaces[1], "eth0");
	tally_sum_elsewhere(&tally, sum);
	assert_int_equal(sum[DROPS].packets, 4);
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

TEST_MAIN(NULL, NULL)
