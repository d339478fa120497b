/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options of the tool, one row each. A row says what value the option takes and where the value goes;
 * help, completion and the man page are made from it. The usage of a command says which rows it takes.
 */
#ifndef XDP_CUCKOO_OPTIONS_H
#define XDP_CUCKOO_OPTIONS_H

#include "command/command.h"

#define EXPORTER_LISTEN_DEFAULT "127.0.0.1:9917"

struct options_arguments {
	struct invocation invocation;
	__u64 given; /* bit i: options_table[i] was given */
	bool wants_json, wants_quiet, wants_help, wants_version;
	bool wants_numbers; /* nothing has to be done for it */
};

struct option_row {
	const char *name;    /* without the dashes */
	const char *value;   /* as help shows it: N, DIR, or words joined by '|'; NULL: no value */
	const char *meaning; /* one line */
	enum value_kind kind;
	bool is_common;        /* every command takes it */
	size_t to;             /* offset of the destination in struct options_arguments */
	__u64 max;             /* of VALUE_WHOLE and VALUE_TIME; 0: no limit */
	const char *unit;      /* of VALUE_WHOLE */
	char letter;           /* the short form, as -j; 0: none */
	const char *elsewhere; /* what to type for what the letter means in other tools, if its value is wrong; or NULL */
};

/* Ends with a row without a name. */
extern const struct option_row options_table[];

/* Whether the command takes the option. */
bool options_are_of(const struct option_row *row, const struct command *command);

/*
 * Reads the options of the command line and moves them before the other words. argv[optind] is then the first
 * other word. Prints an error if an option is wrong.
 */
enum command_status options_read(int argc, char **argv, struct options_arguments *arguments);

/* Does as if this option, which takes no value, had been given. */
void options_give(struct options_arguments *arguments, const char *name);

/* Whether the command takes these options and this many words. Prints an error if not. */
enum command_status options_check(const struct command *command, const struct options_arguments *arguments);

#endif
