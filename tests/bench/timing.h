/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What every benchmark measures with: seconds, and the median of several runs. */
#ifndef XDP_CUCKOO_BENCH_TIMING_H
#define XDP_CUCKOO_BENCH_TIMING_H

#include <stdlib.h>
#include <time.h>

static inline double clock_seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

static inline double seconds(void)
{
	return clock_seconds(CLOCK_MONOTONIC);
}

/* That this thread has run: others on its processor do not count. */
static inline double thread_seconds(void)
{
	return clock_seconds(CLOCK_THREAD_CPUTIME_ID);
}

static inline int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts the values. */
static inline double median(double *value, size_t count)
{
	qsort(value, count, sizeof(*value), compare);
	return (value[(count - 1) / 2] + value[count / 2]) / 2;
}

#endif
