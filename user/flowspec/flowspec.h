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
	/* Is called for refused flows and unreadable lines, at a bounded rate, and for what ended the reading. */
	void (*note)(const char *text);
};

/*
 * Reads standard input: JSON, or from a socket of packets also text. Writes the lines at hand to `out`
 * before it waits for more input. What gobgp does not print is counted and noted. When the
 * input ends, notes this and returns. Its form is that of unprivileged_start().
 */
void translator_run(const void *start, int out);

/*
 * Keeps a named list equal to the lines of the translator. The translator runs in a process without privileges. It is
 * not trusted: a rule is added only if it has a timeout, an allowed destination and the configured action.
 */

struct list_keeper {
	const struct flowspec_options *options;
	const char *state, *name; /* of the filter: see session_open() */
	const char *list;
	void (*note)(const char *text);
};

/* Runs until the translator ends, or until SIGINT or SIGTERM. 0: a signal; -ENODATA: the input has ended; other -errno. */
int list_keeper_run(const struct list_keeper *keeper, struct reason *reason);

#endif
