/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Colours and width of a terminal. Pipes and files get plain text only, and so does a terminal if NO_COLOR is
 * set (https://no-color.org), or TERM is "dumb" or not set.
 */
#ifndef XDP_CUCKOO_TERMINAL_H
#define XDP_CUCKOO_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

enum terminal_style {
	TERMINAL_PLAIN,
	TERMINAL_BOLD,   /* headings */
	TERMINAL_GREEN,  /* all is well */
	TERMINAL_YELLOW, /* look at this */
	TERMINAL_RED,    /* dropped; failed */
};

/* Whether the stream is a terminal that understands cursor movements. */
bool terminal_is_able(FILE *stream);

/* Width of the terminal; 0: not a terminal, or not known. */
int terminal_columns(FILE *stream);

/* Writes the text, in this style if the stream can show it. */
void terminal_put(FILE *stream, enum terminal_style style, const char *text);

#endif
