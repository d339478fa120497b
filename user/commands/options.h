/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options of the tool, as data: reading the command line, help and completion share one table. It says what each
 * does to the invocation; which of them a command takes, the command says.
 */
#ifndef XDP_CUCKOO_OPTIONS_H
#define XDP_CUCKOO_OPTIONS_H

#include "commands/command.h"

#define EXPORTER_LISTEN_DEFAULT "127.0.0.1:9917"

struct options_arguments {
	struct invocation invocation;
	__u64 given; /* bit i: options_table[i] */
	bool wants_help, wants_version;
};

struct options_kind {
	const char *name;    /* without the dashes */
	unsigned int bit;    /* enum command_option; 0: every command takes it */
	const char *value;   /* what it is: N, DIR, or the words that '|' joins; NULL: it has none */
	const char *meaning; /* one line */
	int (*take)(struct options_arguments *arguments, const char *value); /* NULL: a switch */
	size_t member;                                                       /* of a switch, a bool of the invocation */
};

/* Ended by one without a name. To add one, add a row, and tell of it where commands that take it do. */
extern const struct options_kind options_table[];

/* Whether the command takes it. */
bool options_are_of(const struct options_kind *kind, const struct command *command);

/*
 * Reads them out of the command line, and puts them before the other words, of which argv[optind] is then the first.
 * Prints what is wrong.
 */
enum command_status options_read(int argc, char **argv, struct options_arguments *arguments);

/* Whether the command takes what is given: these options, so many words. Prints what is wrong. */
enum command_status options_check(const struct command *command, const struct options_arguments *arguments);

#endif
