/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What benchmarks say and where: a figure is a median with its quartiles; on stdout in tables, and where
 * $BENCH_JSON names a file, as JSON, an object a line.
 */
#ifndef XDP_CUCKOO_BENCH_REPORT_H
#define XDP_CUCKOO_BENCH_REPORT_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "bench/timing.h"

struct spread {
	double median, low, high; /* low, high: the quartiles */
};

/* Sorts the values. */
static inline struct spread spread_of(double *value, size_t count)
{
	const double middle = median(value, count);

	return (struct spread){ middle, value[count / 4], value[(3 * count - 1) / 4] };
}

/* One object: `format` makes what stands in its braces. */
__attribute__((format(printf, 1, 2))) static inline void report_json(const char *format, ...)
{
	const char *path = getenv("BENCH_JSON");
	FILE *file = path ? fopen(path, "ae") : NULL;
	va_list arguments;

	if (!file)
		return;
	va_start(arguments, format);
	fputc('{', file);
	vfprintf(file, format, arguments);
	fputs("}\n", file);
	va_end(arguments);
	fclose(file);
}

/* Whether the benchmark is to be short: $BENCH_QUICK is not empty. */
static inline bool report_is_quick(void)
{
	const char *quick = getenv("BENCH_QUICK");

	return quick && *quick;
}

/* How often to time: as usual, as when it is quick, or, where it is not to be timed but tried, once. */
static inline int report_slices(int usual, int quick)
{
	const char *tried = getenv("BENCH_QUICK");

	if (tried && !strcmp(tried, "once"))
		return 1;
	return report_is_quick() ? quick : usual;
}

#endif
