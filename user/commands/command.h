/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a command is: data that main() looks up and help is made from. To add one, write a
 * command_NAME.c with a `const struct command` above its code, and name it in command.c's table.
 */
#ifndef XDP_CUCKOO_COMMAND_H
#define XDP_CUCKOO_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "change/change.h"
#include "host/protected_flows.h"
#include "kernel/kernel.h"
#include "base/privileges.h"
#include "base/error_reason.h"
#include "counters/by_rule.h"
#include "lists/import.h"

/* Exit status of the tool. */
enum command_status {
	STATUS_DONE = 0,   /* done, or "yes" */
	STATUS_NO = 1,     /* not blocked; no such rule; it was there already */
	STATUS_USAGE = 2,  /* usage or bad input */
	STATUS_SYSTEM = 3, /* the system refused: kernel, permission, I/O */
	STATUS_FULL = 4,   /* table full or memory short */
	STATUS_BUSY = 5,   /* another XDP program, or monitor, is in the way */
};

/* Options beside the global ones; the bits say which of them a command takes. */
enum command_option {
	OPTION_MODE = 1 << 0,
	OPTION_CAPACITY = 1 << 1,
	OPTION_ALL = 1 << 2,
	OPTION_FORMAT = 1 << 3, /* --compact, --fingerprint, --no-counters, --no-spare */
	OPTION_COUNTERS = 1 << 4,
	OPTION_FORCE = 1 << 5,
	OPTION_CONFIRM = 1 << 6,
	OPTION_MONITOR = 1 << 7,
	OPTION_TIMEOUT = 1 << 8,
	OPTION_LIST_FORMAT = 1 << 9,
	OPTION_STRICT = 1 << 10,
	OPTION_DRY_RUN = 1 << 11,
	OPTION_REPLACE = 1 << 12,
	OPTION_SECONDS = 1 << 13,
	OPTION_DRIVER_NS = 1 << 14,
	OPTION_INTERVAL = 1 << 15,
	OPTION_COUNT = 1 << 16,
	OPTION_BY = 1 << 17, /* --by, --top */
	OPTION_RESET = 1 << 18,
	OPTION_SAMPLES = 1 << 19, /* --every, --rate, --write */
	OPTION_LISTEN = 1 << 20,
	OPTION_LIST = 1 << 21,
	OPTION_ON_STOP = 1 << 22,
};

struct invocation {
	const char *name;  /* of the filter */
	const char *state; /* directory of all stores; NULL: the default */
	enum kernel_mode mode;
	__u64 capacity; /* 0 where it was not given */
	bool is_all;
	bool is_compact, has_no_counters, has_no_spare;
	unsigned int fingerprint_bits; /* 0 where it was not given */
	bool wants_counters;
	bool is_forced;
	bool is_monitor_only;
	bool is_strict, is_dry_run, is_replace, is_on_stop;
	__s64 confirm_ms, timeout_ms;        /* 0 where they were not given */
	const char *list_format, *list_name; /* NULL where they were not given */
	__u64 seconds, driver_ns;            /* 0 where they were not given */
	__s64 interval_ms;                   /* 0 where it was not given */
	__u64 end_count; /* of intervals, or packets, after which it ends; 0 where it was not given */
	__u64 top;       /* 0 where it was not given */
	const char *by;  /* NULL where it was not given */
	bool is_reset;
	__u64 every, rate;               /* of samples; 0 where they were not given */
	const char *write_path, *listen; /* NULL where they were not given */
	int count;                       /* of operands */
	char *const *operands;
};

/* What a command is for: the overview is arranged so. */
enum command_group {
	COMMAND_TOOL, /* the tool itself */
	COMMAND_RUN,
	COMMAND_RULES,
	COMMAND_LOOK,
	COMMAND_SAFETY,
	COMMAND_HIDDEN, /* for programs: in no help */
};

struct command {
	const char *name;
	enum command_group group;
	const char *usage;         /* operands and options, as after the name */
	const char *summary;       /* one line */
	const char *help;          /* the rest of `help NAME`, with examples; whole lines */
	void (*explain)(FILE *to); /* writes what stands in help in place of a line "@"; NULL: there is none */
	unsigned int options;      /* enum command_option bits */
	int min, max;              /* operands; max -1: any number */
	unsigned int needs;        /* enum privilege: all others are given up before it runs */
	enum command_status (*run)(const struct invocation *invocation);
};

/* The commands, ended by NULL: for main() and for help. */
extern const struct command *const command_table[];

const struct command *command_find(const char *name);

/* Says that there is none of that name, and which may be meant. */
enum command_status command_unknown(const char *name);

/* The status that stands for `error` (-errno). command_failed() also prints the reason. */
enum command_status command_status_of(int error);
enum command_status command_failed(int error, const struct reason *reason);

/* The same for a message made here. */
__attribute__((format(printf, 2, 3))) enum command_status command_error(enum command_status status, const char *format,
									...);

/* " --name NAME", for a command to be typed; "" for the default one. */
#define COMMAND_NAME_BYTES (ABI_NAME_BYTES + 8)
const char *command_name_option(const char *name, char text[COMMAND_NAME_BYTES]);

/* Says that no filter of that name runs, and which may be meant. STATUS_NO. */
enum command_status command_not_running(const char *name);

/* rule_counts_open(), for the --name; prints what is wrong. */
enum command_status command_open_counts(const struct invocation *invocation, struct rule_counts *counts);

/*
 * Says on stderr what apply_open() had to do: adopt, repair, take over, undo; command_report_targets(): or that no
 * filter runs; command_report_undone(): only what it undid, or could not undo, which is told once.
 */
void command_report_found(struct apply *apply);
void command_report_targets(struct apply *apply);
void command_report_undone(struct apply *apply);

/* The same, after a change: which tables took the place of others. */
void command_report_rebuilds(const struct apply *apply);

/* How a table keeps its entries: "exact, counted", "compact, 16 bits", ... */
const char *command_format_name(const struct abi_options *options);

/* The table that the options of OPTION_FORMAT ask for; whether any was given; and whether they go together. */
struct abi_options command_table_options(const struct invocation *invocation);
bool command_names_format(const struct invocation *invocation);
enum command_status command_check_format(const struct invocation *invocation);

/* Says that `what` cannot be `word`, but one of the `choices` that '|' joins, and suggests the nearest. */
enum command_status command_not_a_choice(const char *what, const char *word, const char *choices);

/* What the words of --mode and --fingerprint mean. 0; -EINVAL. */
int command_mode_named(const char *word, enum kernel_mode *mode);
int command_fingerprint_named(const char *word, unsigned int *bits);

/* The outcome of packets that a word names, or OUTCOME_POLICIES; what dropping these does to the host, or NULL. */
enum abi_outcome command_outcome_named(const char *word);
const char *command_outcome_danger(enum abi_outcome outcome);

/* Reads a number of rules, 1 or more. Prints what is wrong with `text`, which `what` names. */
enum command_status command_number(const char *what, const char *text, __u64 *number);

/* Reads the operands as a rule: words, or one quoted text. Prints what is wrong. */
enum command_status command_rule(const struct invocation *invocation, struct rule *rule);

/*
 * apply_open(), for a change that must not lock this host out: not without --force. `guard` is to be
 * closed after `apply`; guard_close() and apply_close() accept them also where this failed.
 */
int command_open_guarded(const struct invocation *invocation, struct apply *apply, struct guard *guard,
			 struct reason *reason);

/*
 * Says on stderr which stored rules block this host, its gateways or its operator: they were perhaps added with
 * --force, or on another host, or the addresses are new. For what is about to put them in force. -ENOMEM.
 */
int command_report_blocked(const struct apply *apply, struct reason *reason);

struct command_imported {
	json_t *answer; /* owned by the caller; it may exist even if the import failed */
	__u64 bad_lines;
	__s64 deadline_ms; /* to confirm the import: see change/watchdog.h; 0: it is not pending */
};

/* Imports the file at `path`; NULL deletes the list options->list_name. Errors as import_open(), import_change(). */
int command_import_list(const struct import_options *options, const char *path, struct command_imported *imported,
			struct reason *reason);

/* The options of the command line that are for an import. */
struct import_options command_import_options(const struct invocation *invocation);

/* Says on stderr until when, and by what, an operation with --confirm is to be confirmed. */
void command_report_confirm(const struct invocation *invocation, __s64 deadline_ms);

/* What a filter does at present: "filters", or why it does not. Returns `text` or a constant. */
#define COMMAND_EFFECT_BYTES 128
const char *command_effect(const struct kernel_filter *filter, char text[COMMAND_EFFECT_BYTES]);

/* Says on stderr if the filter does not filter: monitor-only, panic, unconfirmed. */
void command_report_run(const struct kernel_filter *filter);

/*
 * Says on stderr on which interfaces kernel_watch() has seen the filter bypassed, and where the MTU has grown beyond
 * what its program takes. True: it is bypassed somewhere.
 */
bool command_report_lost(const struct kernel_filter *filter);

/* For what has just loaded the filter: watches it, and says the same of it; under --json nobody would read that. */
void command_watch(const char *name);

/* kernel_fit_mtu(), wherever the filter runs already; says where it did it, and where the driver refuses. */
void command_fit_mtu(struct apply *apply);

/* Whether it passes everything, since what was to be confirmed was not in time. */
bool command_passes_unconfirmed(const struct kernel_filter *filter);

/* Whether rules are in force: it is set up, and neither in panic, unconfirmed too long nor monitor-only. */
bool command_is_filtering(const struct kernel_filter *filter);

/*
 * The number of the list that --list names, 0 where it was not given; prints that there is none. And the names
 * of lists by their bits, as an array.
 */
enum command_status command_find_list(const struct invocation *invocation, const struct store_lists *lists,
				      unsigned int *number);
json_t *command_list_names(const struct store_lists *lists, __u64 owners);

/*
 * Opens the store to read. A store that does not exist yet is empty: 0, and *store is NULL. Says on stderr where it
 * holds a change that was not confirmed in time and that nobody has undone: command_is_late().
 */
int command_open_store(const struct invocation *invocation, struct store **store, struct reason *reason);
bool command_is_late(struct store *store);

#endif
