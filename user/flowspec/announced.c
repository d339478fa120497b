// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flowspec/announced.h"

#include <errno.h>
#include <limits.h>
#include <search.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

/* A node of either tree. The trees are balanced, so no choice of flows makes them slow. */
struct node {
	__u32 count; /* of a rule: flows that need it; of a flow: 1 if it has rules */
	__u32 bytes;
	const void *key; /* points to `copy`, except in the node that find() makes to search */
	__u8 copy[];
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

void announced_close(struct announced *announced)
{
	tdestroy(announced->flows, free);
	tdestroy(announced->rules, free);
	announced->flows = announced->rules = NULL;
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

static int add_rules(struct announced *announced, const struct route *route, FILE *to)
{
	for (size_t i = 0; i < route->rules.count; i++) {
		__u8 bytes[RULE_ENCODED_BYTES];
		struct node *node;
		struct rule rule;
		size_t length;

		rule_set_get(&route->rules, i, &rule);
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

/* ---- flows ---- */

/* Whether the limits allow rules for the flow, which has none yet. */
static bool has_room(const struct announced *announced, struct route *route, bool is_known)
{
	const struct flowspec_options *options = announced->options;

	if (!is_known && announced->flows_count >= options->flows_max)
		reason_set(&route->why, 0, "there are %llu flows already, as many as max-flows allows",
			   (unsigned long long)announced->flows_count);
	else if (announced->rules_count + route->rules.count > options->rules_max)
		reason_set(&route->why, 0, "all flows would have more rules than max-rules allows, %llu",
			   (unsigned long long)options->rules_max);
	else
		return true;
	return false;
}

int announced_take(struct announced *announced, struct route *route, FILE *to, bool *is_refused)
{
	const size_t bytes = strlen(route->key);
	struct node *flow = find(&announced->flows, route->key, bytes);
	const bool had_rules = flow && flow->count;
	bool is_wanted = route->is_drop && !route->is_withdrawn;

	*is_refused = false;
	if (is_wanted && had_rules)
		return 0;
	if (is_wanted)
		is_wanted = has_room(announced, route, flow);
	/* Skips unicast routes that never were blackholes: there may be a million of them. */
	if (!is_wanted && (had_rules || route->kind == ROUTE_FLOW || route->is_drop))
		drop_rules(announced, route, had_rules, to);
	announced->refused_count -= flow && !had_rules;
	if (flow && route->is_withdrawn) {
		forget(&announced->flows, flow);
		announced->flows_count--;
		return 0;
	}
	if (route->is_withdrawn)
		return 0;
	*is_refused = !is_wanted && (!flow || had_rules);
	announced->refused_count += !is_wanted;
	if (!flow && (announced->flows_count >= announced->options->flows_max || bytes > ROUTE_KEY_BYTES))
		return 0;
	if (!flow) {
		flow = add(&announced->flows, route->key, bytes);
		announced->flows_count += flow != NULL;
	}
	if (!flow)
		return -ENOMEM;
	flow->count = is_wanted;
	return is_wanted ? add_rules(announced, route, to) : 0;
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
