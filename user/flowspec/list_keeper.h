/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeps a named list equal to the lines of the translator. The translator runs in a process without privileges. It is
 * not trusted: a rule is added only if it has a timeout, an allowed destination and the configured action.
 */
#ifndef XDP_CUCKOO_LIST_KEEPER_H
#define XDP_CUCKOO_LIST_KEEPER_H

#include "config/config.h"
#include "base/error_reason.h"

struct list_keeper {
	const struct flowspec_options *options;
	const char *state, *name; /* of the filter: see session_open() */
	const char *list;
	void (*note)(const char *text);
};

/* Runs until the translator ends, or until SIGINT or SIGTERM. 0: a signal; -ENODATA: the input has ended; other -errno. */
int list_keeper_run(const struct list_keeper *keeper, struct reason *reason);

#endif
