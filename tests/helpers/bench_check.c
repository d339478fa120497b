// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whether standard input is what `bench --json` may print for these kinds of traffic, in this order, and no
 * other: every figure is there, and agrees with those that it follows from. What takes how long is not judged.
 * `bench_check FAMILY-TRAFFIC...`; says what is wrong, status 1.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#define TOLERANCE 1e-3 /* of values printed with six digits, of which some are differences */

static bool is_wrong;

__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...)
{
	va_list arguments;

	is_wrong = true;
	fputs("bench_check: ", stdout);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
}

static double number(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	if (!json_is_number(value))
		complain("no number '%s'", name);
	return json_number_value(value);
}

static void positive(const json_t *object, const char *name)
{
	if (number(object, name) <= 0)
		complain("%s is %g", name, number(object, name));
}

static void equal(const char *what, double seen, double expected)
{
	const double off = seen - expected, most = TOLERANCE * (expected > 1 ? expected : 1);

	if (off > most || off < -most)
		complain("%s is %g, not %g", what, seen, expected);
}

static void word(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	if (!text || !*text)
		complain("no word '%s'", name);
}

static void head(const json_t *answer)
{
	static const char *const words[] = { "kernel", "machine", "cpu", "name", "measured", "table", "model" };
	static const char *const counts[] = { "cpus", "slots", "table_bytes", "driver_ns" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		word(answer, words[i]);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		positive(answer, counts[i]);
	if (number(answer, "rules") < 0)
		complain("fewer rules than none");
	if (number(answer, "load_factor") < 0 || number(answer, "load_factor") > 1)
		complain("a load factor of %g", number(answer, "load_factor"));
}

static void figures(const json_t *row, double cpus)
{
	static const char *const ns[] = { "ns", "lower_quartile", "upper_quartile", "drop_ns" };
	const double median = number(row, "ns");

	for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++)
		positive(row, ns[i]);
	if (number(row, "lower_quartile") > median || number(row, "upper_quartile") < median)
		complain("the quartiles are not on both sides of the median");
	if (number(row, "ns_over_parse") >= median)
		complain("to parse a packet takes no time");
	equal("ns_over_drop", number(row, "ns_over_drop"), median - number(row, "drop_ns"));
	equal("million_packets_per_s", number(row, "million_packets_per_s"), cpus * 1000 / median);
}

/* 10 Gbit/s are 14.88 million frames of 64 bytes, with 20 beside each on the wire. */
static void model(const json_t *row, const json_t *measured, double driver_ns)
{
	static const int gbit[] = { 10, 25, 40, 100 };
	const double ns = number(row, "ns");

	equal("ns of the model", ns, driver_ns + number(measured, "ns_over_drop"));
	equal("packets of the model", number(row, "million_packets_per_s"), 1000 / ns);
	for (size_t i = 0; i < sizeof(gbit) / sizeof(gbit[0]); i++) {
		char name[32];

		snprintf(name, sizeof(name), "cores_%d_gbit", gbit[i]);
		equal(name, number(row, name), gbit[i] / 10. * 14.880952e6 * ns * 1e-9);
	}
}

/* The rows of a table: those of `kinds`. */
static const json_t *rows_of(const json_t *answer, const char *name, char **kinds, size_t count)
{
	const json_t *rows = json_object_get(answer, name);

	if (json_array_size(rows) != count)
		complain("%s has %zu rows, not %zu", name, json_array_size(rows), count);
	for (size_t i = 0; i < json_array_size(rows) && i < count; i++) {
		const json_t *row = json_array_get(rows, i);
		const char *family = json_string_value(json_object_get(row, "family"));
		const char *traffic = json_string_value(json_object_get(row, "traffic"));
		char kind[32];

		snprintf(kind, sizeof(kind), "%s-%s", family ? family : "", traffic ? traffic : "");
		if (strcmp(kind, kinds[i]))
			complain("row %zu of %s is %s, not %s", i + 1, name, kind, kinds[i]);
	}
	return rows;
}

int main(int argc, char **argv)
{
	const size_t count = argc - 1;
	const json_t *one_cpu, *all_cpus, *cores;
	json_t *answer = json_loadf(stdin, JSON_REJECT_DUPLICATES, NULL);

	if (!answer)
		complain("no JSON");
	head(answer);
	one_cpu = rows_of(answer, "one_cpu", argv + 1, count);
	all_cpus = rows_of(answer, "all_cpus", argv + 1, count);
	cores = rows_of(answer, "cores_needed", argv + 1, count);
	for (size_t i = 0; i < count && !is_wrong; i++) {
		figures(json_array_get(one_cpu, i), 1);
		figures(json_array_get(all_cpus, i), number(answer, "cpus"));
		model(json_array_get(cores, i), json_array_get(all_cpus, i), number(answer, "driver_ns"));
	}
	json_decref(answer);
	return is_wrong;
}
