/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Everything the tool prints, as text or JSON: a command states its fields once, as a JSON value, and
 * the two forms are made from it. In text, '_' in a name is a space; on a terminal headings, what is dropped and what
 * is wrong stand out.
 */
#ifndef XDP_CUCKOO_OUTPUT_H
#define XDP_CUCKOO_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>
#include <linux/types.h>

void output_use_json(bool is_json);
bool output_is_json(void);

/* A message, with '?' in the place of each byte that is not of UTF-8: JSON takes nothing else. NULL: no memory. */
json_t *output_string(const char *text);

/*
 * Prints a value and releases it. Text: an object as "name: value" lines, an array of objects as a
 * table with a heading, an array of strings on one line. A table that the terminal has too few columns for is printed
 * object after object, so that no row breaks.
 */
void output_print(json_t *value);

/* Text: a line that heads others. */
void output_heading(const char *text);

/* A list too long to hold: begin, any number of rows (released), end. Text: `line` for each row. */
void output_list_begin(void);
void output_list_row(json_t *row, const char *line);
void output_list_end(void);

/* One of a stream of answers: under --json the object, on a line of its own (released), else the text. */
void output_answer(json_t *row, const char *text);

/* To stderr, at the end of a stream: under --json the object, on a line of its own (released), else a note. */
void output_summary(json_t *row, const char *text);

/* Nobody reads what is printed any more, and that is no failure. */
void output_give_up(void);

/* Hands what has been printed on to whoever reads it. 0; -errno. */
int output_flush(void);

/* At the end: the same, or the -errno of the first time that it failed; -EIO where that is not known. */
int output_end(void);

/*
 * For who must not wait for a reader at a bad time. After output_hold(), to be called before anything is printed, only
 * output_flush() hands on, which is to be called as soon as output_is_due(). Whether it would not wait, within
 * `timeout_ms`: of a terminal that is never known.
 */
void output_hold(void);
bool output_is_due(void);
bool output_can_flush(int timeout_ms);

/* To stderr: the one line of a failure, under --json {"error": ..., "status": ...}. */
void output_error(int status, const char *text);

/* To stderr, in text only: what the operator should know beside the result. */
__attribute__((format(printf, 1, 2))) void output_note(const char *format, ...);

/* The same for what programs should know too: under --json {"note": ...}. */
__attribute__((format(printf, 1, 2))) void output_warning(const char *format, ...);

/* A progress bar on stderr, only where that is a terminal; `fraction` < 0 where it is not known. */
void output_progress(const char *what, __u64 count, double fraction, double seconds);
void output_progress_end(void);

#endif
