// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "feed/flowspec/internal.h"

#include <errno.h>
#include <limits.h>
#include <search.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

#define REFUSED_BYTES (64 << 20) /* for refused flows. Others are only counted */
#define KINDS_PLANS_MAX 16       /* so often one announced_take_waiting() tries to join kinds, which takes long */
#define REPORT_REFUSED_MAX 1000  /* refused flows that a report names */

static int compare(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	return x->bytes != y->bytes ? (x->bytes > y->bytes) - (x->bytes < y->bytes) : memcmp(x->key, y->key, x->bytes);
}

struct node *node_find(void *const *tree, const void *key, size_t bytes)
{
	const struct node wanted = { .bytes = bytes, .key = key };
	struct node **found = tfind(&wanted, tree, compare);

	return found ? *found : NULL;
}

/* Adds a node, and `more` zeroes at node->flow. No other may have this key. NULL: no memory. */
static struct node *add(void **tree, const void *key, size_t bytes, size_t more)
{
	const size_t at = (sizeof(struct node) + bytes + 7) / 8 * 8;
	struct node *node = calloc(1, at + more);

	if (!node)
		return NULL;
	node->bytes = bytes;
	node->flow = (void *)((char *)node + at);
	node->key = node->copy;
	memcpy(node->copy, key, bytes);
	if (tsearch(node, tree, compare))
		return node;
	free(node);
	return NULL;
}

static void free_flow(void *node)
{
	rule_set_close(&((struct node *)node)->flow->rules);
	free(node);
}

static void forget_flow(struct announced *announced, struct announced_flow *flow)
{
	struct node *node = flow->node;

	tdelete(node, &announced->flows, compare);
	free_flow(node);
}

static void free_peer(void *node)
{
	free(((struct node *)node)->session->kinds);
	free(node);
}

/* The peer with this address, if need be a new one. NULL: no memory. */
static struct node *peer_of(struct announced *announced, const char *address)
{
	const size_t bytes = strlen(address);
	struct node *peer = node_find(&announced->peers, address, bytes);

	return peer ? peer : add(&announced->peers, address, bytes, sizeof(*peer->session));
}

void announced_open(struct announced *announced, const struct flowspec_options *options, __s64 lease_ms)
{
	*announced = (struct announced){ .options = options, .lease_ms = lease_ms };
	TAILQ_INIT(&announced->waiting);
}

/* ---- rules ---- */

/*
 * Call it before each line. Only whole lines leave the buffer, in pieces that a pipe takes at once: if this process is killed,
 * half a line would be a wider rule, or one without an end.
 */
static void make_room(FILE *to)
{
	if (__fpending(to) > PIPE_BUF - 2 * RULE_TEXT_BYTES)
		fflush(to);
}

static void write_rule(const struct announced *announced, FILE *to, bool is_added, const struct rule *rule)
{
	struct rule written = *rule;
	char text[RULE_TEXT_BYTES];

	make_room(to);
	written.timeout_ms = is_added ? announced->lease_ms : 0;
	fprintf(to, "%s %s\n", is_added ? "add" : "del", rule_format(&written, text));
}

/*
 * Deletes the rules of a flow that no other flow needs. It does so even if the flow had no rules in this run, because
 * an earlier run may have left them in the list.
 */
static void drop_rules(struct announced *announced, const struct rule_set *rules, bool had_rules, FILE *to)
{
	for (size_t i = 0; i < rules->count; i++) {
		__u8 bytes[RULE_ENCODED_BYTES];
		struct node *node;
		struct rule rule;

		rule_set_get(rules, i, &rule);
		node = node_find(&announced->rules, bytes, rule_encode(&rule, bytes));
		if (node && had_rules && !--node->count) {
			tdelete(node, &announced->rules, compare);
			free(node);
			node = NULL;
		}
		if (!node)
			write_rule(announced, to, false, &rule);
	}
}

/* ---- refused flows ---- */

static size_t refused_bytes(const struct announced_flow *flow)
{
	return sizeof(*flow->node) + flow->node->bytes + sizeof(*flow) + strlen(flow->name) +
	       flow->rules.room * sizeof(*flow->rules.entries) + flow->rules.bytes_room;
}

/* The flow is refused no more. It keeps its rules. */
static void end_refusal(struct announced *announced, struct announced_flow *flow)
{
	announced->refused[flow->refusal]--;
	announced->refused_count--;
	announced->refused_bytes -= refused_bytes(flow);
	if (flow->waits)
		TAILQ_REMOVE(&announced->waiting, flow, link);
	flow->waits = false;
}

/* If refused flows take too much memory, this one is forgotten, but counted. */
static void refuse(struct announced *announced, struct announced_flow *flow, enum refusal refusal, bool waits)
{
	flow->node->count = 0;
	flow->refusal = refusal;
	flow->waits = waits;
	if (waits)
		TAILQ_INSERT_TAIL(&announced->waiting, flow, link);
	else
		rule_set_close(&flow->rules);
	announced->refused[refusal]++;
	announced->refused_count++;
	announced->refused_bytes += refused_bytes(flow);
	if (announced->refused_bytes <= REFUSED_BYTES)
		return;
	end_refusal(announced, flow);
	forget_flow(announced, flow);
	announced->refused_count++;
	announced->refused[REFUSAL_FORGOTTEN]++;
}

/* ---- flows ---- */

static int accept_flow(struct announced *announced, struct announced_flow *flow, FILE *to)
{
	if (flow_count_for(announced, flow, flow->peer))
		return -ENOMEM;
	flow->node->count = 1;
	flow->refusal = REFUSAL_NONE;
	announced->accepted_count++;
	announced->rules_count += flow->rules.count;
	for (size_t i = 0; i < flow->rules.count; i++) {
		__u8 bytes[RULE_ENCODED_BYTES];
		struct node *node;
		struct rule rule;
		size_t length;

		rule_set_get(&flow->rules, i, &rule);
		length = rule_encode(&rule, bytes);
		node = node_find(&announced->rules, bytes, length);
		if (!node)
			node = add(&announced->rules, bytes, length, 0);
		if (!node)
			return -ENOMEM;
		if (!node->count++ || node->rate != rule.rate)
			write_rule(announced, to, true, &rule);
		node->rate = rule.rate;
	}
	return 0;
}

/* The flow's rules count no more. *rules gets them: they are still in the list. */
static void give_room(struct announced *announced, struct announced_flow *flow, struct rule_set *rules)
{
	flow_uncount(announced, flow);
	*rules = flow->rules;
	flow->rules = (struct rule_set){};
	announced->accepted_count--;
	announced->rules_count -= rules->count;
	kinds_remove(&announced->kinds, rules);
}

/* A new flow, without rules. NULL: no memory. */
static struct announced_flow *add_flow(struct announced *announced, const struct route *route)
{
	const size_t more = sizeof(struct announced_flow) + strlen(route->name) + 1;
	struct node *node = add(&announced->flows, route->key, strlen(route->key), more);

	if (!node)
		return NULL;
	node->flow->node = node;
	strcpy(node->flow->name, route->name);
	return node->flow;
}

static bool is_same(const struct rule_set *a, const struct rule_set *b)
{
	struct rule first, other;
	bool is_same = a->count == b->count;

	for (size_t i = 0; is_same && i < a->count; i++) {
		rule_set_get(a, i, &first);
		rule_set_get(b, i, &other);
		is_same = !rule_set_compare(a, i, &other) && first.rate == other.rate;
	}
	return is_same;
}

int announced_take(struct announced *announced, struct route *route, FILE *to, bool *is_refused)
{
	struct node *node = node_find(&announced->flows, route->key, strlen(route->key)), *peer = NULL;
	struct announced_flow *flow = node ? node->flow : NULL;
	const bool had_rules = node && node->count, is_drop = route->is_drop && !route->is_withdrawn;
	enum refusal refusal = route->refusal;
	struct rule_set old = {}; /* what the flow had until now */
	int error = 0;

	*is_refused = false;
	if (is_drop && !(peer = peer_of(announced, route->peer)))
		return -ENOMEM;
	if (is_drop && had_rules && is_same(&flow->rules, &route->rules)) {
		if (flow->peer == peer)
			return 0;
		/* Even beyond the limits of the new peer: it must not end flows of others by announcing them as well. */
		flow_uncount(announced, flow);
		return flow_count_for(announced, flow, peer);
	}
	if (had_rules)
		give_room(announced, flow, &old);
	else if (flow)
		end_refusal(announced, flow);
	if (is_drop)
		refusal = flow_find_room(announced, peer, &route->rules, &old, true, &route->why);
	/* Skips unicast routes that never were blackholes: there may be a million of them. */
	if ((!is_drop || refusal != REFUSAL_NONE) && (had_rules || route->kind == ROUTE_FLOW || route->is_drop))
		drop_rules(announced, had_rules ? &old : &route->rules, had_rules, to);
	if (route->is_withdrawn && flow) {
		forget_flow(announced, flow);
	} else if (route->is_withdrawn && route->kind == ROUTE_FLOW && announced->refused[REFUSAL_FORGOTTEN]) {
		announced->refused[REFUSAL_FORGOTTEN]--;
		announced->refused_count--;
	} else if (!route->is_withdrawn && !flow && !(flow = add_flow(announced, route))) {
		error = -ENOMEM;
	}
	if (!route->is_withdrawn && !error) {
		*is_refused = refusal != REFUSAL_NONE && (!node || had_rules);
		rule_set_fit(&route->rules);
		rule_set_close(&flow->rules);
		flow->rules = route->rules;
		route->rules = (struct rule_set){};
		flow->peer = peer;
		flow->waits_for_json = route->waits_for_json;
		if (is_drop && refusal == REFUSAL_NONE) {
			error = accept_flow(announced, flow, to);
			/* After the new rules: what both have stays in force. */
			drop_rules(announced, &old, true, to);
		} else {
			refuse(announced, flow, refusal, is_drop);
		}
	}
	rule_set_close(&old);
	return error;
}

int announced_take_waiting(struct announced *announced, FILE *to)
{
	struct announced_flow *const last = TAILQ_LAST(&announced->waiting, waiting_flows);
	struct announced_flow *flow, *next;
	unsigned int plans = 0;
	struct reason why;
	int error = 0;

	if (!announced->has_more_room)
		return 0;
	announced->has_more_room = false;
	for (flow = TAILQ_FIRST(&announced->waiting); flow && !error; flow = next) {
		const enum refusal refusal = flow_find_room(announced, flow->peer, &flow->rules, &(struct rule_set){},
							    plans < KINDS_PLANS_MAX, &why);

		next = flow == last ? NULL : TAILQ_NEXT(flow, link);
		if (refusal == REFUSAL_NONE) {
			end_refusal(announced, flow);
			error = accept_flow(announced, flow, to);
			continue;
		}
		announced->refused[flow->refusal]--;
		announced->refused[refusal]++;
		flow->refusal = refusal;
		if (refusal != REFUSAL_KINDS || ++plans > KINDS_PLANS_MAX)
			continue;
		/* The next time, other flows come before it: one that never fits must not keep them waiting. */
		TAILQ_REMOVE(&announced->waiting, flow, link);
		TAILQ_INSERT_TAIL(&announced->waiting, flow, link);
	}
	return error;
}

void announced_close(struct announced *announced)
{
	tdestroy(announced->flows, free_flow);
	tdestroy(announced->rules, free);
	tdestroy(announced->peers, free_peer);
	announced->flows = announced->rules = announced->peers = NULL;
}

/* ---- sessions of peers ---- */

int announced_take_session(struct announced *announced, const struct flow_peer *told)
{
	struct told_session *session;
	struct node *peer;

	if (!*told->address) {
		announced->peers_table++;
		return 0;
	}
	peer = peer_of(announced, told->address);
	if (!peer)
		return -ENOMEM;
	session = peer->session;
	session->table = announced->peers_table + 1;
	/* The clock of gobgp's durations is rounded. */
	if (session->told.state == told->state && llabs(session->told.since_s - told->since_s) <= 2)
		return 0;
	session->told = *told;
	return 1;
}

/* ---- renewal ---- */

struct renewal {
	const struct announced *announced;
	FILE *to;
	size_t refused; /* flows that a report has named */
};

static void renew(const void *at, VISIT visit, void *context)
{
	const struct node *node = *(const struct node *const *)at;
	const struct renewal *renewal = context;
	struct rule rule;

	if ((visit != postorder && visit != leaf) || rule_decode(node->key, node->bytes, &rule))
		return;
	rule.rate = node->rate;
	write_rule(renewal->announced, renewal->to, true, &rule);
}

void announced_renew(const struct announced *announced, FILE *to)
{
	struct renewal renewal = { .announced = announced, .to = to };

	twalk_r(announced->rules, renew, &renewal);
}

/* ---- report ---- */

static void report_peer(const void *at, VISIT visit, void *context)
{
	const struct node *node = *(const struct node *const *)at;
	const struct renewal *renewal = context;
	/* A peer that two tables do not name is no longer known to gobgp. */
	const bool is_told = node->session->table && node->session->table >= renewal->announced->peers_table;
	const bool is_known = is_told && !renewal->announced->is_peers_table_old;

	/* A peer that gobgp does not know any more must not take the place of another in the report. */
	if ((visit != postorder && visit != leaf) || (node->bytes && !is_told && !node->count))
		return;
	make_room(renewal->to);
	if (!node->bytes) {
		fprintf(renewal->to, FLOW_REPORT_LINE "unnamed %u\n", node->count);
		return;
	}
	fprintf(renewal->to, FLOW_REPORT_LINE "peer %.*s %s %lld %u\n", (int)node->bytes, (const char *)node->key,
		peer_state_names[is_known ? node->session->told.state : PEER_UNKNOWN],
		is_known ? (long long)node->session->told.since_s : 0, node->count);
}

static void report_flow(const void *at, VISIT visit, void *context)
{
	const struct node *node = *(const struct node *const *)at;
	const struct announced_flow *flow = node->flow;
	struct renewal *renewal = context;
	char text[RULE_TEXT_BYTES];
	struct rule rule;

	if ((visit != postorder && visit != leaf) || (!node->count && renewal->refused++ >= REPORT_REFUSED_MAX))
		return;
	for (size_t i = 0; node->count && i < flow->rules.count; i++) {
		rule_set_get(&flow->rules, i, &rule);
		make_room(renewal->to);
		fprintf(renewal->to, FLOW_REPORT_LINE "rule %s\n", rule_format(&rule, text));
	}
	make_room(renewal->to);
	fprintf(renewal->to, FLOW_REPORT_LINE "flow %s %.*s %s\n", refusal_names[flow->refusal],
		flow->peer && flow->peer->bytes ? (int)flow->peer->bytes : 1,
		flow->peer && flow->peer->bytes ? (const char *)flow->peer->key : "-", flow->name);
}

void announced_report(const struct announced *announced, FILE *to)
{
	struct renewal renewal = { .announced = announced, .to = to };

	for (enum refusal i = 0; i < REFUSALS; i++) {
		make_room(to);
		fprintf(to, FLOW_REPORT_LINE "refused %s %llu\n", refusal_names[i],
			(unsigned long long)announced->refused[i]);
	}
	twalk_r(announced->peers, report_peer, &renewal);
	twalk_r(announced->flows, report_flow, &renewal);
	make_room(to);
	fprintf(to, FLOW_REPORT_LINE "end\n");
}
