/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One route as gobgp prints it, and the rules that match exactly the packets that the route announces. Routes of other
 * families are skipped.
 */
#ifndef XDP_CUCKOO_ROUTE_H
#define XDP_CUCKOO_ROUTE_H

#include "config/config.h"
#include "rule/rule_set.h"

#define ROUTE_RULES_MAX 1024 /* of a flow */
#define ROUTE_NAME_BYTES 200
#define ROUTE_KEY_BYTES (32 << 10)

enum route_kind {
	ROUTE_OTHER,     /* of no concern here */
	ROUTE_FLOW,      /* of FlowSpec */
	ROUTE_BLACKHOLE, /* unicast; is_drop says whether it asks for a drop */
};

struct route {
	enum route_kind kind;
	bool is_withdrawn;
	bool is_drop;                /* the route asks for a drop, and `rules` has it */
	char *key;                   /* two routes with the same key announce the same flow; NULL: of no concern */
	char name[ROUTE_NAME_BYTES]; /* for messages: "destination 192.0.2.1/32 protocol" */
	struct rule_set rules; /* that match the flow, sorted, without repetitions; empty: rules cannot match it */
	struct reason why;     /* why is_drop is false */
};

/*
 * Reads a route, as JSON or as text (route_text.h). 0; -EBADMSG: it is not what gobgp prints; -ENOMEM. Call route_close() in any case; it accepts a zeroed
 * struct.
 */
int route_read(struct route *route, const char *text, const struct flowspec_options *options, struct reason *reason);
void route_close(struct route *route);

#endif
