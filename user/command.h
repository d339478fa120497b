/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a command is: data that main() looks up and help is made from. To add one, write a
 * command_NAME.c with a `const struct command` above its code, and name it in command.c's table.
 */
#ifndef XDP_CUCKOO_COMMAND_H
#define XDP_CUCKOO_COMMAND_H

#include <stdbool.h>

#include "apply.h"
#include "kernel.h"
#include "reason.h"

/* Exit status of the tool. */
enum command_status {
	STATUS_DONE = 0,    /* done, or "yes" */
	STATUS_NO = 1,      /* not blocked; no such rule; it was there already */
	STATUS_USAGE = 2,   /* usage or bad input */
	STATUS_SYSTEM = 3,  /* the system refused: kernel, permission, I/O */
	STATUS_FULL = 4,    /* table full or memory short */
	STATUS_BUSY = 5,    /* another XDP program is in the way */
};

/* Options beside the global ones; the bits say which of them a command takes. */
enum command_option {
	OPTION_MODE = 1 << 0,
	OPTION_CAPACITY = 1 << 1,
	OPTION_ALL = 1 << 2,
	OPTION_FORMAT = 1 << 3,   /* --compact, --fingerprint, --no-counters */
	OPTION_COUNTERS = 1 << 4,
};

struct invocation {
	const char *name;  /* of the filter */
	const char *state; /* directory of all stores; NULL: the default */
	enum kernel_mode mode;
	__u64 capacity;    /* 0 where it was not given */
	bool is_all;
	bool is_compact, has_no_counters;
	unsigned int fingerprint_bits; /* 0 where it was not given */
	bool wants_counters;
	int count;         /* of operands */
	char *const *operands;
};

struct command {
	const char *name;
	const char *usage;   /* operands and options, as after the name */
	const char *summary; /* one line */
	const char *help;    /* the rest of `help NAME`, with examples; whole lines */
	unsigned int options; /* enum command_option bits */
	int min, max;        /* operands; max -1: any number */
	enum command_status (*run)(const struct invocation *invocation);
};

/* The commands, ended by NULL: for main() and for help. */
extern const struct command *const command_table[];

const struct command *command_find(const char *name);

/* Prints the reason and returns the status that stands for `error` (-errno). */
enum command_status command_failed(int error, const struct reason *reason);

/* The same for a message made here. */
__attribute__((format(printf, 2, 3))) enum command_status command_error(enum command_status status,
									const char *format, ...);

/* Says on stderr what apply_open() had to do: adopt, repair, or that no filter runs. */
void command_report_targets(const struct apply *apply);

/* The same, after a change: which tables took the place of others. */
void command_report_rebuilds(const struct apply *apply);

/* How a table keeps its entries: "exact, counted", "compact, 16 bits", ... */
const char *command_format_name(const struct abi_options *options);

/* Reads a number of rules, 1 or more. Prints what is wrong with `text`, which `what` names. */
enum command_status command_number(const char *what, const char *text, __u64 *number);

/* Reads the operands as a rule: words, or one quoted text. Prints what is wrong. */
enum command_status command_rule(const struct invocation *invocation, struct rule *rule);

/* Opens the store to read. A store that does not exist yet is empty: 0, and *store is NULL. */
int command_open_store(const struct invocation *invocation, struct store **store,
		       struct reason *reason);

#endif
