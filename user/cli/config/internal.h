/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the files that read a configuration. Only they include this header. */
#ifndef XDP_CUCKOO_CONFIG_INTERNAL_H
#define XDP_CUCKOO_CONFIG_INTERNAL_H

#include "config/config.h"

enum config_section {
	SECTION_NONE,
	SECTION_FILTER,
	SECTION_POLICY,
	SECTION_LIST,
	SECTION_FLEET,
	SECTION_FLOWSPEC,
	SECTION_CROWDSEC,
	SECTION_UNKNOWN
};

/* Their names, without "[" and "]". */
extern const char *const config_sections[SECTION_UNKNOWN];

struct config_reading {
	struct config *config;
	const char *path;
	void (*report)(const char *text);
	unsigned int line, section_line[SECTION_UNKNOWN], policy_line[OUTCOME_POLICIES];
	enum config_section section;
	__u64 given; /* the keys seen in this section, as bits: their place in the section */
	bool is_refused, is_out_of_memory;
};

/* Reports a mistake in a line; line 0: in the whole file. refuse(): in the present line. */
__attribute__((format(printf, 3, 4))) void config_refuse(struct config_reading *reading, unsigned int line,
							 const char *format, ...);
#define refuse(reading, ...) config_refuse(reading, (reading)->line, __VA_ARGS__)

/* A copy of the text until config_close(). NULL: no memory, or too many; `reading` notes it. */
const char *config_keep(struct config_reading *reading, const char *text);

/* Takes a key of the present section. Mistakes go to config_refuse(). */
void config_take_key(struct config_reading *reading, const char *name, const char *value);

#endif
