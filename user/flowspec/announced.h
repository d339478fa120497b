/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The flows that are announced now, and the rules that they need. Several flows may need the same rule. Each change is
 * written as a line `add RULE` or `del RULE`, as the command `batch` reads them.
 */
#ifndef XDP_CUCKOO_ANNOUNCED_H
#define XDP_CUCKOO_ANNOUNCED_H

#include <stdio.h>
#include <sys/queue.h>

#include "flowspec/route.h"

struct waiting;

struct announced {
	const struct flowspec_options *options;
	void *flows, *rules; /* trees: see tsearch(3) */
	__u64 accepted_count, refused_count, rules_count;
	__u64 forgotten_count; /* of the refused flows: these are not in `flows`, for want of memory */
	size_t refused_bytes;  /* of the refused flows in `flows` */
	TAILQ_HEAD(, waiting) waiting;
	bool has_more_room; /* than when the waiting flows were tried */
	__s64 lease_ms;     /* timeout of the rules */
};

void announced_open(struct announced *announced, const struct flowspec_options *options, __s64 lease_ms);
void announced_close(struct announced *announced);

/*
 * Takes a route. *is_refused: the route is announced and newly refused; route->why says why. A flow that is refused only
 * because max-flows or max-rules is reached waits, and announced_take_waiting() takes it when there is room. Takes the
 * rules from `route`. 0; -ENOMEM.
 */
int announced_take(struct announced *announced, struct route *route, FILE *to, bool *is_refused);
int announced_take_waiting(struct announced *announced, FILE *to);

/* Writes all rules again, so that their timeouts start anew. */
void announced_renew(const struct announced *announced, FILE *to);

#endif
