/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Turns what gobgp prints into lines for the list, until the input ends. It needs no privileges. The lines:
 *
 *   add RULE timeout TIME	a flow needs the rule; sent again before the timeout, while this is so
 *   del RULE			no flow needs the rule
 *   # flows N refused N unreadable N
 *				how many flows are announced, how many of them have no rules, and how many lines of the
 *				input could not be read
 */
#ifndef XDP_CUCKOO_TRANSLATOR_H
#define XDP_CUCKOO_TRANSLATOR_H

#include "config/config.h"
#include "base/error_reason.h"

#define TRANSLATOR_STATUS "# flows %llu refused %llu unreadable %llu"

struct translator_start {
	const struct flowspec_options *options;
	/* Is called for refused flows and unreadable lines, at a bounded rate, and for what ended the reading. */
	void (*note)(const char *text);
};

/*
 * Reads standard input: JSON, or from a socket of packets also text (route_text.h). Writes the lines at hand to `out`
 * before it waits for more input. What gobgp does not print is counted and noted. When the
 * input ends, notes this and returns. Its form is that of unprivileged_start().
 */
void translator_run(const void *start, int out);

#endif
