/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the files that read a configuration. Only they include this header. */
#ifndef XDP_CUCKOO_CONFIG_INTERNAL_H
#define XDP_CUCKOO_CONFIG_INTERNAL_H

#include <stdio.h>

#include "config/config.h"

enum config_section { SECTION_NONE, SECTION_FILTER, SECTION_POLICY, SECTION_LIST, SECTION_UNKNOWN };

/*
 * libinih parses the syntax. It reports no line numbers and no empty sections, so this structure tracks both.
 */
struct config_reading {
	struct config *config;
	FILE *file;
	const char *path;
	void (*refuse)(const char *text);
	unsigned int line, filter_line, policy_line[OUTCOME_POLICIES];
	enum config_section section;
	bool has_policy_section;
	__u32 given; /* the keys seen in this section, as bits: indexes of the table of keys */
	bool is_refused, is_out_of_memory;
};

/* Reports a mistake in a line; line 0: in the whole file. */
__attribute__((format(printf, 3, 4))) void config_refuse(struct config_reading *reading, unsigned int line,
							 const char *format, ...);

/* A copy of the text; NULL: no memory, which `reading` notes. */
char *config_copy(struct config_reading *reading, const char *text);

/* The handler that libinih calls for each key. Always returns 1: mistakes go to config_refuse(). */
int config_take_key(void *reading, const char *ignored, const char *name, const char *value);

#endif
