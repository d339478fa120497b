// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flowspec/internal.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/safe_text.h"

#define VALUES_MAX 1024 /* of one component, with ranges expanded */
#define RANGE_MAX 1024  /* numbers of a range of ports; longer ones become blocks */

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

/* The bits of a numeric operator, and of a bitmask operator: RFC 8955 sections 4.2.1.1 and 4.2.1.2. */
enum { OPERATOR_AND = 0x40, OPERATOR_LESS = 4, OPERATOR_GREATER = 2, OPERATOR_EQUAL = 1 };
enum { OPERATOR_NOT = 2, OPERATOR_MATCH = 1 };

/* The bits of the component fragment: RFC 8955 section 4.2.2.12. */
enum { DONT_FRAGMENT = 1, IS_FRAGMENT = 2, FIRST_FRAGMENT = 4, LAST_FRAGMENT = 8 };

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
	[TCP_FLAGS] = { "tcp-flags", 0 },
	[PACKET_LENGTH] = { "packet-length", 65535 },
	[DSCP] = { "dscp", 0 },
	[FRAGMENT] = { "fragment", 0 },
	[13] = { "label", 0 },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

const char *const flow_bit_names[2][8] = {
	{ "F", "S", "R", "P", "A", "U", "E", "C" },
	{ "dont-fragment", "is-fragment", "first-fragment", "last-fragment" },
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

bool flow_kind_is_bitmask(unsigned int kind)
{
	return kind == TCP_FLAGS || kind == FRAGMENT;
}

const char *flow_prefix(const json_t *value)
{
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) && strlen(text) < RULE_PREFIX_BYTES &&
			       strspn(text, "0123456789abcdefABCDEF.:/") == strlen(text) && strchr(text, '/') ?
		       text :
		       NULL;
}

/* Appends an operator with its value: "=80", or "&!is-fragment". */
static void name_term(char *name, size_t size, unsigned int kind, const json_t *item, bool is_first)
{
	static const char *const compares[] = { "false", "=", ">", ">=", "<", "<=", "!=", "true" };
	const unsigned int operator= number_of(item, "op", 0), value = number_of(item, "value", 1 << 30);
	const char *plus = "";

	text_append(name, size, "%s", is_first ? " " : operator& OPERATOR_AND ? "&" : ",");
	if (!flow_kind_is_bitmask(kind)) {
		text_append(name, size, "%s%u", compares[operator& 7], value);
		return;
	}
	text_append(name, size, "%s%s", operator& OPERATOR_NOT ? "!" : "", operator& OPERATOR_MATCH ? "=" : "");
	for (unsigned int bit = 0; bit < 8; bit++) {
		const char *word = flow_bit_names[kind == FRAGMENT][bit];

		if (!(value >> bit & 1))
			continue;
		text_append(name, size, "%s%s", plus, word ? word : "unknown");
		plus = kind == FRAGMENT ? "+" : "";
	}
	if (value > 255)
		text_append(name, size, "%s0x%x", plus, value & ~255U);
}

void flow_name(const json_t *components, char *name, size_t size)
{
	json_t *component, *item;
	size_t i, j;

	*name = '\0';
	json_array_foreach(components, i, component)
	{
		const unsigned int kind = kind_of(component);
		const json_t *value = json_object_get(component, "value");
		const char *prefix = flow_prefix(json_object_get(value, "prefix"));

		text_append(name, size, "%s%s", i ? " " : "", kinds[kind].name);
		if (prefix && kind <= SOURCE)
			text_append(name, size, " %s", prefix);
		if (number_of(component, "offset", 0))
			text_append(name, size, " offset %u", number_of(component, "offset", 0));
		json_array_foreach(value, j, item) name_term(name, size, kind, item, !j);
	}
	if (strlen(name) + 1 == size)
		strcpy(name + size - 4, "...");
}

/* ---- reading the components ---- */

static int read_prefix(struct announcement *flow, unsigned int kind, const json_t *component, struct reason *reason)
{
	const char *text = flow_prefix(json_object_get(json_object_get(component, "value"), "prefix"));
	const unsigned int other = kind == SOURCE ? DESTINATION : SOURCE;

	if (!text)
		return reason_set(reason, -EBADMSG, "%s: not a prefix", kinds[kind].name);
	if (json_object_get(component, "offset") && number_of(component, "offset", 1))
		return reason_set(reason, -EINVAL, "%s: a rule cannot match a prefix with an offset", kinds[kind].name);
	if (*flow->prefix[other] && flow->is_ipv6 != !!strchr(text, ':'))
		return reason_set(reason, -EBADMSG, "source and destination are of different families");
	flow->is_ipv6 = strchr(text, ':');
	strcpy(flow->prefix[kind], text);
	return 0;
}

/* Keeps of `ranges` only the numbers from first to last, or if `is_out` only the others. -E2BIG: too many ranges. */
static int restrict_ranges(struct ranges *ranges, unsigned int first, unsigned int last, bool is_out)
{
	struct ranges kept = { .count = 0 };

	for (size_t i = 0; i < ranges->count; i++) {
		const struct range *range = &ranges->range[i];
		const unsigned int low = is_out ? range->first : range->first > first ? range->first : first;
		const unsigned int high = is_out ? range->last : range->last < last ? range->last : last;

		if (kept.count + 2 > VALUES_MAX)
			return -E2BIG;
		if (!is_out && low <= high)
			kept.range[kept.count++] = (struct range){ low, high };
		if (is_out && low < first)
			kept.range[kept.count++] = (struct range){ low, high < first ? high : first - 1 };
		if (is_out && high > last)
			kept.range[kept.count++] = (struct range){ low > last ? low : last + 1, high };
	}
	*ranges = kept;
	return 0;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

/*
 * Adds the numbers that the operators from element *i on match, up to the next one without AND: RFC 8955 section 4.2.1.1.
 * Each compares with its value: less, equal, greater, or any of these.
 */
static int add_group(struct ranges *numbers, unsigned int kind, const json_t *list, size_t *i, struct reason *reason)
{
	struct ranges group = { .range = { { 0, 65535 } }, .count = 1 };
	int error = 0;

	do {
		const json_t *item = json_array_get(list, *i);
		const unsigned int operator= number_of(item, "op", 0);
		const unsigned int value = number_of(item, "value", 1 << 30);

		++*i;
		/* gobgp's text has them the wrong way round: RFC 8955 section 4.2.1.1. */
		if (!(operator& 7) || (operator& 7) == 7)
			return reason_set(reason, -EINVAL, "%s: the operators true and false", kinds[kind].name);
		if (value > 65535)
			return reason_set(reason, -EINVAL, "%s: no packet has the value", kinds[kind].name);
		if (!(operator& OPERATOR_EQUAL))
			error = restrict_ranges(&group, value, value, true);
		if (!error && !(operator& OPERATOR_LESS) && value)
			error = restrict_ranges(&group, 0, value - 1, true);
		if (!error && !(operator& OPERATOR_GREATER) && value < 65535)
			error = restrict_ranges(&group, value + 1, 65535, true);
	} while (!error && number_of(json_array_get(list, *i), "op", 0) & OPERATOR_AND);
	if (error || numbers->count + group.count > VALUES_MAX)
		return reason_set(reason, -E2BIG, "%s: more than %d values", kinds[kind].name, VALUES_MAX);
	memcpy(&numbers->range[numbers->count], group.range, group.count * sizeof(group.range[0]));
	numbers->count += group.count;
	return 0;
}

static int read_numbers(struct ranges *numbers, unsigned int kind, const json_t *list, struct reason *reason)
{
	/* No packet has more than a byte of a type. */
	const unsigned int most = kinds[kind].most == RULE_PROTO_MAX ? 255 : kinds[kind].most;
	size_t i = 0, kept = 0;
	int error = 0;

	while (i < json_array_size(list) && !error)
		error = add_group(numbers, kind, list, &i, reason);
	if (error)
		return error;
	qsort(numbers->range, numbers->count, sizeof(numbers->range[0]), compare_ranges);
	for (i = 0; i < numbers->count; i++) {
		struct range *last = kept ? &numbers->range[kept - 1] : NULL;

		if (last && numbers->range[i].first <= last->last + 1)
			last->last = numbers->range[i].last > last->last ? numbers->range[i].last : last->last;
		else
			numbers->range[kept++] = numbers->range[i];
	}
	numbers->count = kept;
	restrict_ranges(numbers, 0, most, false);
	if (!numbers->count)
		return reason_set(reason, -EINVAL, "%s: no packet has such a value", kinds[kind].name);
	if (numbers->range[numbers->count - 1].last > kinds[kind].most)
		return reason_set(reason, -EINVAL, "%s: a rule cannot match %u", kinds[kind].name, most);
	return 0;
}

/* Makes values of the ranges: blocks of lengths and of long ranges of ports, as rule_each() does. */
static int make_values(const struct ranges *numbers, unsigned int kind, struct values *values, struct reason *reason)
{
	values->count = 0;
	for (size_t i = 0; i < numbers->count; i++) {
		const struct range *range = &numbers->range[i];
		const bool has_blocks = kind == PACKET_LENGTH || range->last - range->first >= RANGE_MAX;

		for (unsigned int first = range->first, bits; first <= range->last; first += 1U << bits) {
			for (bits = 0; has_blocks && bits + RULE_BLOCK_BITS < RULE_PORT_BITS; bits += RULE_BLOCK_BITS)
				if (first & ((1U << (bits + RULE_BLOCK_BITS)) - 1) ||
				    range->last - first < (1U << (bits + RULE_BLOCK_BITS)) - 1)
					break;
			if (values->count == VALUES_MAX)
				return reason_set(reason, -E2BIG, "%s: more than %d values", kinds[kind].name,
						  VALUES_MAX);
			values->value[values->count++] = (struct value){ first, RULE_PORT_BITS - bits };
		}
	}
	return 0;
}

/* ---- bitmasks ---- */

/* What one operator and its value say of data: RFC 8955 section 4.2.1.2. `known`: the bits that have a meaning. */
static bool bits_match(const json_t *item, unsigned int data, unsigned int known)
{
	const unsigned int operator= number_of(item, "op", 0), value = number_of(item, "value", 0) & known;
	const bool matches = operator& OPERATOR_MATCH ? (data & value) == value : (data &value) != 0;

	return matches != !!(operator& OPERATOR_NOT);
}

static bool list_matches(const json_t *list, unsigned int data, unsigned int known)
{
	bool matches = false, group = true;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *item = json_array_get(list, i);

		if (i && !(number_of(item, "op", 0) & OPERATOR_AND)) {
			matches |= group;
			group = true;
		}
		group = group && bits_match(item, data, known);
	}
	return matches || group;
}

static unsigned int all_bits(const json_t *list)
{
	unsigned int bits = 0;
	json_t *item;
	size_t i;

	json_array_foreach(list, i, item) bits |= number_of(item, "value", 1 << 30);
	return bits;
}

/*
 * Adds values for all flags that match and have `fixed` under `mask`: one if all of these match, else those of both values
 * of the next flag that the list names.
 */
static void add_flags(struct values *values, const json_t *list, unsigned int named, unsigned int mask,
		      unsigned int fixed)
{
	const unsigned int rest = named & ~mask, next = rest & -rest;
	bool all = true, none = true;

	/* All subsets of `rest`. */
	for (unsigned int i = rest;; i = (i - 1) & rest) {
		const bool matches = list_matches(list, fixed | i, named);

		all &= matches;
		none &= !matches;
		if (!i)
			break;
	}
	if (all)
		values->value[values->count++] = (struct value){ fixed, mask };
	if (all || none)
		return;
	add_flags(values, list, named, mask | next, fixed | next);
	add_flags(values, list, named, mask | next, fixed);
}

static int read_flags(struct values *values, const json_t *list, struct reason *reason)
{
	const unsigned int named = all_bits(list);

	if (named > 255)
		return reason_set(reason, -EINVAL, "tcp-flags: a rule knows only the flags from fin to cwr");
	add_flags(values, list, named, 0, 0);
	if (!values->count)
		return reason_set(reason, -EINVAL, "tcp-flags: no packet has such flags");
	/* All flags match, but only packets of TCP have flags. */
	if (values->count == 1 && !values->value[0].mask)
		return reason_set(reason, -EINVAL, "tcp-flags: it names no flag");
	return 0;
}

/* A rule knows neither the last fragment nor Don't Fragment. So what these say must not matter. */
static int read_fragment(struct announcement *flow, const json_t *list, struct reason *reason)
{
	static const struct {
		__u16 value; /* FLOW_FRAGMENT_... */
		__u8 data, unknown;
	} states[] = { { FLOW_FRAGMENT_NO, 0, 0 },
		       { FLOW_FRAGMENT_FIRST, FIRST_FRAGMENT, 0 },
		       { FLOW_FRAGMENT_LATER, IS_FRAGMENT, LAST_FRAGMENT } };
	/* Other bits must be ignored; in IPv6 Don't Fragment is one of these: RFC 8956 section 3.6. */
	const unsigned int known = IS_FRAGMENT | FIRST_FRAGMENT | LAST_FRAGMENT | (flow->is_ipv6 ? 0 : DONT_FRAGMENT);
	struct values *values = &flow->of[FRAGMENT];
	json_t *item;
	size_t k;

	/* By the RFC it matches all packets; routers take it for packets that are no fragments. */
	json_array_foreach(list, k, item) if (!(number_of(item, "value", 0) & known)) return reason_set(
		reason, -EINVAL, "fragment: a value without bits; whole packets are !is-fragment&!first-fragment");
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		const unsigned int unknown = states[i].unknown | (flow->is_ipv6 ? 0 : DONT_FRAGMENT);
		const bool matches = list_matches(list, states[i].data, known);

		for (unsigned int more = unknown; more; more = (more - 1) & unknown)
			if (list_matches(list, states[i].data | more, known) != matches)
				return reason_set(reason, -EINVAL, "fragment: a rule knows neither %s",
						  "the last fragment nor don't-fragment");
		/* No later fragment has what the other components of such a flow want. */
		if (matches && (states[i].value != FLOW_FRAGMENT_LATER ||
				!(flow->has[PORT] || flow->has[DESTINATION_PORT] || flow->has[SOURCE_PORT] ||
				  flow->has[ICMP_TYPE] || flow->has[ICMP_CODE] || flow->has[TCP_FLAGS])))
			values->value[values->count++] = (struct value){ states[i].value, 0 };
	}
	if (!values->count)
		return reason_set(reason, -EINVAL, "fragment: no packet matches it");
	return 0;
}

static int read_values(struct announcement *flow, unsigned int kind, const json_t *component, struct reason *reason)
{
	const json_t *list = json_object_get(component, "value");

	if (!json_array_size(list))
		return reason_set(reason, -EBADMSG, "%s: no values", kinds[kind].name);
	flow->has[kind] = true;
	if (kind == TCP_FLAGS)
		return read_flags(&flow->of[kind], list, reason);
	if (kind == FRAGMENT)
		return read_fragment(flow, list, reason);
	return read_numbers(&flow->numbers[kind], kind, list, reason);
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
			return reason_set(reason, -EBADMSG, "%s: out of order", kinds[kind].name);
		before = kind;
		if (!kind || kind >= COMPONENTS || kind == DSCP)
			return reason_set(reason, -ENOTSUP, "%s: a rule cannot match it", kinds[kind].name);
		error = kind <= SOURCE ? read_prefix(flow, kind, component, reason) :
					 read_values(flow, kind, component, reason);
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
	size_t most;
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
	if (making->rules->count >= making->most)
		return reason_set(making->reason, -E2BIG, "it takes more than %zu rules", making->most);
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

/* Numbers that both have. */
static int intersect(struct ranges *a, const struct ranges *b)
{
	int error = 0;

	for (size_t i = 0; i <= b->count && !error; i++) {
		const unsigned int from = i ? b->range[i - 1].last + 1 : 0;
		const unsigned int to = i < b->count ? b->range[i].first : 65536;

		if (from < to)
			error = restrict_ranges(a, from, to - 1, true);
	}
	return error;
}

/* A packet matches the component PORT by its source port or by its destination port: RFC 8955 section 4.2.2.4. */
static int make_both_ports(struct making *making, struct announcement *flow)
{
	static const unsigned int ports[] = { SOURCE_PORT, DESTINATION_PORT };
	int error = 0;

	for (size_t i = 0; i < 2 && !error; i++) {
		const struct ranges whole = flow->numbers[ports[i]];

		if (flow->has[ports[i]] && intersect(&flow->numbers[ports[i]], &flow->numbers[PORT]))
			error = reason_set(making->reason, -E2BIG, "port: more than %d values", VALUES_MAX);
		if (!error && (!flow->has[ports[i]] || flow->numbers[ports[i]].count))
			error = make_rules(making, flow, ports[i]);
		flow->numbers[ports[i]] = whole;
	}
	if (!error && !making->rules->count)
		return reason_set(making->reason, -EINVAL, "no packet has such ports");
	return error;
}

int flow_rules(const json_t *components, enum rule_action action, size_t most, struct rule_set *rules,
	       struct reason *reason)
{
	struct announcement *flow = calloc(1, sizeof(*flow));
	struct making making = { flow, action, most, rules, reason };
	int error = flow ? read_components(flow, components, reason) : -ENOMEM;

	if (!error)
		error = check(flow, reason);
	if (!error)
		error = flow->has[PORT] ? make_both_ports(&making, flow) : make_rules(&making, flow, 0);
	free(flow);
	rule_set_sort(rules);
	return error;
}
