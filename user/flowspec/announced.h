/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The flows that are announced now, and the rules that they need. Several flows may need the same rule. Each change is
 * written as a line `add RULE` or `del RULE`, as the command `batch` reads them.
 */
#ifndef XDP_CUCKOO_ANNOUNCED_H
#define XDP_CUCKOO_ANNOUNCED_H

#include <stdio.h>

#include "flowspec/route.h"

struct announced {
	const struct flowspec_options *options;
	void *flows, *rules; /* trees: see tsearch(3) */
	__u64 flows_count, refused_count, rules_count;
	__s64 lease_ms; /* timeout of the rules */
};

void announced_close(struct announced *announced);

/*
 * Takes a route. *is_refused: the route is announced and newly refused; route->why says why. 0; -ENOMEM.
 */
int announced_take(struct announced *announced, struct route *route, FILE *to, bool *is_refused);

/* Writes all rules again, so that their timeouts start anew. */
void announced_renew(const struct announced *announced, FILE *to);

#endif
