/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Turns what gobgp prints into lines for the list, until the input ends. It needs no privileges. The lines:
 *
 *   add RULE timeout TIME	a flow needs the rule; sent again before the timeout, while this is so
 *   del RULE			no flow needs the rule
 *   # flows N refused N	how many flows are announced, and how many of them have no rules
 */
#ifndef XDP_CUCKOO_TRANSLATOR_H
#define XDP_CUCKOO_TRANSLATOR_H

#include "config/flowspec_options.h"
#include "base/error_reason.h"

#define TRANSLATOR_STATUS "# flows %llu refused %llu"

struct translator_start {
	const struct flowspec_options *options;
	void (*note)(
		const char *text); /* is called for refused flows, at a bounded rate, and for what ended the reading */
};

/*
 * Reads standard input. Writes the lines at hand to `out` before it waits for more input. When the input ends, or is
 * not what gobgp prints, notes this and returns. Its form is that of unprivileged_start().
 */
void translator_run(const void *start, int out);

#endif
