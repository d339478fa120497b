/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Waits until the hosts that follow a list report that they have a change. */
#ifndef XDP_CUCKOO_WAITING_H
#define XDP_CUCKOO_WAITING_H

#include "fleet/broker.h"

struct waiting {
	struct broker *reports; /* see fleet_reports_open() */
	const char *fleet, *list;
	struct fleet_position first, last; /* of the change; first 0-0: it changed nothing */
	unsigned int percent;              /* of the hosts that must have it */
	size_t hosts, done, refusing;      /* as last seen; done: without those that refuse rules of the change */
};

/*
 * 0; -EBADE: too few hosts have it, and the reason names some that do not, and why; other -errno. Forgets hosts that have
 * not reported for so long that the broker forgot their state, or that do not follow the list any more.
 */
int waiting_for_hosts(struct waiting *waiting, struct reason *reason);

#endif
