/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The steps of a command at which faults are made, by the letters of tests/fault/runtime.c: how many, and which of them. */
#ifndef XDP_CUCKOO_TEST_FAULT_STEPS_H
#define XDP_CUCKOO_TEST_FAULT_STEPS_H

#include "harness.h"

#define ALL_STEPS "fsdknmp"
#define CALLS "dknmp"     /* of the system */
#define FAILING "dknmpa"  /* calls, and allocations */
#define CHANGES "s" CALLS /* what can be seen from outside */

static inline void read_counts(const char *path, unsigned long steps[UINT8_MAX + 1])
{
	FILE *file = fopen(path, "re");
	unsigned long count;
	char letter;

	while (file && fscanf(file, " %c %lu", &letter, &count) == 2)
		steps[(uint8_t)letter] = count;
	if (!file || fclose(file))
		wrong("its steps were not counted");
}

static inline unsigned long sum_steps(const unsigned long steps[UINT8_MAX + 1], const char *kinds)
{
	unsigned long sum = 0;

	for (; *kinds; kinds++)
		sum += steps[(uint8_t)*kinds];
	return sum;
}

/* Calls that are made have a step before and one after; those that fail have one. */
static inline unsigned long sum_calls(const unsigned long steps[UINT8_MAX + 1])
{
	return sum_steps(steps, CALLS) / 2 + steps['a'];
}

/* Number i of `wanted` steps spread over `count`: each once where there are enough, else one in each part. */
static inline unsigned long spread(unsigned long i, unsigned long wanted, unsigned long count)
{
	const unsigned long first = i * count / wanted, end = (i + 1) * count / wanted;

	if (wanted >= count)
		return 1 + i % count;
	return 1 + first + random_below(&harness.random, end - first);
}

#endif
