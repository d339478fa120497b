// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Makes the rules that match exactly the packets of a flow. */
#include "feed/flowspec/internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANGE_MAX 1024 /* numbers of a range of ports; longer ones become blocks */

/* Keeps only protocols `a` and `b`, which have the flow's other components: no other packet matches the flow. */
static int choose_protocols(struct announcement *flow, unsigned int a, unsigned int b, const char *what,
			    struct reason *reason)
{
	struct ranges *protocols = &flow->numbers[PROTOCOL];
	struct ranges chosen = { .range = { { a, a }, { b, b } }, .count = a != b ? 2 : 1 };
	size_t kept = 0;

	for (size_t i = 0; i < chosen.count; i++)
		for (size_t j = 0; j < protocols->count || !j; j++)
			if (!flow->has[PROTOCOL] || (chosen.range[i].first >= protocols->range[j].first &&
						     chosen.range[i].first <= protocols->range[j].last))
				chosen.range[kept++] = chosen.range[i];
	chosen.count = kept;
	*protocols = chosen;
	return kept ? 0 : reason_set(reason, -EINVAL, "no packet of this protocol has %s", what);
}

static int check(struct announcement *flow, struct reason *reason)
{
	const bool *has = flow->has;
	const bool has_ports = has[PORT] || has[SOURCE_PORT] || has[DESTINATION_PORT];
	const bool has_icmp = has[ICMP_TYPE] || has[ICMP_CODE];
	const unsigned int icmp = flow->is_ipv6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;

	/* A rule without an address would match both families. */
	if (!*flow->prefix[DESTINATION] && !*flow->prefix[SOURCE])
		return reason_set(reason, -EDOM, "it names neither a destination nor a source");
	if ((has_ports || has[TCP_FLAGS]) && has_icmp)
		return reason_set(reason, -EINVAL, "no packet has both ports and an ICMP type");
	if (has[TCP_FLAGS])
		return choose_protocols(flow, IPPROTO_TCP, IPPROTO_TCP, "TCP flags", reason);
	if (has_ports)
		return choose_protocols(flow, IPPROTO_TCP, IPPROTO_UDP, "ports that FlowSpec knows", reason);
	return has_icmp ? choose_protocols(flow, icmp, icmp, "such an ICMP type", reason) : 0;
}

struct making {
	const struct announcement *flow;
	enum rule_action action;
	struct rule_set *rules;
	struct reason *reason;
};

/* The components of a rule, in the order in which make_product() takes them, and their words. */
static const struct {
	unsigned int kind;
	const char *word;
} words[] = { { PROTOCOL, "proto" }, { SOURCE_PORT, "sport" }, { DESTINATION_PORT, "dport" },
	      { ICMP_TYPE, "type" }, { ICMP_CODE, "code" },    { PACKET_LENGTH, "length" } };

#define WORDS (sizeof(words) / sizeof(words[0]))

/* Adds the rule with these values. It makes the rule from text, because rule_parse() checks all of it. */
static int add_rule(struct making *making, const char *text, const struct value *flags, const struct value *fragment)
{
	const enum flow_family family = making->flow->is_ipv6 ? FLOW_IPV6 : FLOW_IPV4;
	struct rule rule;
	int error = rule_parse(text, &rule, making->reason);

	if (error)
		return error;
	rule.action = making->action;
	if (flags) {
		rule.flags = flags->first;
		rule.details.flags_mask = flags->mask;
	}
	if (fragment) {
		rule.fragment = fragment->first;
		rule.details.fragment_mask = FLOW_FRAGMENT_MASK;
	}
	rule_mark_details(&rule.fields, &rule.details);
	/* The flow has a mapped IPv4 address, or a prefix of length 0. */
	if (rule.family != family || (!rule.src_len && !rule.dst_len) || !rule_is_canonical(&rule))
		return reason_set(making->reason, -EDOM, "a rule cannot match just this prefix");
	if (making->rules->count >= ROUTE_RULES_MAX)
		return reason_set(making->reason, -E2BIG, "it takes more than %d rules",
				  ROUTE_RULES_MAX);
	return rule_set_add(making->rules, &rule);
}

/* Makes a rule for each combination of values of the components from number `at` on; `text` has those before. */
static int make_product(struct making *making, char *text, size_t used, size_t at)
{
	const struct values *of = making->flow->of, *flags = &of[TCP_FLAGS], *fragments = &of[FRAGMENT];
	const struct values *values;
	int error = 0;

	for (size_t i = 0; at == WORDS && (i < flags->count || !i) && !error; i++)
		for (size_t j = 0; (j < fragments->count || !j) && !error; j++)
			error = add_rule(making, text, flags->count ? &flags->value[i] : NULL,
					 fragments->count ? &fragments->value[j] : NULL);
	if (at == WORDS)
		return error;
	values = &of[words[at].kind];
	if (!values->count)
		return make_product(making, text, used, at + 1);
	for (size_t i = 0; i < values->count && !error; i++) {
		const struct value *value = &values->value[i];
		size_t length = used + sprintf(text + used, " %s %u", words[at].word, value->first);

		if (value->mask < RULE_PORT_BITS)
			length += sprintf(text + length, "/%u", value->mask);
		error = make_product(making, text, length, at + 1);
	}
	return error;
}

/* Makes values of the ranges: blocks of lengths and of long ranges of ports, as rule_each() does. */
static int make_values(const struct ranges *numbers, unsigned int kind, struct values *values, struct reason *reason)
{
	values->count = 0;
	for (size_t i = 0; i < numbers->count; i++) {
		const struct range *range = &numbers->range[i];
		const bool has_blocks = kind == PACKET_LENGTH || range->last - range->first >= RANGE_MAX;

		for (unsigned int first = range->first, bits; first <= range->last; first += 1U << bits) {
			bits = has_blocks ? rule_block_bits(first, range->last) : 0;
			if (values->count == VALUES_MAX)
				return reason_set(reason, -E2BIG, "%s: more than %d values", flow_kind_name(kind),
						  VALUES_MAX);
			values->value[values->count++] = (struct value){ first, RULE_PORT_BITS - bits };
		}
	}
	return 0;
}

/* Makes the rules. `port`: the component that the component PORT restricts as well, if the flow has it. */
static int make_rules(struct making *making, struct announcement *flow, unsigned int port)
{
	char text[RULE_TEXT_BYTES];
	int error = 0;

	for (size_t i = 0; i < WORDS && !error; i++) {
		const unsigned int kind = words[i].kind;
		struct ranges numbers = flow->numbers[kind];

		if (flow->has[PORT] && kind == port && !flow->has[port])
			numbers = flow->numbers[PORT];
		error = make_values(&numbers, kind, &flow->of[kind], making->reason);
	}
	if (error)
		return error;
	snprintf(text, sizeof(text), "%s%s %s%s", *flow->prefix[SOURCE] ? "src " : "", flow->prefix[SOURCE],
		 *flow->prefix[DESTINATION] ? "dst " : "", flow->prefix[DESTINATION]);
	return make_product(making, text, strlen(text), 0);
}

/* A packet matches the component PORT by its source port or by its destination port: RFC 8955 section 4.2.2.4. */
static int make_both_ports(struct making *making, struct announcement *flow)
{
	static const unsigned int ports[] = { SOURCE_PORT, DESTINATION_PORT };
	const struct ranges *either = &flow->numbers[PORT];
	int error = 0;

	for (size_t i = 0; i < 2 && !error; i++) {
		const struct ranges whole = flow->numbers[ports[i]];

		/* Takes out the numbers between those of PORT. */
		for (size_t j = 0; flow->has[ports[i]] && j <= either->count && !error; j++) {
			const unsigned int from = j ? either->range[j - 1].last + 1 : 0;
			const unsigned int to = j < either->count ? either->range[j].first : 65536;

			if (from < to && ranges_restrict(&flow->numbers[ports[i]], from, to - 1, true))
				error = reason_set(making->reason, -E2BIG, "port: more than %d values", VALUES_MAX);
		}
		if (!error && (!flow->has[ports[i]] || flow->numbers[ports[i]].count))
			error = make_rules(making, flow, ports[i]);
		flow->numbers[ports[i]] = whole;
	}
	if (!error && !making->rules->count)
		return reason_set(making->reason, -EINVAL, "no packet has such ports");
	return error;
}

int flow_rules(const json_t *components, enum rule_action action, struct rule_set *rules,
	       struct reason *reason)
{
	struct announcement *flow = calloc(1, sizeof(*flow));
	struct making making = { flow, action, rules, reason };
	int error = flow ? flow_read(flow, components, reason) : -ENOMEM;

	if (!error)
		error = check(flow, reason);
	if (!error)
		error = flow->has[PORT] ? make_both_ports(&making, flow) : make_rules(&making, flow, 0);
	free(flow);
	rule_set_sort(rules);
	return error;
}
