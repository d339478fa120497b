/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What must not be blocked by mistake: flows by which this host is reached and administered. Knows the
 * host's addresses, routes, name servers and the SSH session; not the store.
 */
#ifndef XDP_CUCKOO_GUARD_H
#define XDP_CUCKOO_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error_reason.h"
#include "rule/rule.h"

struct guard_flow {
	struct rule flow; /* as apply_test() is asked */
	char what[96];    /* what a rule would block: "the default gateway 192.0.2.1" */
};

struct guard {
	struct guard_flow *flows;
	size_t count;
};

/*
 * Collects the flows, of this network namespace: the connection of the SSH session that this process
 * belongs to; the default gateways and the name servers (/etc/resolv.conf) as sources, to this host's
 * addresses too; the neighbour discovery of IPv6 gateways, and of the session's peer on the link; and these
 * addresses as source and destination, but 127.0.0.0/8 and ::1. What cannot be found out is left out.
 * -ENOMEM. guard_close() accepts a zeroed one.
 */
int guard_open(struct guard *guard, struct reason *reason);
void guard_close(struct guard *guard);

/* Whether the rule decides, or helps to decide, about one of the flows. */
bool guard_concerns(const struct guard *guard, const struct rule *rule);

/* What a drop rule for these addresses mostly is a mistake of: "private (RFC 1918)", ...; NULL: nothing. */
const char *guard_special(const struct rule *rule);

#endif
