// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/safe_text.h"

#define VALUE_BYTES 640
#define TEXT_BYTES (2 * VALUE_BYTES) /* of an error or a note */
#define HELD_BYTES (16 * PIPE_BUF)
#define COLUMNS_MAX 16
#define INDENT 2
#define CUT_LEAST 20 /* of a column that is cut */

static struct {
	bool is_json, is_quiet;
	bool has_rows; /* of the list under way */
	bool cuts;     /* the last column of a table, where the terminal is too narrow */
	bool has_progress;
	int flush_error; /* -errno of the first flush that failed */
	int document;    /* standard output, while quiet */
} output;

void output_use_json(bool is_json)
{
	output.is_json = is_json;
}

bool output_is_json(void)
{
	return output.is_json;
}

/*
 * ---- terminals ----
 *
 * Pipes and files get plain text only, and so does a terminal if NO_COLOR is set (https://no-color.org), or TERM is "dumb"
 * or not set.
 */

enum terminal_style {
	TERMINAL_PLAIN,
	TERMINAL_BOLD,   /* headings */
	TERMINAL_GREEN,  /* all is well */
	TERMINAL_YELLOW, /* look at this */
	TERMINAL_RED,    /* dropped; failed */
};

/* Whether it understands cursor movements. */
static bool terminal_is_able(FILE *stream)
{
	const char *kind = secure_getenv("TERM");

	return kind && *kind && strcmp(kind, "dumb") && isatty(fileno(stream));
}

/* Writes the text, in this style if the stream can show it. */
static void terminal_put(FILE *stream, enum terminal_style style, const char *text)
{
	static const char *const codes[] = {
		[TERMINAL_BOLD] = "\033[1m",
		[TERMINAL_GREEN] = "\033[32m",
		[TERMINAL_YELLOW] = "\033[33m",
		[TERMINAL_RED] = "\033[31m",
	};
	const char *refused = secure_getenv("NO_COLOR");
	const bool is_styled = style != TERMINAL_PLAIN && !(refused && *refused) && terminal_is_able(stream);

	fprintf(stream, "%s%s%s", is_styled ? codes[style] : "", text, is_styled ? "\033[0m" : "");
}

/* ---- text ---- */

static const char *label_of(const char *name, char label[VALUE_BYTES])
{
	snprintf(label, VALUE_BYTES, "%s", name);
	for (char *c = label; *c; c++)
		if (*c == '_')
			*c = ' ';
	return label;
}

/*
 * Colours of fields, by the start of their text. A field without a start is a number, coloured if it is not
 * 0.
 */
static const struct tint {
	const char *name, *start;
	enum terminal_style style;
} tints[] = {
	{ "effect", "filters", TERMINAL_GREEN },        { "effect", "PANIC", TERMINAL_RED },
	{ "effect", "UNCONFIRMED", TERMINAL_RED },      { "effect", "", TERMINAL_YELLOW },
	{ "condition", "equal", TERMINAL_GREEN },       { "condition", "", TERMINAL_YELLOW },
	{ "running_filter", "agrees", TERMINAL_GREEN }, { "running_filter", "", TERMINAL_YELLOW },
	{ "verdict", "blocked", TERMINAL_RED },         { "policy", "drop", TERMINAL_RED },
	{ "dropped_packets", NULL, TERMINAL_RED },      { "would_drop_packets", NULL, TERMINAL_YELLOW },
	{ "missing", NULL, TERMINAL_YELLOW },           { "foreign", NULL, TERMINAL_YELLOW },
	{ "other_end", NULL, TERMINAL_YELLOW },         { "bad_lines", NULL, TERMINAL_RED },
};

static enum terminal_style style_of(const char *name, const json_t *value)
{
	const char *text = json_string_value(value);

	for (const struct tint *tint = tints; tint < tints + sizeof(tints) / sizeof(tints[0]); tint++) {
		if (strcmp(tint->name, name))
			continue;
		if (tint->start ? text && !strncmp(text, tint->start, strlen(tint->start)) :
				  json_number_value(value) != 0)
			return tint->style;
	}
	return TERMINAL_PLAIN;
}

/* Of the terminal; 0: there is none, or it is not known. */
static int terminal_columns(void)
{
	struct winsize window;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) ? 0 : window.ws_col;
}

bool output_is_narrow(void)
{
	const int columns = terminal_columns();

	return !output.is_json && columns && columns < 160;
}

/* In UTF-8 characters. */
static int width_of(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

/* Cuts a text so that it has this width, with ~ at its end. */
static void cut(char *text, int width)
{
	for (; *text && width; text++)
		width -= (text[1] & 0xc0) != 0x80;
	strcpy(text - 1, "~");
}

static bool is_scalar(const json_t *value)
{
	return !json_is_object(value) && !json_is_array(value);
}

/* A terminal must not obey what another program, or another host, has written. */
static const char *scalar_text(const json_t *value, char text[VALUE_BYTES])
{
	if (json_is_string(value)) {
		snprintf(text, VALUE_BYTES, "%s", json_string_value(value));
		text_clean(text);
	} else if (json_is_integer(value))
		snprintf(text, VALUE_BYTES, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		snprintf(text, VALUE_BYTES, "%.3g", json_real_value(value));
	else if (json_is_boolean(value))
		snprintf(text, VALUE_BYTES, "%s", json_is_true(value) ? "yes" : "no");
	else
		snprintf(text, VALUE_BYTES, "-");
	return text;
}

/* Numbers align right, words left. The last column has no padding. */
static void print_row(json_t *row, const int widths[COLUMNS_MAX], int indent, bool is_heading)
{
	char text[VALUE_BYTES];
	const char *name;
	json_t *value;
	size_t column = 0;

	printf("%*s", indent, "");
	json_object_foreach(row, name, value)
	{
		const char *cell = is_heading ? label_of(name, text) : scalar_text(value, text);
		const int padding = widths[column] - width_of(cell);

		if (padding < 0) /* see output.cuts */
			cut(text, widths[column]);
		const bool is_last = ++column == json_object_size(row);

		printf("%*s", json_is_number(value) ? padding : 0, "");
		terminal_put(stdout, is_heading ? TERMINAL_BOLD : style_of(name, value), cell);
		printf("%*s%s", json_is_number(value) || is_last ? 0 : padding, "", is_last ? "\n" : "  ");
	}
}

static void print_object(const json_t *object, int indent);

/* Prints a table if all members are scalars, not too many, and the terminal is wide enough; else object by object. */
static void print_rows(const json_t *rows, int indent)
{
	const int columns = terminal_columns();
	int widths[COLUMNS_MAX] = { 0 }, whole = indent;
	bool is_flat = true, is_table;
	char text[VALUE_BYTES];
	const char *name;
	json_t *value;
	int last = 0;

	for (size_t i = 0; i < json_array_size(rows); i++) {
		int column = 0;

		json_object_foreach(json_array_get(rows, i), name, value)
		{
			int width = width_of(scalar_text(value, text));

			if (width < (int)strlen(name))
				width = strlen(name);
			is_flat &= is_scalar(value) && column < COLUMNS_MAX;
			if (is_flat && widths[column] < width)
				widths[column] = width;
			column++;
		}
	}
	for (; last < COLUMNS_MAX && widths[last]; last++)
		whole += widths[last] + (last ? 2 : 0);
	if (output.cuts && is_flat && whole > columns && columns && last-- &&
	    widths[last] - (whole - columns) >= CUT_LEAST) {
		widths[last] -= whole - columns;
		whole = columns;
	}
	is_table = is_flat && (whole <= columns || !columns);
	for (size_t i = 0; i < json_array_size(rows); i++) {
		json_t *row = json_array_get(rows, i);

		if (is_table && !i)
			print_row(row, widths, indent, true);
		if (is_table) {
			print_row(row, widths, indent, false);
		} else {
			printf("%s", i && is_flat ? "\n" : "");
			print_object(row, indent);
		}
	}
}

static void print_object(const json_t *object, int indent)
{
	char text[VALUE_BYTES];
	const char *name;
	json_t *value;
	int width = 0;

	json_object_foreach((json_t *)object, name, value) if (width < (int)strlen(name)) width = strlen(name);
	json_object_foreach((json_t *)object, name, value)
	{
		const bool is_list = json_is_array(value) && is_scalar(json_array_get(value, 0));
		const bool is_line = is_scalar(value) || is_list;

		printf("%*s", indent, "");
		terminal_put(stdout, is_line ? TERMINAL_PLAIN : TERMINAL_BOLD, label_of(name, text));
		printf(":%*s", is_line ? width - (int)strlen(name) + 1 : 0, "");
		if (is_scalar(value))
			terminal_put(stdout, style_of(name, value), scalar_text(value, text));
		for (size_t i = 0; is_list && i < json_array_size(value); i++)
			printf("%s%s", i ? "; " : "", scalar_text(json_array_get(value, i), text));
		printf("%s\n", is_list && !json_array_size(value) ? "none" : "");
		if (json_is_object(value))
			print_object(value, indent + INDENT);
		else if (!is_line)
			print_rows(value, indent + INDENT);
	}
}

/* ---- both ---- */

json_t *output_string(const char *text)
{
	char *copy = strdup(text);
	json_t *string;

	if (!copy)
		return NULL;
	text_make_utf8(copy);
	string = json_string(copy);
	free(copy);
	return string;
}

json_t *output_time(__s64 second, int us)
{
	const time_t moment = second;
	char text[64] = "";
	struct tm utc;

	if (gmtime_r(&moment, &utc))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
	return us < 0 ? json_sprintf("%sZ", text) : json_sprintf("%s.%06dZ", text, us);
}

static void dump_line(const json_t *value, FILE *to, size_t flags)
{
	json_dumpf(value, to, flags);
	fputc('\n', to);
}

/* People see it by the other members. */
static void hide_changed(json_t *value)
{
	for (size_t i = 0; i < json_array_size(value); i++)
		hide_changed(json_array_get(value, i));
	if (json_is_boolean(json_object_get(value, "changed")))
		json_object_del(value, "changed");
}

void output_print(json_t *value)
{
	if (!value)
		return;
	if (!output.is_json)
		hide_changed(value);
	if (output.is_json) {
		dump_line(value, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
	} else if (json_is_array(value)) {
		print_rows(value, 0);
	} else {
		print_object(value, 0);
	}
	json_decref(value);
}

void output_print_lines(json_t *rows)
{
	output.cuts = true;
	output_print(rows);
	output.cuts = false;
}

void output_list_begin(void)
{
	output.has_rows = false;
	if (output.is_json)
		printf("[");
}

void output_list_row(json_t *row, const char *line)
{
	if (output.is_json) {
		printf("%s\n  ", output.has_rows ? "," : "");
		json_dumpf(row, stdout, 0);
	} else {
		puts(line);
	}
	output.has_rows = true;
	json_decref(row);
}

void output_list_end(void)
{
	if (output.is_json)
		printf("%s]\n", output.has_rows ? "\n" : "");
}

void output_answer(json_t *row, const char *text)
{
	if (output.is_json)
		dump_line(row, stdout, 0);
	else
		puts(text);
	json_decref(row);
}

int output_flush(void)
{
	const int error = fflush(stdout) ? -errno : 0;

	if (!output.flush_error)
		output.flush_error = error;
	return error;
}

int output_end(void)
{
	output_flush();
	return !output.flush_error && ferror(stdout) ? -EIO : output.flush_error;
}

void output_hold(void)
{
	setvbuf(stdout, NULL, _IOFBF, HELD_BYTES);
}

/* A pipe with room takes PIPE_BUF bytes at once: half of it when output is due, and one more line. */
bool output_is_due(void)
{
	return __fpending(stdout) >= PIPE_BUF / 2;
}

bool output_can_flush(int timeout_ms)
{
	struct pollfd file = { .fd = STDOUT_FILENO, .events = POLLOUT };

	return !isatty(STDOUT_FILENO) && poll(&file, 1, timeout_ms) > 0;
}

void output_give_up(void)
{
	output.flush_error = 0;
	__fpurge(stdout); /* freopen() would wait for the reader */
	if (!freopen("/dev/null", "w", stdout))
		output_note("cannot open /dev/null: %s", strerror(errno));
}

void output_be_quiet(void)
{
	output.document = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	output_give_up();
	output.is_quiet = true;
}

FILE *output_document(void)
{
	if (output.is_quiet)
		dup2(output.document, STDOUT_FILENO);
	return stdout;
}

void output_summary(json_t *row, const char *text)
{
	output_note("%s", text);
	if (output.is_json)
		dump_line(row, stderr, 0);
	json_decref(row);
}

void output_error(int status, const char *words)
{
	char text[TEXT_BYTES];
	json_t *error;

	snprintf(text, sizeof(text), "%s", words);
	text_clean(text);
	output_progress_end();
	if (!output.is_json) {
		terminal_put(stderr, TERMINAL_RED, "xdp-cuckoo:");
		fprintf(stderr, " %s\n", text);
		return;
	}
	error = json_pack("{s:o, s:i}", "error", output_string(text), "status", status);
	dump_line(error, stderr, 0);
	json_decref(error);
}

static void print_note(const char *format, va_list arguments)
{
	char text[TEXT_BYTES];

	vsnprintf(text, sizeof(text), format, arguments);
	text_clean(text);
	output_progress_end();
	terminal_put(stderr, TERMINAL_YELLOW, "note:");
	fprintf(stderr, " %s\n", text);
}

void output_note(const char *format, ...)
{
	va_list arguments;

	if (output.is_json || output.is_quiet)
		return;
	va_start(arguments, format);
	print_note(format, arguments);
	va_end(arguments);
}

/* Allocates no memory, because a signal handler may call it: see io/signals.h. */
void output_warning(const char *format, ...)
{
	char text[TEXT_BYTES], quoted[2 * TEXT_BYTES], *to = quoted;
	va_list arguments;

	va_start(arguments, format);
	if (output.is_json) {
		vsnprintf(text, sizeof(text), format, arguments);
		text_make_utf8(text);
		text_clean(text); /* JSON escapes only these two of what is left */
		for (const char *from = text; *from; *to++ = *from++)
			if (*from == '"' || *from == '\\')
				*to++ = '\\';
		*to = '\0';
		fprintf(stderr, "{\"note\": \"%s\"}\n", quoted);
	} else {
		print_note(format, arguments);
	}
	va_end(arguments);
}

void output_progress(const char *what, __u64 count, double fraction, double seconds)
{
	static const char bar[] = "##############################";
	const int width = sizeof(bar) - 1;
	int done = fraction > 0 ? width * fraction : 0;

	if (output.is_json || output.is_quiet || !terminal_is_able(stderr) || seconds <= 0)
		return;
	output.has_progress = true;
	fprintf(stderr, "\r\033[K%s ", what);
	if (fraction > 0)
		fprintf(stderr, "[%.*s%*s] %3.0f %%, ", done, bar, width - done, "", 100 * fraction);
	fprintf(stderr, "%llu, %.0f/s", (unsigned long long)count, count / seconds);
	if (fraction > 0)
		fprintf(stderr, ", %.0f s left", seconds * (1 - fraction) / fraction);
}

void output_progress_end(void)
{
	if (output.has_progress)
		fputs("\r\033[K", stderr);
	output.has_progress = false;
}
