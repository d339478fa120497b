/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of one command share, and the commands of a fleet. */
#ifndef XDP_CUCKOO_COMMANDS_INTERNAL_H
#define XDP_CUCKOO_COMMANDS_INTERNAL_H

#include "command/command.h"
#include "config/config.h"
#include "fleet/broker.h"
#include "fleet/publisher.h"
#include "lists/flow_report.h"

/* ---- stats.c, stats_by_rule.c ---- */

enum stats_by { STATS_BY_OUTCOME, STATS_BY_INTERFACE, STATS_BY_CPU, STATS_BY_RULE, STATS_BY_LIST, STATS_BY_PREFIX };

/* Lengths of the source prefixes to sum by. */
struct stats_prefix {
	unsigned int length[FLOW_FAMILIES];
};

/* Reads "prefix", "prefix=24" or "prefix=24,48". 0; -EINVAL. */
int stats_prefix_parse(const char *text, struct stats_prefix *prefix);

/* Prints the rules that matched most packets, the prefixes of their sources, or the lists of these rules. */
enum command_status stats_by_rule(const struct invocation *invocation, enum stats_by by,
				  const struct stats_prefix *prefix);

/* ---- flowspec_crowdsec.c: for lists and status ---- */

/* command_flows(): a report without its flows, for `lists --json`. command_list_flows() prints the flows themselves. */
json_t *command_flows(const struct flow_report *report);
enum command_status command_list_flows(const struct invocation *invocation, const char *name);

/*
 * Adds lines about a list that has a report in `dir`, the directory of the store. `flows` gets "NAME: 7 of 9 are held;
 * refused: 2 action". `down` gets "NAME: 192.0.2.1 since TIME" for each session that is down. `not_fed` gets a line if
 * sessions are down and none is up.
 */
void command_add_flows(const char *dir, const struct store_list *list, const struct store_feed *feed, json_t *flows,
		       json_t *down, json_t *not_fed);

/* ---- status_ineffective.c ---- */

/*
 * Notes what the filter at `at` does not filter. Returns why most packets of an interface are not filtered; NULL: they are.
 * *is_off: all pass, by a panic or a monitor-only for which no configuration asks.
 */
const char *status_ineffective(const struct kernel_filter *filters, size_t count, size_t at, const struct tally *tally,
			       const struct store_info *info, bool *is_off);

/* Notes which cards lose packets. The filters were listed some 200 ms ago. */
void status_report_losses(const struct kernel_filter *filters, size_t count);

/* Whether the configuration of this name wants a filter, though none runs. Notes it. */
bool status_is_missing(const char *name);

/* ---- fleet.c: for publish and follow too ---- */

/* Reads the configuration of --config, or of --name. Prints the error. The caller closes *config. */
enum command_status fleet_config_open(const struct invocation *invocation, struct config **config);

/*
 * Gives up all capabilities, because what follows reads what a broker sends. Open files before. Reads the secrets first,
 * and keeps them. May be called again. 0; -errno. fleet_connect() also opens a broker; close it after an error, too.
 */
int fleet_give_up(const struct config *config, struct reason *reason);
int fleet_connect(const struct config *config, bool writes, struct broker *broker, struct reason *reason);

/* The exit status for `error` of a broker. Prints the reason. */
enum command_status fleet_fail(int error, const struct reason *reason);

/* ---- fleet_check.c ---- */

enum command_status fleet_check(const struct invocation *invocation, const struct config *config,
				struct broker *broker);

/* ---- publish.c, publish_lists.c ---- */

struct publishing {
	const struct invocation *invocation;
	struct config *config;
	char list[ABI_NAME_BYTES];
	char dir[4096]; /* of the outboxes */
	struct publisher publisher;
	enum command_status status; /* of bad lines */
	bool has_noted_masked;      /* a note said that a prefix has host bits */
	json_t *answer;             /* printed at the end: see publish_answer() */
};

/* Adds the members of `more`, which it releases, to the answer: under --json a command prints one value. */
void publish_answer(struct publishing *publishing, json_t *more);

/* Opens the publisher of a list. Prints the error. */
enum command_status publish_open(struct publishing *publishing, const char *list);

/* Prints why publisher_flush() or publisher_put() failed, and what waits in the outbox. */
enum command_status publish_fail(const struct publishing *publishing, int error, const struct reason *reason);

/* Prints what was published; with --wait, when the hosts have it. publish_finish() first sends what is queued. */
enum command_status publish_report(struct publishing *publishing);
enum command_status publish_finish(struct publishing *publishing);

enum command_status publish_import(struct publishing *publishing);

/*
 * Prints what an addition, a deletion or, with --replace, an import of these sorted rules would change in the list at the
 * broker. Sends nothing. Hosts may still refuse rules: only they know what would lock them out.
 */
enum command_status publish_dry_run(struct publishing *publishing, const struct rule_set *rules, bool is_added);

/* Reads the staged rules, for `release` adds them to the list, then empties the stage. */
enum command_status publish_stage_end(struct publishing *publishing);

/* Copies the rules to the other name, and deletes the list when no host follows only that. */
enum command_status publish_rename(struct publishing *publishing);
enum command_status publish_delete(struct publishing *publishing);

/*
 * ---- batch_line.c: one line of `batch`, and of `publish batch` ----
 *
 * Parses it, runs it within a change, and keeps its answer until the change is durable. Knows no other lines.
 */

#define BATCH_WHITE " \t\r\v\f" /* white space around words */

enum batch_verb { BATCH_ADD, BATCH_DEL, BATCH_TEST };

struct batch_request {
	enum batch_verb verb;
	struct rules rules;        /* or one, the flow to test */
	char list[ABI_NAME_BYTES]; /* "": none */
};

enum batch_answer {
	BATCH_ADDED,
	BATCH_UPDATED,
	BATCH_ALREADY_THERE,
	BATCH_DELETED,
	BATCH_LEFT_TO_OTHERS,
	BATCH_NO_SUCH_RULE,
	BATCH_LISTED,
	BATCH_NOT_LISTED,
	BATCH_ERROR,
	BATCH_TESTED, /* + enum query_decision */
};

struct batch_line {
	__u64 number;
	size_t text; /* offset of its text in the buffer of the caller */
	int unread;  /* 0; -errno: it could not be read */
	enum batch_answer answer;
	enum command_status status;
	char *detail; /* the rule that decides, or the error; NULL: no detail, or no memory */
};

/* Cuts the comment off: a # after white space starts it, unless it is quoted. Returns the first word. */
char *batch_line_trim(char *line);

/*
 * Parses the text; `list` (NULL: none) is for a line without the words `list NAME`. `is_strict`: refuses host bits. 0,
 * and the caller frees request->rules; -EINVAL or -ENOMEM with the reason.
 */
int batch_line_parse(const char *text, const char *list, bool is_strict, struct batch_request *request,
		     struct reason *reason);

/*
 * The same for a line that is an address or prefix, with `timeout TIME` or without, and nothing else: a program that
 * writes what others have sent cannot ask for another rule than `add src ADDRESS`.
 */
int batch_address_parse(const char *text, const char *list, bool is_strict, struct batch_request *request,
			struct reason *reason);

/*
 * Runs the request within a change and keeps the answer. Earlier lines of the change already count. Of the answers for
 * several rules, the first in enum batch_answer is kept. 0; -errno with the reason: then the change must end.
 */
int batch_line_run(struct batch_line *line, struct session *session, const struct batch_request *request,
		   struct reason *reason);

/* Keeps the error as the answer. */
void batch_line_fail(struct batch_line *line, int error, const struct reason *reason);

/* Prints the answer; `name` names the input. */
void batch_line_print(const struct batch_line *line, const char *name);
void batch_line_close(struct batch_line *line);

#endif
