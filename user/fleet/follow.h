/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Follows a fleet: keeps the lists of this host equal to the broker's. Starts the reader (reader_process.c) as a process of
 * its own, applies what it sends (apply.h), and reports the state to the broker and to the service manager.
 */
#ifndef XDP_CUCKOO_FOLLOW_H
#define XDP_CUCKOO_FOLLOW_H

#include "base/error_reason.h"
#include "fleet/fleet.h"

struct follow {
	const struct fleet_options *options;
	const char *state, *name; /* of the filter, and the name of the fleet */
	bool is_once;             /* end when all lists are level */
	bool is_accepted;         /* follow another fleet, lists that are gone, and states that delete many rules */
	void (*note)(const char *text); /* prints what an operator should know */
};

/*
 * Follows until SIGINT or SIGTERM, or with is_once until all lists are level or one fails. 0; -EINVAL: the configuration
 * lacks something; -EBADE: with is_once, something must be accepted first; other -errno.
 */
int follow_run(const struct follow *follow, struct reason *reason);

#endif
