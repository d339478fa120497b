// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How many flows, rules, rates and kinds of rule FlowSpec may have, and each peer of it. A peer gets half of the room that
 * the others leave, so that none can take it all.
 */
#include "feed/flowspec/internal.h"

#include <errno.h>
#include <stdlib.h>

#define KINDS_MAX (ABI_SHAPES_MAX - 8)   /* of a family, that flows may need; the rest is for other lists */
#define RATES_MAX (ABI_RATES_MAX - 64)   /* of flows. The others are for other lists */

/* How many look-ups a packet of the family needs for these kinds. */
static size_t kinds_of(const struct shape_list *kinds, enum flow_family family)
{
	struct rule_shape probed[ABI_SHAPES_MAX];

	return kinds->must_plan ? ABI_SHAPES_MAX + 1 : shape_list_probed(kinds, family, probed);
}

/*
 * Adds the rules of a flow to *kinds. False: *kinds then has more than `most` kinds in the flow's family. With `may_plan`,
 * prefix lengths are joined if need be, as the store does.
 */
static bool add_kinds(struct shape_list *kinds, const struct rule_set *rules, bool may_plan, size_t most)
{
	struct rule_key keys[RULE_KEYS_MAX];
	const size_t before = kinds->count;
	struct rule rule = {};

	for (size_t i = 0; i < rules->count; i++) {
		rule_set_get(rules, i, &rule);
		for (size_t k = rule_keys(&rule, keys); k-- > 0;)
			if (shape_list_add(kinds, &keys[k].shape, 1))
				return false;
	}
	return kinds->count <= before || kinds_of(kinds, rule.family) <= most ||
	       (may_plan && !shape_list_plan(kinds) && kinds_of(kinds, rule.family) <= most);
}

void kinds_remove(struct shape_list *kinds, const struct rule_set *rules)
{
	struct rule_key keys[RULE_KEYS_MAX];
	struct rule rule;

	for (size_t i = 0; i < rules->count; i++) {
		rule_set_get(rules, i, &rule);
		for (size_t k = rule_keys(&rule, keys); k-- > 0;)
			shape_list_remove(kinds, &keys[k].shape);
	}
}

/*
 * How many kinds a peer may have that no other peer has: half of the room that the others leave, so that some is left
 * for more peers. *alone: those that it has now.
 */
static size_t find_share(const struct announced *announced, const struct node *peer, const struct rule_set *rules,
			 struct shape_list *alone)
{
	const struct shape_list *own = peer->session->kinds;
	struct rule rule;
	size_t others;

	*alone = (struct shape_list){};
	for (size_t i = 0; own && i < own->count; i++)
		if (shape_list_find(&announced->kinds, &own->entry[i].shape)->keys == own->entry[i].keys)
			shape_list_add(alone, &own->entry[i].shape, own->entry[i].keys);
	rule_set_get(rules, 0, &rule);
	others = kinds_of(&announced->kinds, rule.family) - kinds_of(alone, rule.family);
	return (KINDS_MAX - (others < KINDS_MAX ? others : 0)) / 2;
}

/* A flow with a rate has one rule. */
static bool has_rate(const struct rule_set *rules)
{
	struct rule rule;

	rule_set_get(rules, 0, &rule);
	return rule.fields & RULE_RATE;
}

/* Whether another flow has the same rule with another rate. `own`: the rules that the flow itself had until now. */
static bool has_other_rate(const struct announced *announced, const struct rule_set *rules, const struct rule_set *own)
{
	__u8 bytes[RULE_ENCODED_BYTES];
	const struct node *node = NULL;
	struct rule rule;

	rule_set_get(rules, 0, &rule);
	if (rule.fields & RULE_RATE)
		node = node_find(&announced->rules, bytes, rule_encode(&rule, bytes));
	return node && node->rate != rule.rate && node->count > (own->count && !rule_set_compare(own, 0, &rule));
}

static enum refusal find_rate(const struct announced *announced, const struct node *peer, struct reason *why)
{
	const size_t room = RATES_MAX - (announced->rates_count - peer->session->rates);
	const size_t most = peer->bytes ? room / 2 : room;

	if (peer->session->rates < most)
		return REFUSAL_NONE;
	reason_set(why, 0,
		   peer->bytes ? "the peer may have %zu flows with a rate: half of the room that other peers leave" :
				 "there are %zu flows with a rate already; other rates are for other lists",
		   most);
	return REFUSAL_RATES;
}

static enum refusal find_kinds(struct announced *announced, const struct node *peer, const struct rule_set *rules,
			       bool may_plan, struct reason *why)
{
	struct shape_list kinds = announced->kinds, alone;
	size_t share;

	if (!add_kinds(&kinds, rules, may_plan, KINDS_MAX)) {
		reason_set(why, 0, "flows have more kinds of rule (fields and prefix lengths) than %d, which have room",
			   KINDS_MAX);
		return REFUSAL_KINDS;
	}
	if (kinds.count > announced->kinds.count && peer->bytes) {
		share = find_share(announced, peer, rules, &alone);
		if (!add_kinds(&alone, rules, may_plan, share)) {
			reason_set(why, 0,
				   "the peer %.*s brings new kinds of rule (fields and prefix lengths), and may have "
				   "%zu: half of the room that other peers leave",
				   (int)peer->bytes, (const char *)peer->key, share);
			return REFUSAL_KINDS;
		}
	}
	announced->kinds = kinds;
	return REFUSAL_NONE;
}

enum refusal flow_find_room(struct announced *announced, const struct node *peer, const struct rule_set *rules,
			    const struct rule_set *own, bool may_plan, struct reason *why)
{
	const struct flowspec_options *options = announced->options;

	if (options->peer_flows_max && peer->count >= options->peer_flows_max) {
		reason_set(why, 0, "there are %u flows of the peer %.*s already, as many as max-flows-peer allows",
			   peer->count, (int)peer->bytes, (const char *)peer->key);
		return REFUSAL_MAX_FLOWS_PEER;
	}
	if (announced->accepted_count >= options->flows_max) {
		reason_set(why, 0, "there are %llu flows already, as many as max-flows allows",
			   (unsigned long long)announced->accepted_count);
		return REFUSAL_MAX_FLOWS;
	}
	if (announced->rules_count + rules->count > options->rules_max) {
		reason_set(why, 0, "all flows would have more rules than max-rules allows, %llu",
			   (unsigned long long)options->rules_max);
		return REFUSAL_MAX_RULES;
	}
	if (has_other_rate(announced, rules, own)) {
		reason_set(why, 0, "another flow needs the same rule with another rate");
		return REFUSAL_RATE;
	}
	if (!announced->limits_kinds)
		return REFUSAL_NONE;
	if (has_rate(rules) && find_rate(announced, peer, why) != REFUSAL_NONE)
		return REFUSAL_RATES;
	return find_kinds(announced, peer, rules, may_plan, why);
}

int flow_count_for(struct announced *announced, struct announced_flow *flow, struct node *peer)
{
	struct told_session *session = peer->session;

	if (announced->limits_kinds && !session->kinds && !(session->kinds = calloc(1, sizeof(*session->kinds))))
		return -ENOMEM;
	if (session->kinds)
		add_kinds(session->kinds, &flow->rules, true, KINDS_MAX);
	flow->peer = peer;
	peer->count++;
	session->rates += has_rate(&flow->rules);
	announced->rates_count += has_rate(&flow->rules);
	return 0;
}

void flow_uncount(struct announced *announced, const struct announced_flow *flow)
{
	flow->peer->count--;
	flow->peer->session->rates -= has_rate(&flow->rules);
	announced->rates_count -= has_rate(&flow->rules);
	if (flow->peer->session->kinds)
		kinds_remove(flow->peer->session->kinds, &flow->rules);
	announced->has_more_room = true;
}
