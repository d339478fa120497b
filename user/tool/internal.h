/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of one command share. */
#ifndef XDP_CUCKOO_TOOL_INTERNAL_H
#define XDP_CUCKOO_TOOL_INTERNAL_H

#include "command/batch_words.h"
#include "lists/flow_report.h"

/* ---- stats.c, stats_by_rule.c ---- */

enum stats_by {
	STATS_BY_OUTCOME,
	STATS_BY_INTERFACE,
	STATS_BY_CPU,
	STATS_BY_SOURCE,
	STATS_BY_RULE,
	STATS_BY_LIST,
	STATS_BY_PREFIX
};

/* Lengths of the source prefixes to sum by. */
struct stats_prefix {
	unsigned int length[FLOW_FAMILIES];
};

/* Reads "prefix", "prefix=24" or "prefix=24,48". 0; -EINVAL. */
int stats_prefix_parse(const char *text, struct stats_prefix *prefix);

/* Prints the rules that matched most packets, the prefixes of their sources, or the lists of these rules. */
enum command_status stats_by_rule(const struct invocation *invocation, enum stats_by by,
				  const struct stats_prefix *prefix);

/* Samples dropped packets for --interval, and prints who sent most of them. */
enum command_status stats_by_source(const struct invocation *invocation);

/* ---- flows.c: for lists and status ---- */

/* command_flows(): a report without its flows, for `lists --json`. command_list_flows() prints the flows themselves. */
json_t *command_flows(const struct flow_report *report);
enum command_status command_list_flows(const struct invocation *invocation, const char *name);

/*
 * Adds lines about a list that has a report in `dir`, the directory of the store. `flows` gets "NAME: 7 of 9 are held;
 * refused: 2 action". `down` gets "NAME: 192.0.2.1 since TIME" for each session that is down. `not_fed` gets a line if
 * sessions are down and none is up. Under --json they get objects.
 */
void command_add_flows(const char *dir, const struct store_list *list, const struct store_feed *feed, json_t *flows,
		       json_t *down, json_t *not_fed);

/* ---- lists_add.c ---- */

/* `lists add NAME ...`. Returns only after an error: else it becomes `refresh NAME`. */
enum command_status command_list_add(const struct invocation *invocation);

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
bool status_is_missing(const char *name, bool has_rules);

/*
 * ---- batch_line.c: one line of `batch` ----
 *
 * Runs it within a change, and keeps its answer until the change is durable. Knows no other lines.
 */

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
