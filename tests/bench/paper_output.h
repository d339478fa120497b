/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the reproduction of the paper's figures measures with and writes to: seconds, medians, and
 * grids of numbers that go to stdout as tables and to build/bench as data for gnuplot.
 */
#ifndef PAPER_OUTPUT_H
#define PAPER_OUTPUT_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/timing.h"

#define OUTPUT_PLOT "tests/bench/paper.gnuplot"
#define GRID_ROWS_MAX 64
#define GRID_COLUMNS_MAX 12
#define NAN __builtin_nan("")

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("paper: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	exit(1);
}

/* ---- where plots and their data go ---- */

static const char *output_directory;

/* Makes the directory and those above it. */
static void output_open(const char *directory)
{
	char path[256];

	for (const char *end = directory; end; end = strchr(end + 1, '/')) {
		snprintf(path, sizeof(path), "%.*s", (int)(end - directory), directory);
		if (*path && mkdir(path, 0777) && errno != EEXIST)
			die("%s: %s", path, strerror(errno));
	}
	if (mkdir(directory, 0777) && errno != EEXIST)
		die("%s: %s", directory, strerror(errno));
	output_directory = directory;
}

static FILE *output_file(const char *name)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s.dat", output_directory, name);
	file = fopen(path, "w");
	if (!file)
		die("%s: %s", path, strerror(errno));
	return file;
}

static void output_close(FILE *file)
{
	if (fclose(file))
		die("%s: %s", output_directory, strerror(errno));
}

static void output_plot(void)
{
	char command[512];

	if (system("command -v gnuplot >/dev/null")) {
		printf("No plots: gnuplot is missing; the data are in %s/*.dat\n", output_directory);
		return;
	}
	snprintf(command, sizeof(command), "gnuplot -e \"directory='%s'\" " OUTPUT_PLOT, output_directory);
	fflush(stdout);
	if (system(command))
		die("gnuplot failed");
	printf("Plots: %s/*.svg, data: %s/*.dat\n", output_directory, output_directory);
}

/* ---- grids ---- */

/* Some values for each x; NaN: none. */
struct grid {
	const char *name, *title, *axis;
	char column[GRID_COLUMNS_MAX][16];
	size_t rows, columns;
	double x[GRID_ROWS_MAX];
	double y[GRID_ROWS_MAX][GRID_COLUMNS_MAX];
};

static void grid_print_row(const struct grid *grid, size_t row)
{
	printf("%-10g", grid->x[row]);
	for (size_t column = 0; column < grid->columns; column++)
		if (grid->y[row][column] == grid->y[row][column])
			printf(" %9.2f", grid->y[row][column]);
		else
			printf(" %9s", "-");
	putchar('\n');
}

/* Every `step`-th row counted from the last goes to stdout, all go to the file. */
static void grid_print(const struct grid *grid, size_t step)
{
	FILE *file = output_file(grid->name);

	printf("%s\n%-10s", grid->title, grid->axis);
	fprintf(file, "\"%s\"", grid->axis);
	for (size_t column = 0; column < grid->columns; column++) {
		printf(" %9s", grid->column[column]);
		fprintf(file, " \"%s\"", grid->column[column]);
	}
	putchar('\n');
	for (size_t row = 0; row < grid->rows; row++) {
		if ((grid->rows - 1 - row) % step == 0)
			grid_print_row(grid, row);
		fprintf(file, "\n%g", grid->x[row]);
		for (size_t column = 0; column < grid->columns; column++)
			fprintf(file, " %g", grid->y[row][column]);
	}
	fputc('\n', file);
	putchar('\n');
	output_close(file);
}

#endif
