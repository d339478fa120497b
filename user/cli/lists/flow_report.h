/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The file in which the keeper of a list says what `flowspec` knows: the flows that are announced, what became of each, and
 * the sessions of the peers. It is beside the store. Each line is one of:
 *
 *   flows SECOND		the time of the report, since 1970
 *   refused REFUSAL N		how many flows are refused for this; `none`: how many have rules
 *   peer ADDRESS STATE SECOND FLOWS	its session, since when it is so (0: not known), its flows with rules
 *   sessions STATE N		how many sessions are so, also those of peers that the report has no room for
 *   unnamed N			how many flows with rules are of peers that gobgp does not name
 *   rule RULE			of the next flow
 *   flow REFUSAL PEER NAME	"-" is a peer that is not known
 */
#ifndef XDP_CUCKOO_FLOW_REPORT_H
#define XDP_CUCKOO_FLOW_REPORT_H

#include <limits.h>

#include "change/change.h"
#include "counters/counters.h"

#define FLOW_NAME_BYTES 300
#define FLOW_PEER_BYTES 46    /* of an address */
#define FLOW_PEERS_MAX 64     /* in a report: those that are down first */
#define FLOW_REPORT_LINE "#:" /* starts a line of the report among the lines of the reader */

/* Why a flow has no rules. */
enum refusal {
	REFUSAL_NONE,
	REFUSAL_COMPONENT, /* no rule matches this component */
	REFUSAL_VALUE,     /* rules cannot match just these values */
	REFUSAL_RULES,     /* it needs too many rules; with a rate: more than one */
	REFUSAL_TOO_WIDE,  /* it has neither source nor destination, or is a blackhole of a network */
	REFUSAL_OWN,       /* its destination is not in own-prefixes */
	REFUSAL_MALFORMED,
	REFUSAL_ACTION, /* it does not ask for a drop or a rate */
	REFUSAL_MAX_FLOWS,
	REFUSAL_MAX_FLOWS_PEER,
	REFUSAL_MAX_RULES,
	REFUSAL_RATE,      /* another flow needs the same rule with another rate */
	REFUSAL_RATES,     /* it needs a rate, and FlowSpec, or the peer, has as many as it may */
	REFUSAL_KINDS,     /* it needs a kind of rule for which FlowSpec has no room */
	REFUSAL_FORGOTTEN, /* there are too many refused flows to remember why */
	REFUSAL_GUARD,     /* it would lock this host out */
	REFUSAL_FILTER,    /* the filter or the store did not take its rules */
	REFUSALS,
};

extern const char *const refusal_names[REFUSALS];

enum peer_state { PEER_UNKNOWN, PEER_UP, PEER_DOWN, PEER_STATES };

extern const char *const peer_state_names[PEER_STATES];

struct flow_peer {
	char address[FLOW_PEER_BYTES];
	enum peer_state state;
	__s64 since_s;
	__u64 flows;
};

struct flow_report {
	__s64 second; /* 0: there is no report */
	__u64 flows[REFUSALS];
	struct flow_peer peer[FLOW_PEERS_MAX];
	size_t peers;
	__u64 sessions[PEER_STATES], unnamed;
};

/*
 * Compares the lines that the reader has sent with the store. A flow of which a rule is not in the list, or has ended,
 * counts as refused by the guard or by the filter. The caller frees *flows: the lines of flows and rules. 0; -ENOMEM.
 */
int flow_report_judge(const char *text, const struct session *session, const struct guard *guard,
		      struct flow_report *report, char **flows);

/*
 * Writes the file, and waits until it is on the disk. Call it without an open session. `state`, `name`: see
 * session_state_dir(). 0; -errno.
 */
int flow_report_write(const struct flow_report *report, const char *flows, const char *state, const char *name,
		      const char *list, struct reason *reason);

/* Gets what flow_report_read() reads: the rules of a flow, then the flow. A result other than 0 ends the reading. */
struct flow_visitor {
	int (*rule)(struct flow_visitor *visitor, const struct rule *rule);
	int (*flow)(struct flow_visitor *visitor, enum refusal refusal, const char *peer, const char *name);
};

/*
 * `dir`: of the store. `visitor` NULL: only reads the counts. Says that there is no report if `flowspec` does not keep the
 * list now: the file of an earlier time may still be there. 0, also if there is no report; the visitor's error; -errno.
 */
int flow_report_read(const char *dir, const struct store_list *list, const struct store_feed *feed,
		     struct flow_report *report, struct flow_visitor *visitor);

#endif
