/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What may be written to a stream if it is a terminal: colours, and how many columns. Nothing but text goes into pipes
 * and files, nor where NO_COLOR is set (https://no-color.org) or TERM is "dumb" or not set.
 */
#ifndef XDP_CUCKOO_TERMINAL_H
#define XDP_CUCKOO_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

enum terminal_style {
	TERMINAL_PLAIN,
	TERMINAL_BOLD,   /* headings */
	TERMINAL_GREEN,  /* what runs as it should */
	TERMINAL_YELLOW, /* what is to be looked at */
	TERMINAL_RED,    /* what is dropped; what fails */
};

/* Whether it is a terminal that understands cursor movements. */
bool terminal_is_able(FILE *stream);

/* Columns of it; 0 where it is no terminal, or does not tell. */
int terminal_columns(FILE *stream);

/* Writes the text, in that style where the stream shows it. */
void terminal_put(FILE *stream, enum terminal_style style, const char *text);

#endif
