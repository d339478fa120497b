/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A line of a configuration file: xdp-cuckoo.conf(5). */
#ifndef XDP_CUCKOO_INI_LINE_H
#define XDP_CUCKOO_INI_LINE_H

enum ini_kind {
	INI_EMPTY,   /* nothing, or only a comment */
	INI_SECTION, /* [NAME]; value: what follows it and is no comment, or "" */
	INI_KEY,     /* NAME = VALUE, or NAME: VALUE */
	INI_OPEN,    /* a section without its ] */
	INI_WRONG,   /* none of these */
};

struct ini_line {
	enum ini_kind kind;
	char *name, *value; /* without white space at their ends; NULL: the kind has none */
};

/* Cuts the line in place: the result points into it. INI_OPEN and INI_WRONG leave it as it is. */
struct ini_line ini_line_parse(char *line);

#endif
