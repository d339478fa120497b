/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From what gobgp prints to the lines of a list. */
#ifndef XDP_CUCKOO_FLOWSPEC_INTERNAL_H
#define XDP_CUCKOO_FLOWSPEC_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/queue.h>

#include <jansson.h>
#include <linux/types.h>

#include "base/error_reason.h"
#include "config/config.h"
#include "lists/flow_report.h"
#include "rule/rule_set.h"
#include "rule/shapes.h"

/* The components of a flow (RFC 8955 section 4.2, RFC 8956 section 3) as rules that match the same packets. */

/*
 * `components`: the array that gobgp prints. Adds the rules to `rules`. 0; -ENOTSUP: no rule matches
 * a component; -E2BIG: it takes more than ROUTE_RULES_MAX rules; -EDOM: it is too wide; -EBADMSG: it
 * is malformed; -EINVAL: rules cannot match exactly these packets; -ENOMEM.
 */
int flow_rules(const json_t *components, enum rule_action action, struct rule_set *rules,
	       struct reason *reason);

/* Writes the flow as text, cut to fit: "destination 192.0.2.1/32 protocol =17 source-port =53,>=1024&<=2048". */
void flow_name(const json_t *components, char *name, size_t size);

/* The type of the component with this name; 0: none. */
unsigned int flow_kind(const char *name, size_t length);

/* gobgp's words for the bits of TCP flags, and of fragment; NULL: none. */
extern const char *const flow_bit_names[2][8];

/* The number of these bits of IEEE 754: RFC 8955 section 7.1. */
double flow_float(__u32 bits);

/* Whether the rule's destination is within own-prefixes. Other flows must not become rules: RFC 8955 section 6. */
bool flow_is_own(const struct flowspec_options *options, const struct rule *rule);

/* The text of a prefix, if it has only characters of prefixes and fits into RULE_PREFIX_BYTES; else NULL. */
const char *flow_prefix(const json_t *value);

/* An announced flow, as flow_components.c reads it and flow_rules.c makes rules of it. */

#define VALUES_MAX 1024 /* of one component, with ranges expanded */

enum component {
	DESTINATION = 1,
	SOURCE,
	PROTOCOL,
	PORT,
	DESTINATION_PORT,
	SOURCE_PORT,
	ICMP_TYPE,
	ICMP_CODE,
	TCP_FLAGS,
	PACKET_LENGTH,
	DSCP,
	FRAGMENT,
	COMPONENTS, /* rules cannot match components from here on, nor DSCP */
};

/* A value: a number; a block of numbers, with how many of its bits are compared; TCP flags, with their mask; a fragment. */
struct value {
	__u16 first, mask;
};

struct values {
	struct value value[VALUES_MAX];
	size_t count; /* 0: the flow does not have the component, or all values match it */
};

/* Numbers from first to last, in order, with gaps between. */
struct range {
	unsigned int first, last;
};
struct ranges {
	struct range range[VALUES_MAX];
	size_t count;
};

struct announcement {
	char prefix[SOURCE + 1][RULE_PREFIX_BYTES]; /* "": none */
	bool is_ipv6;
	bool has[COMPONENTS];
	struct ranges numbers[COMPONENTS];
	struct values of[COMPONENTS];
};

/*
 * Reads the components. 0; -ENOTSUP: no rule matches one of them; -E2BIG: too many values; -EBADMSG: malformed; -EINVAL: rules
 * cannot match exactly these packets.
 */
int flow_read(struct announcement *flow, const json_t *components, struct reason *reason);

/* Keeps of `ranges` only the numbers from first to last, or if `is_out` only the others. -E2BIG: too many ranges. */
int ranges_restrict(struct ranges *ranges, unsigned int first, unsigned int last, bool is_out);

/* "source-port", ... */
const char *flow_kind_name(unsigned int kind);

/*
 * One route as gobgp prints it, and the rules that match exactly the packets that the route announces. Routes of other
 * families are skipped.
 */

#define ROUTE_RULES_MAX 1024 /* of a flow */
#define ROUTE_KEY_BYTES (32 << 10)

enum route_kind {
	ROUTE_OTHER,     /* of no concern here */
	ROUTE_FLOW,      /* of FlowSpec */
	ROUTE_BLACKHOLE, /* unicast; is_drop says whether it asks for a drop */
};

struct route {
	enum route_kind kind;
	bool is_withdrawn;
	bool has_flags;             /* the flow names TCP flags */
	bool is_drop;               /* the route asks for a drop or a rate, and `rules` has it */
	char *key;                  /* two routes with the same key announce the same flow; NULL: of no concern */
	char peer[FLOW_PEER_BYTES]; /* whose route it is; "": gobgp does not say */
	char name[FLOW_NAME_BYTES]; /* of flow_name(), or "blackhole 192.0.2.1/32" */
	struct rule_set rules;      /* that match the flow, sorted, without repetitions; empty: rules cannot match it */
	bool waits_for_json;        /* it is text, which cannot say all of the flow */
	enum refusal refusal;       /* why is_drop is false, */
	struct reason why;          /* in words */
};

/*
 * Reads a route, as JSON or as text. 0; -EBADMSG: it is not what gobgp prints; -ENOMEM. Call route_close() in any case;
 * it accepts a zeroed struct.
 */
int route_read(struct route *route, const char *text, const struct flowspec_options *options, struct reason *reason);
void route_close(struct route *route);

/*
 * A route as `gobgp monitor global rib --current` prints it, without -j: the version for people. JSON cannot say a rate
 * that is no number, and gobgp then prints none of the routes of the event. In this form it prints each route alone.
 * Routes of any family may have line ends and forged routes in their attributes. So the caller must know where a route
 * ends: gobgp writes each with one write(2), and a socket of packets (SOCK_SEQPACKET) keeps them apart.
 */

/*
 * What gobgp would print of it with -j, as far as it matters: the route's NLRI, its communities and whether it is
 * withdrawn. NULL: it is no route, or there is no memory.
 */
json_t *route_text_read(const char *text);

/*
 * Cuts what `gobgp monitor global rib --current -j` prints into routes. gobgp prints one line per event: an array of
 * routes. The first line has all present routes and may have any length, so only one route is kept in memory. If JSON
 * cannot say a route, for example with a rate that is no number, gobgp prints an empty line.
 */

/* A route fits into one BGP message, of 4,096 bytes. JSON needs up to 25 bytes for each of these, twice. */
#define ROUTE_STREAM_BYTES (256 << 10)

struct route_stream {
	char *route; /* the text of a route, with a final 0 */
	size_t used;
	unsigned int depth; /* of brackets within the route; 0: between routes */
	bool is_in_array;
	bool has_content; /* of this line */
	bool is_in_string, is_escaped;
	bool is_skipping; /* the rest of the line */
	__u64 line;       /* of the input, from 1 */
};

/* 0; -ENOMEM. route_stream_close() accepts a zeroed struct. */
int route_stream_open(struct route_stream *stream);
void route_stream_close(struct route_stream *stream);

/*
 * Takes bytes up to the end of the next route; *taken is their number. 1: stream->route has a route, or an object that
 * stands alone; 0: all bytes were taken; -EBADMSG: the rest of this line is skipped, because gobgp prints no such line.
 */
int route_stream_take(struct route_stream *stream, const char *bytes, size_t length, size_t *taken,
		      struct reason *reason);

/* Whether the input may end here. */
bool route_stream_is_whole(const struct route_stream *stream);

/*
 * The flows that are announced now, and the rules that they need. Several flows may need the same rule. Each change is
 * written as a line `add RULE` or `del RULE`, as the command `batch` reads them.
 */

struct announced_flow;

struct announced {
	const struct flowspec_options *options;
	void *flows, *rules, *peers;                      /* trees: see tsearch(3) */
	__u64 accepted_count, refused_count, rules_count; /* rules: the sum over the accepted flows */
	size_t rates_count;                               /* accepted flows with a rate */
	__u64 refused[REFUSALS]; /* REFUSAL_FORGOTTEN: for want of memory these are not in `flows` */
	size_t refused_bytes;    /* of the refused flows in `flows` */
	TAILQ_HEAD(waiting_flows, announced_flow) waiting;
	struct shape_list kinds; /* of the rules of accepted flows; a kind is a shape (rule/shapes.h) */
	bool limits_kinds;       /* the rules are for the filter of this host */
	bool has_more_room;      /* than when the waiting flows were tried */
	__s64 lease_ms;          /* timeout of the rules */
	__u64 peers_table;       /* number of tables of peers that have begun */
	bool is_peers_table_old;
};

/* A node of any of the trees. The trees are balanced, so no choice of flows makes them slow. */
struct node {
	__u32 count; /* of a rule: flows that need it; of a flow: 1 if it has rules; of a peer: its flows with rules */
	__u32 bytes;
	union {
		struct announced_flow *flow;  /* behind the node, in one block of memory */
		struct told_session *session; /* of a peer: so, too */
		__u64 rate;                   /* of a rule: as in struct rule */
	};
	const void *key; /* points to `copy`, except in the node that node_find() makes to search */
	__u8 copy[];
};

/* An announced flow. */
struct announced_flow {
	struct node *node;
	struct node *peer; /* of a flow with rules, or that waits for room */
	enum refusal refusal;
	bool waits;          /* for room, in the order of announcement */
	bool waits_for_json; /* see struct route */
	TAILQ_ENTRY(announced_flow) link;
	struct rule_set rules; /* of a flow with rules, or that waits for room */
	char name[];
};

/* What gobgp says of a peer, and the kinds of rule of its flows. */
struct told_session {
	struct flow_peer told;
	__u64 table;              /* 1 + the number of the last table of peers that named it; 0: none did */
	struct shape_list *kinds; /* NULL: it has had no flow, or kinds are not limited */
	size_t rates;             /* its flows with a rate */
};

/* The node with this key; NULL: there is none. */
struct node *node_find(void *const *tree, const void *key, size_t bytes);

/* Takes the rules of a flow out of the kinds. */
void kinds_remove(struct shape_list *kinds, const struct rule_set *rules);

/*
 * REFUSAL_NONE: the limits allow the peer a flow with these rules, which now count in announced->kinds. Else *why names the
 * limit. `own`: the rules that the flow itself had until now. With `may_plan`, prefix lengths are joined if need be.
 */
enum refusal flow_find_room(struct announced *announced, const struct node *peer, const struct rule_set *rules,
			    const struct rule_set *own, bool may_plan, struct reason *why);

/* The flow counts for the peer: for its limits, and in the report; flow_uncount(): no more. 0; -ENOMEM. */
int flow_count_for(struct announced *announced, struct announced_flow *flow, struct node *peer);
void flow_uncount(struct announced *announced, const struct announced_flow *flow);

void announced_open(struct announced *announced, const struct flowspec_options *options, __s64 lease_ms);
void announced_close(struct announced *announced);

/*
 * Takes a route. *is_refused: the route is announced and newly refused; route->why says why. A flow that is refused only
 * for want of room (a limit, kinds of rule, another rate of the same rule) waits, and announced_take_waiting() takes it when
 * there is room. Takes the rules from `route`. 0; -ENOMEM.
 */
int announced_take(struct announced *announced, struct route *route, FILE *to, bool *is_refused);
int announced_take_waiting(struct announced *announced, FILE *to);

/* Writes all rules again, so that their timeouts start anew. */
void announced_renew(const struct announced *announced, FILE *to);

/*
 * Reads a line of `gobgp neighbor`, printed at the time `now_s`: what gobgp says of the session of a peer. The address is ""
 * in the line of headings, which begins a table of all peers. False: it is no such line.
 */
bool session_read(const char *text, __s64 now_s, struct flow_peer *told);

/* Takes what session_read() has read. 1: it is new; 0; -ENOMEM. */
int announced_take_session(struct announced *announced, const struct flow_peer *told);

/* Writes the lines of a report: see lists/flow_report.h. */
void announced_report(const struct announced *announced, FILE *to);

#endif
