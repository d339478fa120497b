/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Everything the tool prints, as text or JSON. A command states its fields once, as a JSON value; both forms
 * are made from it. In text, '_' in a name becomes a space. On a terminal, headings, drops and errors stand
 * out.
 */
#ifndef XDP_CUCKOO_OUTPUT_H
#define XDP_CUCKOO_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>
#include <linux/types.h>

void output_use_json(bool is_json);
bool output_is_json(void);

/*
 * A JSON string of the text. Bytes that are not UTF-8 become '?', since JSON refuses them. NULL: no memory.
 */
json_t *output_string(const char *text);

/*
 * A moment in a JSON member: RFC 3339 in UTC, "2026-11-22T08:00:00Z". `us`: microseconds; negative: whole seconds.
 * Durations are numbers of seconds, in members whose names end in "_s".
 */
json_t *output_time(__s64 second, int us);

/*
 * Prints a value and releases it. As text, an object becomes "name: value" lines, an array of objects a table
 * with a heading, and an array of strings one line. A table too wide for the terminal is printed object by
 * object. What a command that changes something prints has the boolean "changed": whether it changed something, or with
 * --dry-run would; text leaves it out.
 */
void output_print(json_t *value);

/* The same, one line for each row: on a terminal that is too narrow, the last column is cut. */
void output_print_lines(json_t *rows);

/* Whether a terminal has no room for many columns. */
bool output_is_narrow(void);

/* A list too long for memory: begin, any number of rows (released), end. Text: `line` for each row. */
void output_list_begin(void);
void output_list_row(json_t *row, const char *line);
void output_list_end(void);

/* One answer of a stream: under --json the object on a line of its own (released), else the text. */
void output_answer(json_t *row, const char *text);

/* The end of a stream, on stderr: under --json the object on a line of its own (released), else a note. */
void output_summary(json_t *row, const char *text);

/* Discards what is not flushed, and further output. Call it if nobody reads, and this is no failure. */
void output_give_up(void);

/* Discards all output and the notes from now on. Errors and warnings are still printed. */
void output_be_quiet(void);

/* Standard output for a document that was asked for, for example an export: output_be_quiet() does not discard it. */
FILE *output_document(void);

/* Passes the printed output on to its reader. 0; -errno. */
int output_flush(void);

/* Flushes for the last time. Returns the -errno of the first flush that failed; -EIO if it is not known. */
int output_end(void);

/*
 * A command that must not wait for its reader at a bad time calls output_hold() before anything is printed.
 * After that, only output_flush() passes output on; call it soon after output_is_due().
 * output_can_flush(): whether a flush would not wait, within `timeout_ms`; false for a terminal.
 */
void output_hold(void);
bool output_is_due(void);
bool output_can_flush(int timeout_ms);

/*
 * To stderr: the one line of a failure, under --json {"error": ..., "status": ...}. Quoted words are made safe to print
 * (see safe_text.h), also in notes and warnings.
 */
void output_error(int status, const char *text);

/* To stderr, in text only: what the operator should know besides the result. */
__attribute__((format(printf, 1, 2))) void output_note(const char *format, ...);

/* The same, and for programs too: under --json {"note": ...}. */
__attribute__((format(printf, 1, 2))) void output_warning(const char *format, ...);

/* A progress bar on stderr if that is a terminal. `fraction` < 0: not known. */
void output_progress(const char *what, __u64 count, double fraction, double seconds);
void output_progress_end(void);

#endif
