/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files that read a configuration share; nobody else includes it. */
#ifndef XDP_CUCKOO_CONFIG_INTERNAL_H
#define XDP_CUCKOO_CONFIG_INTERNAL_H

#include <stdio.h>

#include "config/config.h"

enum config_section { SECTION_NONE, SECTION_FILTER, SECTION_POLICY, SECTION_LIST, SECTION_UNKNOWN };

/* The file while it is read. libinih knows the syntax, and tells neither lines nor sections without keys. */
struct config_reading {
	struct config *config;
	const struct invocation *invocation;
	FILE *file;
	const char *path;
	void (*refuse)(const char *text);
	unsigned int line, filter_line, policy_line[OUTCOME_POLICIES];
	enum config_section section;
	bool has_policy_section;
	__u32 given; /* keys of the section so far, by their place in the table of keys */
	bool is_refused, is_out_of_memory;
};

/* Tells what is wrong with a line; 0: with the whole file. */
__attribute__((format(printf, 3, 4))) void config_refuse(struct config_reading *reading, unsigned int line,
							 const char *format, ...);

/* A copy of the text, or NULL, which is noted. */
char *config_copy(struct config_reading *reading, const char *text);

/* For libinih, of a struct config_reading: 1, always, since what is wrong is told here. */
int config_take_key(void *reading, const char *ignored, const char *name, const char *value);

#endif
