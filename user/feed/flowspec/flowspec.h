/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Keeps a list equal to the flows that BGP announces. */
#ifndef XDP_CUCKOO_FLOWSPEC_H
#define XDP_CUCKOO_FLOWSPEC_H

#include "base/error_reason.h"
#include "config/config.h"

/*
 * Turns what gobgp prints into lines for the list, until the input ends. It needs no privileges. The lines:
 *
 *   add RULE timeout TIME	a flow needs the rule; sent again before the timeout, while this is so
 *   del RULE			no flow needs the rule
 *   # flows N refused N unreadable N
 *				how many flows are announced, how many of them have no rules, and how many lines of the
 *				input could not be read
 */

#define TRANSLATOR_STATUS "# flows %llu refused %llu unreadable %llu"

struct translator_start {
	const struct flowspec_options *options;
	bool reports; /* also writes the lines of reports: see lists/flow_report.h */
	/* Is called for refused flows and unreadable lines, at a bounded rate, and for what ended the reading. */
	void (*note)(const char *text);
};

/*
 * Reads standard input: JSON, or from a socket of packets also text. Writes the lines at hand to `out` before it waits
 * for more input. Input that gobgp does not print is counted and noted. When the input ends, notes this and returns.
 * This is the form of function that unprivileged_start() takes.
 */
void translator_run(const void *start, int out);

/*
 * For struct list_keeper, with a struct translator_start as the context: whether the configuration allows a rule; the
 * line of the status as the source of the list; the memory that flows within the limits need at most.
 */
bool translator_may_add(const void *start, const struct rule *rule);
bool translator_take_status(const char *line, char source[STORE_SOURCE_BYTES]);
size_t translator_memory(const struct flowspec_options *options);

/* The bytes of the longest report. */
size_t translator_report_bytes(const struct flowspec_options *options);

#endif
