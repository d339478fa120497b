/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A command is a `const struct command`, below its code in its own file, and named in the main() of its program.
 * command_table.c lists the commands of all programs; help and the man page are made from it. help/NAME.txt is the text of
 * the command's help: whole lines, with two examples or more.
 */
#ifndef XDP_CUCKOO_COMMAND_H
#define XDP_CUCKOO_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "base/error_reason.h"
#include "base/privileges.h"
#include "change/change.h"
#include "config/config.h"
#include "counters/counters.h"
#include "host/host.h"
#include "kernel/kernel.h"
#include "lists/import.h"

/* Exit status of the tool. */
enum command_status {
	STATUS_DONE = 0,   /* done, or "yes" */
	STATUS_NO = 1,     /* not blocked; no such rule; already there */
	STATUS_USAGE = 2,  /* usage or bad input */
	STATUS_SYSTEM = 3, /* the system refused: kernel, permission, I/O */
	STATUS_FULL = 4,   /* table full or memory short */
	STATUS_BUSY = 5,   /* another XDP program, or monitor, is in the way */
	STATUS_LATE = 6,   /* published, but fewer replicas have it than asked */
};

/* A command line, read. Numbers are 0 and pointers are NULL if the option was not given. */
struct invocation {
	const char *name;  /* of the filter */
	bool is_named;     /* --name was given, or the command is about one filter */
	const char *state; /* directory of all stores; NULL: the default */
	struct load_options load;
	bool is_all, wants_counters, is_forced, is_strict, is_dry_run, is_replace, is_on_stop, is_reset, is_verbose;
	bool may_exist; /* what is there already, or is not there, is no error */
	bool is_new_only;
	bool is_once, is_accepted, is_staged, is_printed, is_addresses;
	__s64 confirm_ms, timeout_ms, interval_ms;
	const char *pins; /* NULL: the default */
	const char *list_format, *json_path, *preset, *list_name, *set_name, *by, *write_path, *listen, *config_path,
		*interface;
	const char *sort, *search;
	bool is_long;
	enum rule_action action;
	bool has_action; /* it is given */
	__u64 seconds, driver_ns, top, wait_percent, limit;
	__u64 end_count;   /* intervals or packets after which the command ends */
	__u64 every, rate; /* of samples */
	int count;         /* of operands */
	char *const *operands;
};

struct command {
	const char *name;
	const char *usage; /* operands, and the options that it takes besides those of all commands, as after the name */
	void (*explain)(FILE *to); /* writes the text for the line "@" of help; NULL: help has no such line */
	int min, max;              /* operands; max -1: any number */
	const char *instead;       /* what to type for one more operand; NULL: the usage says it */
	unsigned int needs;        /* enum privilege: the command gives up all others before it runs */
	const char *starts; /* with this first operand it also keeps PRIVILEGE_CHILD for a program that it starts */
	enum command_status (*run)(const struct invocation *invocation);
};

/* For `stats rules`, `top eth0`. */
#define INSTEAD_INTERFACES "more counters are printed by: xdp-cuckoo stats --by interface|cpu|source|rule|list|prefix"

/* ---- program.c: the tool, and the programs that it starts ---- */

enum program_number {
	PROGRAM_TOOL,
	PROGRAM_WATCH,
	PROGRAM_FEED,
	PROGRAM_FLEET,
	PROGRAM_EXPORTER,
	PROGRAM_BENCH,
	PROGRAMS,
};

/* The main() of a program makes one. */
struct program {
	enum program_number number;
	const struct command *const *commands; /* its own; NULL after the last */
	const struct help_text {
		const char *name, *text;
	} *texts; /* of help/; a row without a name after the last. A name with _ is that of a part of the overview */
};

/* The one that runs. Never NULL in a command. */
extern const struct program *program;

/* Reads the words of main(), and runs the command that they name. Returns the exit status. */
int program_run(int argc, char **argv, const struct program *running);

struct command_row;

/* The command of this program, or one that every program has. NULL: another program has it. */
const struct command *program_command(const struct command_row *row);

/*
 * Makes this process the program that has the command, with the words, NULL after the last, or those of main() if `words` is
 * NULL, and without capabilities that no command needs. Returns only if it cannot: it prints the error.
 */
enum command_status program_start(const struct command_row *row, char *const *words);

/* What the program prints for `help --json`, an array; NULL: it is not installed, or fails. */
json_t *program_help(enum program_number number);

/* ---- command_table.c ---- */

/* The commands of all programs, as help shows them. Ends with a row without a name. */
struct command_row {
	const char *name;
	enum program_number program;
	enum command_group {
		COMMAND_RUN,
		COMMAND_RULES,
		COMMAND_LOOK,
		COMMAND_FLEET,
		COMMAND_TOOL,
		COMMAND_HIDDEN, /* for programs: help does not show it */
	} group;                /* the part of the overview that shows the command */
	const char *summary; /* one line */
	bool is_daily;       /* the overview also says the summary */
};
extern const struct command_row command_table[];

/* By its name, or by an alias. */
const struct command_row *command_find(const char *name);

/* Whether this is a command or an alias, or command_fail_unknown() knows what to type instead. */
bool command_is_known(const char *name);

/* Row `index` of the aliases: names joined by '|', their command, and command_alias_word(). NULL after the last. */
const char *command_aliases(size_t index, const char **command, const char **word);

/*
 * The word that an alias puts before those of its command: `allow A` is `add pass A`; or the option that it gives: `down` is
 * `unload --all`. NULL: none.
 */
const char *command_alias_word(const char *name);

/* Says that there is no such command, and suggests the nearest one. */
enum command_status command_fail_unknown(const char *name);

/* ---- help.c ---- */

/* help/NAME.txt of the command; "": there is none. */
const char *command_help_text(const struct command *command);

/* ---- command.c: errors ---- */

/* The exit status for `error` (-errno). command_fail_because() also prints the reason. */
enum command_status command_status_of(int error);
enum command_status command_fail_because(int error, const struct reason *reason);

/* Prints the answer, or the reason if `error` is not 0. Releases the answer. */
enum command_status command_answer(int error, const struct reason *reason, json_t *answer);

/* Prints an error message. Returns `status`. */
__attribute__((format(printf, 2, 3))) enum command_status command_fail(enum command_status status, const char *format,
								       ...);

/*
 * command_fail() with what is wrong: `word` is none of the `choices`, joined by '|'; no filter of this name runs, and
 * perhaps a similar name was meant; for the latter, command_close_not_running() also closes the session.
 */
enum command_status command_fail_choices(const char *what, const char *word, const char *choices);
enum command_status command_fail_not_running(const char *name);
enum command_status command_close_not_running(struct session *session);

/* ---- command.c: operands and options ---- */

/* Whether --compact, --fingerprint, --no-counters and --no-spare fit together. */
enum command_status command_check_format(const struct load_options *load);

/* Interfaces as `ip` writes them, "dev eth0": moves the operands past the word dev. */
void command_skip_dev(struct invocation *invocation);

/* Reads a number of rules, 1 or more, also as 10k or 10M. Prints an error if `text` is not; `what` names it. */
enum command_status command_read_rule_count(const char *what, const char *text, __u64 *number);

/*
 * Read the operands as one rule, or as several: separate words, or one quoted text. They print the error. *list becomes
 * the NAME of the words `list NAME`, else that of --list, else NULL. `list` NULL: these words are refused. The caller
 * frees the rules if there was no error.
 */
enum command_status command_read_rules(const struct invocation *invocation, struct rules *rules, const char **list);
enum command_status command_read_rule(const struct invocation *invocation, struct rule *rule, const char **list);

/*
 * The same of words, without a message. *list stays if there are no words `list NAME`. `is_strict` as in rule_each().
 * 0; -EINVAL or -ENOMEM with the reason.
 */
int command_parse_rules(struct rule_words *words, bool is_strict, struct rules *rules, const char **list,
			struct reason *reason);

/* Whether some packet can match one of the rules that are to be added; -EINVAL with the reason. */
int command_check_sense(const struct rules *rules, struct reason *reason);

/* Whether this cannot be a word of a rule, and the store has a list of that name. */
bool command_is_list(const struct invocation *invocation, const char *name);

/* Prints the reason of a failed change of the rules of a list. */
enum command_status command_fail_list(int error, const struct reason *reason);

/* ---- command.c: stores and filters ---- */

/*
 * Opens the store to read. 0, with *store NULL, if there is no store yet: it counts as empty. Warns on stderr
 * if command_is_late(). command_read_store() prints the error; if there is no store, it notes where none is: the name may
 * be mistyped. For a document, a missing store is an error.
 */
int command_open_store(const struct invocation *invocation, struct store **store, struct reason *reason);
enum command_status command_read_store(const struct invocation *invocation, bool is_for_document, struct store **store);

/* Whether the store holds a change that nobody confirmed in time, and that nothing has undone yet. */
bool command_is_late(struct store *store);

/*
 * session_open() for a change that must not lock this host out, unless --force is given; with --dry-run
 * session_open_dry_run(). `only`: of guard_open_for(), or NULL. The caller closes `guard` after `session`, even if this failed.
 */
int command_open_guarded(const struct invocation *invocation, const struct rule *only, struct session *session,
			 struct guard *guard, struct reason *reason);

/* From now on the session notes that this process's user, or the one behind sudo, adds rules by hand. */
void command_note_adder(struct session *session);

/* change_begin(); with --confirm the change is pending. */
int command_begin(const struct invocation *invocation, struct session *session, struct reason *reason);

/* With --dry-run, the answer with "dry_run" before it. Takes `answer`. */
json_t *command_note_dry_run(const struct invocation *invocation, json_t *answer);

/* rule_counts_open() for the filters of --name and the store, which may be NULL. Prints the error. */
enum command_status command_open_counts(const struct invocation *invocation, struct store *store,
					struct rule_counts *counts);

/* All lists of a store, and the number of the list of --list; 0: not given. Prints an error. `store` may be NULL. */
enum command_status command_find_list(const struct invocation *invocation, struct store *store,
				      struct store_lists *lists, unsigned int *number);

/* An array with the names of the lists in `owners`, a set of bits. */
json_t *command_list_names(const struct store_lists *lists, __u64 owners);

/* The name of an interface, safe to print. */
json_t *command_interface(const struct kernel_attachment *attachment);

/*
 * For code below the commands: a note; a bad line, for config_open() and import_open(); a warning, which is lost if nobody
 * reads standard error, for struct list_keeper: rules are worth more.
 */
void command_note(const char *text);
void command_report_bad_line(const char *text);
void command_warn_reader(const char *text);

/* Writes to standard output if the path is "-" or names it, else a file as a whole. `write`: 0; -errno. Prints the error. */
enum command_status command_write_file(const char *path, int (*write)(FILE *to, void *context), void *context);

/*
 * A change that may wait for `confirm`. command_open_change() is command_open_guarded(), or session_open() without a guard.
 * Call command_close_change() in any case, before anything is printed: a closed pipe could end this process. It starts the
 * watchdog if the change waits, even if an error came after all was stored. It returns `error`, or its own error if that
 * is 0. command_end_change() also prints the answer, and how to confirm. It takes `answer`.
 */
struct command_change {
	struct session session;
	struct guard guard;
	struct watchdog watchdog;
	bool is_changed; /* for the answer: the caller says so */
};
int command_open_change(const struct invocation *invocation, bool is_guarded, const struct rule *only,
			struct command_change *change, struct reason *reason);
int command_close_change(struct command_change *change, int error, struct reason *reason);
enum command_status command_end_change(const struct invocation *invocation, struct command_change *change, int error,
				       struct reason *reason, json_t *answer);

/* Writes metrics for Prometheus, or as JSON, to standard output or to a file as a whole. Takes over `metrics`. */
enum command_status command_write_metrics(const char *path, json_t *metrics);

/* Writes for how long a list has not been fed: "for 5m", "never". NULL: it is fed, or has no source to wait for. */
#define COMMAND_NOT_FED_BYTES (RULE_TIME_BYTES + 8)
const char *command_not_fed(const struct store_list *list, const struct store_feed *feed,
			    char text[COMMAND_NOT_FED_BYTES]);

/* The same for programs: "not_fed", and "not_fed_s", null if it was never fed. */
json_t *command_not_fed_values(const struct store_list *list, const struct store_feed *feed);

/* "; to let it pass: ..." for packets of one source; "": a rule for them would pass everybody's. Returns `text`. */
const char *command_pass_advice(const char *name, const struct rule *packets, char text[2 * RULE_TEXT_BYTES]);

/* How to allow what is refused of a list of the configuration: see struct guard. */
#define LIST_INSIST "write force = yes in its section"

/* ---- report.c: notes and warnings on stderr, and the state of filters in words ---- */

/*
 * Report what session_open() did. command_report_undone(): the change that it undid, or could not undo.
 * command_report_found(): also filters that it adopted, repaired or replaced, or cannot reach. command_report_session(): also
 * whether no filter runs.
 */
void command_report_undone(struct session *session);
void command_report_found(struct session *session);
void command_report_session(struct session *session);

/* Reports the tables that a change replaced, and why. */
void command_report_rebuilds(const struct session *session);

/* Notes that what was changed in the list will not last, if it comes from a URL. `list` may be NULL. */
void command_note_feed(struct store *store, const char *list);

/* How a table keeps its entries: "exact, counted by rule", "compact, 16 bits", ... */
const char *command_format_name(const struct abi_options *options);

/*
 * Reports stored rules that block this host, its gateways or its operator, before a command puts them in
 * force. Such rules exist after --force, on another host, or when addresses changed. -ENOMEM.
 */
int command_report_blocked(const struct session *session, const char *state, struct reason *reason);

struct command_imported {
	json_t *answer; /* owned by the caller; it may exist even if the import failed */
	__u64 bad_lines;
	struct change_left_out left_out;
	__s64 deadline_ms; /* to confirm the import: see struct watchdog; 0: it is not pending */
};

/* Imports the files; without files, deletes options->list_name. Errors as import_open(), import_change(). */
int command_import_list(const struct import_options *options, char *const *paths, size_t paths_count,
			struct command_imported *imported, struct reason *reason);

/* Opens the store, and begins a transaction. After an error the store is closed. -errno with the reason. */
int command_write_store(const struct invocation *invocation, struct store **store, struct reason *reason);
int command_close_written(struct store *store, int error, struct reason *reason);

/*
 * Makes the list if there is none, and notes how old its rules may become. 0; -EUSERS with the
 * reason; other -errno.
 */
int command_expect_list(struct store *store, const struct invocation *invocation, const char *list, __s64 stale_s,
			struct reason *reason);

/* Makes the lists that the sources of the configuration are to feed, which count as not fed until then. */
int command_expect_lists(const struct invocation *invocation, const struct config *config, struct reason *reason);

/* The options of the command line that are for an import. */
struct import_options command_import_options(const struct invocation *invocation);

/* Says until when to confirm a change made with --confirm, and how. */
void command_report_confirm(const struct invocation *invocation, __s64 deadline_ms);

/* What a filter does now: "filters", or why it does not. Returns `text` or a constant. */
#define COMMAND_EFFECT_BYTES 128
const char *command_effect(const struct kernel_filter *filter, char text[COMMAND_EFFECT_BYTES]);

/* Whether a filter runs in another mode than the wanted one. If so, notes it. */
bool command_note_mode(const struct kernel_attachment *attachment, enum kernel_mode mode);

/* Reports a filter that does not filter: monitor-only, panic, unconfirmed. */
void command_report_run(const struct kernel_filter *filter);

/* Warns, after a load or an exchange of the program: see kernel_has_old_buffers(). */
void command_report_old_buffers(const struct kernel_attachment *attachment);

/*
 * Reports interfaces where kernel_watch() saw that packets bypass the filter, and where the MTU has outgrown
 * the program. Returns whether packets bypass it anywhere.
 */
bool command_report_bypass(const struct kernel_filter *filter);

/* After a load: watches the filter and reports as above. Does nothing under --json, where notes are not printed. */
void command_watch(const char *name);

/* kernel_fit_mtu() for every interface that runs the filter. Reports each exchange of a program, and each failure. */
void command_fit_mtu(struct session *session);

#endif
