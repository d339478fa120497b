// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads the components of a flow: RFC 8955 section 4.2, RFC 8956 section 3. Writes them as text. */
#include "feed/flowspec/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/safe_text.h"

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

const char *flow_kind_name(unsigned int kind)
{
	return kinds[kind].name;
}

unsigned int flow_kind(const char *name, size_t length)
{
	for (unsigned int kind = 1; kind < KINDS; kind++)
		if (strlen(kinds[kind].name) == length && !strncmp(kinds[kind].name, name, length))
			return kind;
	return 0;
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
	if (kind != TCP_FLAGS && kind != FRAGMENT) {
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

int ranges_restrict(struct ranges *ranges, unsigned int first, unsigned int last, bool is_out)
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

static int read_numbers(struct ranges *numbers, unsigned int kind, const json_t *list, struct reason *reason)
{
	/* A protocol is a byte, although a rule cannot match the last one. */
	const unsigned int most = kinds[kind].most == RULE_PROTO_MAX ? 255 : kinds[kind].most;
	size_t i = 0, kept = 0;
	int error = 0;

	while (i < json_array_size(list)) {
		/* The numbers that the operators up to the next one without AND match: RFC 8955 section 4.2.1.1. */
		struct ranges group = { .range = { { 0, 65535 } }, .count = 1 };

		do {
			const json_t *item = json_array_get(list, i++);
			const unsigned int operator= number_of(item, "op", 0);
			const unsigned int value = number_of(item, "value", 1 << 30);

			/* gobgp's text exchanges these two: RFC 8955 section 4.2.1.1. */
			if (!(operator& 7) || (operator& 7) == 7)
				return reason_set(reason, -EINVAL, "%s: the operators true and false",
						  kinds[kind].name);
			if (value > 65535)
				return reason_set(reason, -EINVAL, "%s: no packet has the value", kinds[kind].name);
			/* It matches less, equal, greater, or several of these. */
			if (!(operator& OPERATOR_EQUAL))
				error = ranges_restrict(&group, value, value, true);
			if (!error && !(operator& OPERATOR_LESS) && value)
				error = ranges_restrict(&group, 0, value - 1, true);
			if (!error && !(operator& OPERATOR_GREATER) && value < 65535)
				error = ranges_restrict(&group, value + 1, 65535, true);
		} while (!error && number_of(json_array_get(list, i), "op", 0) & OPERATOR_AND);
		if (error || numbers->count + group.count > VALUES_MAX)
			return reason_set(reason, -E2BIG, "%s: more than %d values", kinds[kind].name, VALUES_MAX);
		memcpy(&numbers->range[numbers->count], group.range, group.count * sizeof(group.range[0]));
		numbers->count += group.count;
	}
	qsort(numbers->range, numbers->count, sizeof(numbers->range[0]), compare_ranges);
	for (i = 0; i < numbers->count; i++) {
		struct range *last = kept ? &numbers->range[kept - 1] : NULL;

		if (last && numbers->range[i].first <= last->last + 1)
			last->last = numbers->range[i].last > last->last ? numbers->range[i].last : last->last;
		else
			numbers->range[kept++] = numbers->range[i];
	}
	numbers->count = kept;
	ranges_restrict(numbers, 0, most, false);
	if (!numbers->count)
		return reason_set(reason, -EINVAL, "%s: no packet has such a value", kinds[kind].name);
	if (numbers->range[numbers->count - 1].last > kinds[kind].most)
		return reason_set(reason, -EINVAL, "%s: a rule cannot match %u", kinds[kind].name, most);
	return 0;
}

/* ---- bitmasks ---- */

/*
 * Whether the list matches data: RFC 8955 section 4.2.1.2. Each operator says one thing of the bits of its value.
 * `known`: the bits that have a meaning.
 */
static bool list_matches(const json_t *list, unsigned int data, unsigned int known)
{
	bool matches = false, group = true;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *item = json_array_get(list, i);
		const unsigned int operator= number_of(item, "op", 0), value = number_of(item, "value", 0) & known;
		const bool has_bits = operator& OPERATOR_MATCH ? (data & value) == value : (data &value) != 0;

		if (i && !(operator& OPERATOR_AND)) {
			matches |= group;
			group = true;
		}
		group = group && has_bits != !!(operator& OPERATOR_NOT);
	}
	return matches || group;
}

/*
 * Adds values for all sets of flags that match and are `fixed` under `mask`. If all such sets match, adds one value. Else
 * tries both values of the next flag that is `named`. `matches`: of each set of named flags.
 */
static void add_flags(struct values *values, const bool matches[256], unsigned int named, unsigned int mask,
		      unsigned int fixed)
{
	const unsigned int rest = named & ~mask, next = rest & -rest;
	bool all = true, none = true;

	/* All subsets of `rest`. */
	for (unsigned int i = rest;; i = (i - 1) & rest) {
		all &= matches[fixed | i];
		none &= !matches[fixed | i];
		if (!i)
			break;
	}
	if (all)
		values->value[values->count++] = (struct value){ fixed, mask };
	if (all || none)
		return;
	add_flags(values, matches, named, mask | next, fixed | next);
	add_flags(values, matches, named, mask | next, fixed);
}

static int read_flags(struct values *values, const json_t *list, struct reason *reason)
{
	unsigned int named = 0;
	bool matches[256];
	json_t *item;
	size_t i;

	json_array_foreach(list, i, item) named |= number_of(item, "value", 1 << 30);
	if (named > 255)
		return reason_set(reason, -EINVAL, "tcp-flags: a rule knows only the flags from fin to cwr");
	for (i = 0; i <= named; i++)
		matches[i] = list_matches(list, i, named);
	add_flags(values, matches, named, 0, 0);
	if (!values->count)
		return reason_set(reason, -EINVAL, "tcp-flags: no packet has such flags");
	/* All flags match, but only packets of TCP have flags. */
	if (values->count == 1 && !values->value[0].mask)
		return reason_set(reason, -EINVAL, "tcp-flags: it names no flag");
	return 0;
}

/* A rule knows neither the last fragment nor Don't Fragment. So the list must not depend on them. */
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

	/* By the RFC a value without bits matches all packets; routers take it for those that are no fragments. */
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

int flow_read(struct announcement *flow, const json_t *components, struct reason *reason)
{
	unsigned int before = 0;
	json_t *component;
	int error = 0;
	size_t i;

	json_array_foreach(components, i, component)
	{
		const unsigned int kind = kind_of(component);
		const json_t *list = json_object_get(component, "value");

		/* RFC 8955 section 4.2: in order, each at most once. */
		if (kind && kind <= before)
			return reason_set(reason, -EBADMSG, "%s: out of order", kinds[kind].name);
		before = kind;
		if (!kind || kind >= COMPONENTS || kind == DSCP)
			return reason_set(reason, -ENOTSUP, "%s: a rule cannot match it", kinds[kind].name);
		if (kind > SOURCE && !json_array_size(list))
			return reason_set(reason, -EBADMSG, "%s: no values", kinds[kind].name);
		flow->has[kind] = true;
		if (kind <= SOURCE)
			error = read_prefix(flow, kind, component, reason);
		else if (kind == TCP_FLAGS)
			error = read_flags(&flow->of[kind], list, reason);
		else if (kind == FRAGMENT)
			error = read_fragment(flow, list, reason);
		else
			error = read_numbers(&flow->numbers[kind], kind, list, reason);
		if (error)
			return error;
	}
	return 0;
}
