// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flowspec/internal.h"

#include <errno.h>
#include <limits.h>
#include <search.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

#define REFUSED_BYTES (64 << 20) /* for refused flows. Others are only counted */

/* A node of any of the trees. The trees are balanced, so no choice of flows makes them slow. */
struct node {
	__u32 count; /* of a rule: flows that need it; of a flow: 1 if it has rules; of a peer: its flows with rules */
	__u32 bytes;
	struct node *peer;       /* of a flow with rules, or that waits for room */
	struct waiting *waiting; /* of a refused flow; NULL: it does not wait for room */
	const void *key;         /* points to `copy`, except in the node that find() makes to search */
	__u8 copy[];
};

/* A flow that waits for room, in the order of announcement. */
struct waiting {
	TAILQ_ENTRY(waiting) link;
	struct node *flow;
	struct rule_set rules;
};

static int compare(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	return x->bytes != y->bytes ? (x->bytes > y->bytes) - (x->bytes < y->bytes) : memcmp(x->key, y->key, x->bytes);
}

/* The node with this key; NULL: there is none. */
static struct node *find(void *const *tree, const void *key, size_t bytes)
{
	const struct node wanted = { .bytes = bytes, .key = key };
	struct node **found = tfind(&wanted, tree, compare);

	return found ? *found : NULL;
}

/* Adds a node. No other may have this key. NULL: no memory. */
static struct node *add(void **tree, const void *key, size_t bytes)
{
	struct node *node = malloc(sizeof(*node) + bytes);

	if (!node)
		return NULL;
	*node = (struct node){ .bytes = bytes, .key = node->copy };
	memcpy(node->copy, key, bytes);
	if (tsearch(node, tree, compare))
		return node;
	free(node);
	return NULL;
}

static void forget(void **tree, struct node *node)
{
	tdelete(node, tree, compare);
	free(node);
}

void announced_open(struct announced *announced, const struct flowspec_options *options, __s64 lease_ms)
{
	*announced = (struct announced){ .options = options, .lease_ms = lease_ms };
	TAILQ_INIT(&announced->waiting);
}

/* ---- rules ---- */

/*
 * Only whole lines leave the buffer, in pieces that a pipe takes at once: if this process is killed, half a line would be
 * a wider rule, or one without an end.
 */
static void write_rule(const struct announced *announced, FILE *to, bool is_added, const struct rule *rule)
{
	struct rule written = *rule;
	char text[RULE_TEXT_BYTES];

	if (__fpending(to) > PIPE_BUF - 2 * RULE_TEXT_BYTES)
		fflush(to);
	written.timeout_ms = is_added ? announced->lease_ms : 0;
	fprintf(to, "%s %s\n", is_added ? "add" : "del", rule_format(&written, text));
}

static int add_rules(struct announced *announced, const struct rule_set *rules, FILE *to)
{
	for (size_t i = 0; i < rules->count; i++) {
		__u8 bytes[RULE_ENCODED_BYTES];
		struct node *node;
		struct rule rule;
		size_t length;

		rule_set_get(rules, i, &rule);
		length = rule_encode(&rule, bytes);
		node = find(&announced->rules, bytes, length);
		if (!node)
			node = add(&announced->rules, bytes, length);
		if (!node)
			return -ENOMEM;
		if (node->count++)
			continue;
		announced->rules_count++;
		write_rule(announced, to, true, &rule);
	}
	return 0;
}

/*
 * Deletes the rules of the flow that no other flow needs. It does so even if the flow had no rules in this run, because
 * an earlier run may have left them in the list.
 */
static void drop_rules(struct announced *announced, const struct route *route, bool had_rules, FILE *to)
{
	for (size_t i = 0; i < route->rules.count; i++) {
		__u8 bytes[RULE_ENCODED_BYTES];
		struct node *node;
		struct rule rule;

		rule_set_get(&route->rules, i, &rule);
		node = find(&announced->rules, bytes, rule_encode(&rule, bytes));
		if (node && had_rules && !--node->count) {
			forget(&announced->rules, node);
			announced->rules_count--;
			node = NULL;
		}
		if (!node)
			write_rule(announced, to, false, &rule);
	}
}

/* ---- refused flows ---- */

static size_t refused_bytes(const struct node *flow)
{
	const struct waiting *waiting = flow->waiting;

	return sizeof(*flow) + flow->bytes +
	       (waiting ? sizeof(*waiting) + waiting->rules.room * sizeof(*waiting->rules.entries) +
				  waiting->rules.bytes_room :
			  0);
}

/* The flow is refused no more. */
static void end_refusal(struct announced *announced, struct node *flow)
{
	announced->refused_count--;
	announced->refused_bytes -= refused_bytes(flow);
	if (!flow->waiting)
		return;
	TAILQ_REMOVE(&announced->waiting, flow->waiting, link);
	rule_set_close(&flow->waiting->rules);
	free(flow->waiting);
	flow->waiting = NULL;
}

/* `rules`: what the flow waits with; NULL: it does not wait. If there is no memory for it, it is forgotten. */
static int refuse(struct announced *announced, struct node *flow, struct rule_set *rules)
{
	flow->count = 0;
	if (rules) {
		flow->waiting = calloc(1, sizeof(*flow->waiting));
		if (!flow->waiting)
			return -ENOMEM;
		*flow->waiting = (struct waiting){ .flow = flow, .rules = *rules };
		*rules = (struct rule_set){};
		TAILQ_INSERT_TAIL(&announced->waiting, flow->waiting, link);
	}
	announced->refused_count++;
	announced->refused_bytes += refused_bytes(flow);
	if (announced->refused_bytes <= REFUSED_BYTES)
		return 0;
	end_refusal(announced, flow);
	forget(&announced->flows, flow);
	announced->refused_count++;
	announced->forgotten_count++;
	return 0;
}

/* ---- flows ---- */

/* Whether the limits allow the peer a flow with so many rules. *why: the limit. */
static bool has_room(const struct announced *announced, const struct node *peer, size_t rules, struct reason *why)
{
	const struct flowspec_options *options = announced->options;

	if (options->peer_flows_max && peer->count >= options->peer_flows_max)
		return reason_set(why, 0,
				  "there are %u flows of the peer %.*s already, as many as max-flows-peer allows",
				  peer->count, (int)peer->bytes, (const char *)peer->key);
	if (announced->accepted_count >= options->flows_max)
		reason_set(why, 0, "there are %llu flows already, as many as max-flows allows",
			   (unsigned long long)announced->accepted_count);
	else if (announced->rules_count + rules > options->rules_max)
		reason_set(why, 0, "all flows would have more rules than max-rules allows, %llu",
			   (unsigned long long)options->rules_max);
	else
		return true;
	return false;
}

static int accept_flow(struct announced *announced, struct node *flow, const struct rule_set *rules, FILE *to)
{
	flow->count = 1;
	flow->peer->count++;
	announced->accepted_count++;
	return add_rules(announced, rules, to);
}

int announced_take(struct announced *announced, struct route *route, FILE *to, bool *is_refused)
{
	const size_t bytes = strlen(route->key);
	struct node *flow = find(&announced->flows, route->key, bytes);
	const bool had_rules = flow && flow->count, is_drop = route->is_drop && !route->is_withdrawn;
	struct node *peer = NULL;
	bool is_accepted;

	*is_refused = false;
	if (is_drop && had_rules)
		return 0;
	if (is_drop && !(peer = find(&announced->peers, route->peer, strlen(route->peer))))
		peer = add(&announced->peers, route->peer, strlen(route->peer));
	if (is_drop && !peer)
		return -ENOMEM;
	*is_refused = !route->is_withdrawn && (!flow || had_rules);
	if (flow && !had_rules)
		end_refusal(announced, flow);
	is_accepted = is_drop && has_room(announced, peer, route->rules.count, &route->why);
	/* Skips unicast routes that never were blackholes: there may be a million of them. */
	if (!is_accepted && (had_rules || route->kind == ROUTE_FLOW || route->is_drop))
		drop_rules(announced, route, had_rules, to);
	announced->accepted_count -= had_rules;
	if (had_rules)
		flow->peer->count--;
	announced->has_more_room |= had_rules;
	if (route->is_withdrawn && flow) {
		forget(&announced->flows, flow);
	} else if (route->is_withdrawn && route->kind == ROUTE_FLOW && announced->forgotten_count) {
		announced->forgotten_count--;
		announced->refused_count--;
	}
	if (route->is_withdrawn)
		return 0;
	if (!flow)
		flow = add(&announced->flows, route->key, bytes);
	if (!flow)
		return -ENOMEM;
	*is_refused &= !is_accepted;
	flow->peer = peer;
	return is_accepted ? accept_flow(announced, flow, &route->rules, to) :
			     refuse(announced, flow, is_drop ? &route->rules : NULL);
}

int announced_take_waiting(struct announced *announced, FILE *to)
{
	struct waiting *waiting, *next;
	struct reason why;
	int error = 0;

	if (!announced->has_more_room)
		return 0;
	announced->has_more_room = false;
	for (waiting = TAILQ_FIRST(&announced->waiting); waiting && !error; waiting = next) {
		struct node *flow = waiting->flow;

		next = TAILQ_NEXT(waiting, link);
		if (!has_room(announced, flow->peer, waiting->rules.count, &why))
			continue;
		error = accept_flow(announced, flow, &waiting->rules, to);
		end_refusal(announced, flow);
	}
	return error;
}

static void free_flow(void *node)
{
	struct node *flow = node;

	if (flow->waiting)
		rule_set_close(&flow->waiting->rules);
	free(flow->waiting);
	free(flow);
}

void announced_close(struct announced *announced)
{
	tdestroy(announced->flows, free_flow);
	tdestroy(announced->rules, free);
	tdestroy(announced->peers, free);
	announced->flows = announced->rules = announced->peers = NULL;
}

/* ---- renewal ---- */

struct renewal {
	const struct announced *announced;
	FILE *to;
};

static void renew(const void *at, VISIT visit, void *context)
{
	const struct node *node = *(const struct node *const *)at;
	const struct renewal *renewal = context;
	struct rule rule;

	if ((visit == postorder || visit == leaf) && !rule_decode(node->key, node->bytes, &rule))
		write_rule(renewal->announced, renewal->to, true, &rule);
}

void announced_renew(const struct announced *announced, FILE *to)
{
	struct renewal renewal = { announced, to };

	twalk_r(announced->rules, renew, &renewal);
}
