// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flowspec/internal.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	COMPONENTS, /* rules cannot match components from here on */
};

/* The bits of a numeric operator: RFC 8955 section 4.2.1.1. */
enum { OPERATOR_AND = 0x40, OPERATOR_LESS = 4, OPERATOR_GREATER = 2, OPERATOR_EQUAL = 1 };

static const struct {
	const char *name;
	unsigned int most; /* the largest value */
} kinds[] = {
	[0] = { "unknown component", 0 },
	[DESTINATION] = { "destination", 0 },
	[SOURCE] = { "source", 0 },
	[PROTOCOL] = { "protocol", RULE_PROTO_MAX },
	[PORT] = { "port", 65535 },
	[DESTINATION_PORT] = { "destination-port", 65535 },
	[SOURCE_PORT] = { "source-port", 65535 },
	[ICMP_TYPE] = { "icmp-type", 255 },
	[ICMP_CODE] = { "icmp-code", 255 },
	[9] = { "tcp-flags", 0 },
	[10] = { "packet-length", 0 },
	[11] = { "dscp", 0 },
	[12] = { "fragment", 0 },
	[13] = { "label", 0 },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct values {
	unsigned int value[VALUES_MAX];
	size_t count; /* 0: the flow does not have the component */
};

struct announcement {
	char prefix[SOURCE + 1][RULE_PREFIX_BYTES]; /* "": none */
	bool is_ipv6;
	struct values of[COMPONENTS];
};

static unsigned int number_of(const json_t *object, const char *name, unsigned int none)
{
	const json_t *value = json_object_get(object, name);
	const double number = json_number_value(value);

	return json_is_number(value) && number >= 0 && number <= 1 << 30 && number == floor(number) ? number : none;
}

static unsigned int kind_of(const json_t *component)
{
	const unsigned int kind = number_of(component, "type", 0);

	return kind < KINDS ? kind : 0;
}

unsigned int flow_kind(const char *name, size_t length)
{
	for (unsigned int kind = 1; kind < KINDS; kind++)
		if (strlen(kinds[kind].name) == length && !strncmp(kinds[kind].name, name, length))
			return kind;
	return 0;
}

bool flow_kind_is_prefix(unsigned int kind)
{
	return kind == DESTINATION || kind == SOURCE;
}

const char *flow_prefix(const json_t *value)
{
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) && strlen(text) < RULE_PREFIX_BYTES &&
			       strspn(text, "0123456789abcdefABCDEF.:/") == strlen(text) && strchr(text, '/') ?
		       text :
		       NULL;
}

void flow_name(const json_t *components, char *name, size_t size)
{
	size_t used = 0, i;
	json_t *component;

	*name = '\0';
	json_array_foreach(components, i, component)
	{
		const unsigned int kind = kind_of(component);
		const char *prefix = flow_prefix(json_object_get(json_object_get(component, "value"), "prefix"));

		if (used >= size)
			return;
		used += snprintf(name + used, size - used, "%s%s", used ? " " : "", kinds[kind].name);
		if (prefix && kind <= SOURCE && used < size)
			used += snprintf(name + used, size - used, " %s", prefix);
	}
}

/* ---- reading the components ---- */

static int read_prefix(struct announcement *flow, unsigned int kind, const json_t *component, struct reason *reason)
{
	const char *text = flow_prefix(json_object_get(json_object_get(component, "value"), "prefix"));
	const unsigned int other = kind == SOURCE ? DESTINATION : SOURCE;

	if (!text)
		return reason_set(reason, -EINVAL, "%s: not a prefix", kinds[kind].name);
	if (json_object_get(component, "offset") && number_of(component, "offset", 1))
		return reason_set(reason, -EINVAL, "%s: a rule cannot match a prefix with an offset", kinds[kind].name);
	if (*flow->prefix[other] && flow->is_ipv6 != !!strchr(text, ':'))
		return reason_set(reason, -EINVAL, "source and destination are of different families");
	flow->is_ipv6 = strchr(text, ':');
	strcpy(flow->prefix[kind], text);
	return 0;
}

static int add_range(struct values *values, unsigned int kind, unsigned int first, unsigned int last,
		     struct reason *reason)
{
	if (first > last || last > kinds[kind].most)
		return reason_set(reason, -EINVAL, "%s: no packet has a value from %u to %u", kinds[kind].name, first,
				  last);
	if (last - first >= VALUES_MAX - values->count)
		return reason_set(reason, -EINVAL, "%s: more than %d values", kinds[kind].name, VALUES_MAX);
	while (first <= last)
		values->value[values->count++] = first++;
	return 0;
}

/*
 * Takes `==V`, or a closed range `>=A&<=B` in either order, which starts at element *i. An operator without AND starts
 * the next value or range: RFC 8955 section 4.2.1.1.
 */
static int add_values(struct values *values, unsigned int kind, const json_t *list, size_t *i, struct reason *reason)
{
	unsigned int first = 0, last = 0, terms = 0, seen = 0;

	do {
		const json_t *item = json_array_get(list, *i);
		const unsigned int operator= number_of(item, "op", 0), compare = operator& 7;
		const unsigned int value = number_of(item, "value", 1 << 30);

		++*i;
		terms++;
		seen |= compare;
		if (compare == OPERATOR_EQUAL && terms == 1)
			first = last = value;
		else if ((compare & ~OPERATOR_EQUAL) == OPERATOR_GREATER)
			first = value + !(compare & OPERATOR_EQUAL);
		else if ((compare & ~OPERATOR_EQUAL) == OPERATOR_LESS && (value || compare & OPERATOR_EQUAL))
			last = value - !(compare & OPERATOR_EQUAL);
		else
			terms = 3;
	} while (number_of(json_array_get(list, *i), "op", 0) & OPERATOR_AND);
	if (terms == 1 ? seen != OPERATOR_EQUAL :
			 terms > 2 || (seen & ~OPERATOR_EQUAL) != (OPERATOR_LESS | OPERATOR_GREATER))
		return reason_set(reason, -EINVAL, "%s: only single values and closed ranges can be matched",
				  kinds[kind].name);
	return add_range(values, kind, first, last, reason);
}

static int compare_values(const void *a, const void *b)
{
	const unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

	return (x > y) - (x < y);
}

static int read_values(struct values *values, unsigned int kind, const json_t *component, struct reason *reason)
{
	const json_t *list = json_object_get(component, "value");
	size_t i = 0, kept = 0;
	int error = 0;

	if (!json_array_size(list))
		return reason_set(reason, -EINVAL, "%s: no values", kinds[kind].name);
	while (i < json_array_size(list) && !error)
		error = add_values(values, kind, list, &i, reason);
	qsort(values->value, values->count, sizeof(values->value[0]), compare_values);
	for (i = 0; i < values->count; i++)
		if (!kept || values->value[kept - 1] != values->value[i])
			values->value[kept++] = values->value[i];
	values->count = kept;
	return error;
}

static int read_components(struct announcement *flow, const json_t *components, struct reason *reason)
{
	unsigned int before = 0;
	json_t *component;
	int error = 0;
	size_t i;

	json_array_foreach(components, i, component)
	{
		const unsigned int kind = kind_of(component);

		/* RFC 8955 section 4.2: in order, each at most once. */
		if (kind && kind <= before)
			return reason_set(reason, -EINVAL, "%s: out of order", kinds[kind].name);
		before = kind;
		if (!kind || kind >= COMPONENTS)
			return reason_set(reason, -EINVAL, "%s: a rule cannot match it", kinds[kind].name);
		error = kind <= SOURCE ? read_prefix(flow, kind, component, reason) :
					 read_values(&flow->of[kind], kind, component, reason);
		if (error)
			return error;
	}
	return 0;
}

/* ---- making the rules ---- */

/* Keeps only protocols `a` and `b`, which have the flow's other components: no other packet matches the flow. */
static int choose_protocols(struct announcement *flow, unsigned int a, unsigned int b, const char *what,
			    struct reason *reason)
{
	struct values *protocols = &flow->of[PROTOCOL];
	size_t kept = 0;

	if (!protocols->count) {
		protocols->value[kept++] = a;
		if (a != b)
			protocols->value[kept++] = b;
	}
	for (size_t i = 0; i < protocols->count; i++)
		if (protocols->value[i] == a || protocols->value[i] == b)
			protocols->value[kept++] = protocols->value[i];
	protocols->count = kept;
	return kept ? 0 : reason_set(reason, -EINVAL, "no packet of this protocol has %s", what);
}

static int check(struct announcement *flow, struct reason *reason)
{
	const struct values *of = flow->of;
	const bool has_ports = of[PORT].count || of[SOURCE_PORT].count || of[DESTINATION_PORT].count;
	const bool has_icmp = of[ICMP_TYPE].count || of[ICMP_CODE].count;
	const unsigned int icmp = flow->is_ipv6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;

	/* A rule without an address would match both families. */
	if (!*flow->prefix[DESTINATION] && !*flow->prefix[SOURCE])
		return reason_set(reason, -EINVAL, "it names neither a destination nor a source");
	if (of[PORT].count && (of[SOURCE_PORT].count || of[DESTINATION_PORT].count))
		return reason_set(reason, -EINVAL, "port together with source-port or destination-port");
	if (has_ports && has_icmp)
		return reason_set(reason, -EINVAL, "no packet has both ports and an ICMP type");
	if (has_ports)
		return choose_protocols(flow, IPPROTO_TCP, IPPROTO_UDP, "ports that FlowSpec knows", reason);
	return has_icmp ? choose_protocols(flow, icmp, icmp, "such an ICMP type", reason) : 0;
}

struct making {
	const struct announcement *flow;
	enum rule_action action;
	size_t most;
	struct rule_set *rules;
	struct reason *reason;
};

/* Appends a word and a value; nothing if there are no values. */
static size_t put(char *text, size_t used, const char *word, const struct values *values, size_t i)
{
	return values->count ? used + sprintf(text + used, " %s %u", word, values->value[i]) : used;
}

/* Adds the rule with these values. It makes the rule from text, because rule_parse() checks all of it. */
static int add_rule(struct making *making, const char *prefixes, const char *words, enum flow_family family)
{
	char text[RULE_TEXT_BYTES];
	struct rule rule;
	int error;

	snprintf(text, sizeof(text), "%s%s action %s", prefixes, words, rule_action_name(making->action));
	error = rule_parse(text, &rule, making->reason);
	if (error)
		return error;
	/* The flow has a mapped IPv4 address, or a prefix of length 0. */
	if (rule.family != family || (!rule.src_len && !rule.dst_len))
		return reason_set(making->reason, -EINVAL, "a rule cannot match just this prefix");
	if (making->rules->count >= making->most)
		return reason_set(making->reason, -EINVAL, "it takes more than %zu rules", making->most);
	return rule_set_add(making->rules, &rule);
}

static int make_product(struct making *making, const char *prefixes, const struct values *a, const char *a_word,
			const struct values *b, const char *b_word)
{
	const struct values *protocols = &making->flow->of[PROTOCOL];
	const enum flow_family family = making->flow->is_ipv6 ? FLOW_IPV6 : FLOW_IPV4;
	char words[80];
	int error = 0;

	for (size_t i = 0; i < protocols->count || !i; i++)
		for (size_t j = 0; j < a->count || !j; j++)
			for (size_t k = 0; k < b->count || !k; k++) {
				size_t used = put(words, 0, "proto", protocols, i);

				used = put(words, used, a_word, a, j);
				used = put(words, used, b_word, b, k);
				words[used] = '\0';
				error = add_rule(making, prefixes, words, family);
				if (error)
					return error;
			}
	return error;
}

int flow_rules(const json_t *components, enum rule_action action, size_t most, struct rule_set *rules,
	       struct reason *reason)
{
	struct announcement *flow = calloc(1, sizeof(*flow));
	struct making making = { flow, action, most, rules, reason };
	char prefixes[2 * (RULE_PREFIX_BYTES + 8)];
	const struct values *of = flow ? flow->of : NULL, nothing = {};
	int error = flow ? read_components(flow, components, reason) : -ENOMEM;

	if (!error)
		error = check(flow, reason);
	if (error) {
		free(flow);
		return error;
	}
	snprintf(prefixes, sizeof(prefixes), "%s%s %s%s", *flow->prefix[SOURCE] ? "src " : "", flow->prefix[SOURCE],
		 *flow->prefix[DESTINATION] ? "dst " : "", flow->prefix[DESTINATION]);
	if (of[PORT].count) {
		error = make_product(&making, prefixes, &of[PORT], "sport", &nothing, "");
		if (!error)
			error = make_product(&making, prefixes, &of[PORT], "dport", &nothing, "");
	} else if (of[ICMP_TYPE].count || of[ICMP_CODE].count) {
		error = make_product(&making, prefixes, &of[ICMP_TYPE], "type", &of[ICMP_CODE], "code");
	} else {
		error = make_product(&making, prefixes, &of[SOURCE_PORT], "sport", &of[DESTINATION_PORT], "dport");
	}
	free(flow);
	rule_set_sort(rules);
	return error;
}
