/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Flows that must not be blocked by mistake, because this host is reached and administered by them. Knows
 * the host's addresses, routes, name servers and SSH session; not the store.
 */
#ifndef XDP_CUCKOO_PROTECTED_FLOWS_H
#define XDP_CUCKOO_PROTECTED_FLOWS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error_reason.h"
#include "rule/rule.h"

struct guard_flow {
	struct rule flow; /* for query_test() */
	char what[96];    /* what a rule would block, for example "the default gateway 192.0.2.1" */
};

struct guard {
	struct guard_flow *flows;
	size_t count;
	const char *insist; /* what allows a change all the same, for messages; NULL: "say --force"; "": nothing */
};

/*
 * Collects these flows of this network namespace: the connection of the SSH session of this process;
 * packets from the default gateways and the name servers (/etc/resolv.conf), also to this host's addresses
 * only; neighbour discovery of IPv6 gateways and of an SSH peer on the link; packets from and to this
 * host's addresses, except 127.0.0.0/8 and ::1. What cannot be found is left out. 0; -ENOMEM. guard_close()
 * accepts a zeroed struct.
 */
int guard_open(struct guard *guard, struct reason *reason);
void guard_close(struct guard *guard);

/* Whether the rule may change what happens to one of the flows. */
bool guard_concerns(const struct guard *guard, const struct rule *rule);

/* What a drop rule seldom means to drop: addresses that are "private (RFC 1918)", ...; NULL: it is fine. */
const char *guard_special(const struct rule *rule);

/*
 * Whether the rule names a destination that no packet received here has: it is no address of this host, and this
 * host forwards nothing to it.
 */
bool guard_is_elsewhere(const struct rule *rule);

#define GUARD_ELSEWHERE /* the rule */ \
	"only received packets are filtered; '%s' matches packets to an address that is not this host's and that it " \
	"does not forward to"

#endif
