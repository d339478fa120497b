// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The form is that of gobgp 3.0 to 4.8: monitor.go, and String() of the types in bgp.go and constant.go. */
#include "feed/flowspec/internal.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TIME_BYTES 21 /* "2026-11-24T13:21:09Z " */

/* ---- components ---- */

/* The value of an operator's operand: a number, or gobgp's name of a protocol. -1: neither. */
static long operand(const char *text, size_t length)
{
	static const struct {
		const char *name;
		int number;
	} protocols[] = {
		{ "icmp", 1 },  { "igmp", 2 }, { "tcp", 6 },   { "egp", 8 },   { "igp", 9 },   { "udp", 17 },
		{ "rsvp", 46 }, { "gre", 47 }, { "ospf", 89 }, { "ipip", 94 }, { "pim", 103 }, { "sctp", 132 }
	};

	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++)
		if (strlen(protocols[i].name) == length && !strncmp(text, protocols[i].name, length))
			return protocols[i].number;
	return length && length < 10 && strspn(text, "0123456789") == length ? strtol(text, NULL, 10) : -1;
}

/* "==80 >=1024&<=2048" up to `end`. NULL: these are no numeric operators (RFC 8955 section 4.2.1.1). */
static json_t *operators(const char *at, const char *end)
{
	json_t *list = json_array();

	while (at < end) {
		unsigned int bits = 0;
		const bool is_and = *at == '&';
		size_t length;
		long value;

		for (at += is_and || *at == ' '; strchr("<>=!", *at); at++)
			bits |= *at == '=' ? 1 : *at == '>' ? 2 : *at == '<' ? 4 : 6;
		bits -= bits == 7; /* != */
		length = strcspn(at, " &]");
		value = operand(at, length);
		if (value < 0 || !bits ||
		    json_array_append_new(list,
					  json_pack("{s:i, s:i}", "op", bits | is_and << 6, "value", (int)value))) {
			json_decref(list);
			return NULL;
		}
		at += length;
	}
	return list;
}

/* "=SA&!F", or "first-fragment !is-fragment+last-fragment" up to `end`. NULL: these are no bitmask operators (4.2.1.2). */
static json_t *bitmasks(const char *at, const char *end)
{
	json_t *list = json_array();

	while (at < end) {
		unsigned int bits = *at == '&' ? 1 << 6 : 0, value = 0;
		bool is_known = true;

		for (at += *at == '&' || *at == ' '; at < end && (*at == '!' || *at == '='); at++)
			bits |= *at == '!' ? 2 : 1;
		while (at < end && *at != ' ' && *at != '&' && is_known) {
			is_known = false;
			at += *at == '+';
			for (size_t i = 0; i < 16 && !is_known; i++) {
				const char *name = flow_bit_names[i / 8][i % 8];

				is_known = name && !strncmp(at, name, strlen(name));
				at += is_known ? strlen(name) : 0;
				value |= is_known ? 1U << i % 8 : 0;
			}
		}
		if (!is_known || json_array_append_new(list, json_pack("{s:i, s:i}", "op", bits, "value", value))) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

/* "[protocol: ==udp]": [ is at `at`, and ] at `end`. What rules cannot match stays text, for the key of the flow. */
static json_t *component(const char *at, const char *end)
{
	const char *colon = memchr(at, ':', end - at), *value = colon ? colon + 2 : end, *slash;
	const unsigned int kind = colon ? flow_kind(at + 1, colon - at - 1) : 0;
	const bool is_bitmask = kind == TCP_FLAGS || kind == FRAGMENT;
	json_t *list;

	if ((kind == DESTINATION || kind == SOURCE) && value < end) {
		/* "2001:db8::/32/0": with the offset that only IPv6 has. */
		slash = memchr(value, '/', end - value);
		slash = slash ? memchr(slash + 1, '/', end - slash - 1) : NULL;
		return json_pack("{s:i, s:{s:s%}, s:i}", "type", kind, "value", "prefix", value,
				 (size_t)((slash ? slash : end) - value), "offset", slash ? atoi(slash + 1) : 0);
	}
	list = !kind || value >= end ? NULL : is_bitmask ? bitmasks(value, end) : operators(value, end);
	return list ? json_pack("{s:i, s:o}", "type", kind, "value", list) :
		      json_pack("{s:i, s:s%}", "type", kind, "value", at, (size_t)(end - at));
}

/* From `at` to `end`. A component of a kind that gobgp does not know may have brackets within. */
static json_t *components(const char *at, const char *end)
{
	json_t *list = json_array();

	for (const char *close; at < end; at = close + 1) {
		close = memchr(at, ']', end - at);
		while (close && close + 1 < end && close[1] != '[')
			close = memchr(close + 1, ']', end - close - 1);
		/* Without one of its components, the rule would be wider. */
		if (*at != '[' || !close || json_array_append_new(list, component(at, close))) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

/* ---- attributes ---- */

/*
 * Adds what a community asks for: "discard", "rate: 1000.000000(as: 1)", "redirect: 65001:100". gobgp does not know the
 * rate of packets (subtype 12), and prints the number that all its bytes but the type make. It prints a redirect to an address as it
 * prints a route target of an address: then neither is taken for the other.
 */
static void add_action(json_t *list, const char *text)
{
	static const struct {
		const char *start;
		int subtype;
		double rate;
	} actions[] = {
		{ "discard", 6, 0 },  { "rate: -", 6, 0 },    { "rate: NaN", 6, NAN }, { "rate: ", 6, 1 },
		{ "action: ", 7, 0 }, { "redirect: ", 8, 0 }, { "remark: ", 9, 0 },
	};
	const unsigned long long number = strtoull(text, NULL, 10);
	const size_t length = strcspn(text, "]");
	double rate = flow_float(number) < 0 ? 0 : flow_float(number);
	int subtype = number >> 48 == 12 ? 12 : 0, type = 0x80, colons = 0, dots = 0;
	json_t *community;

	for (size_t i = 0; i < length; i++) {
		colons += text[i] == ':';
		dots += text[i] == '.';
	}
	if (strspn(text, "0123456789abcdef.:") == length && (dots == 3 || colons > 1))
		type = 1, subtype = 12;

	for (size_t i = sizeof(actions) / sizeof(actions[0]); i-- > 0;)
		if (!strncmp(text, actions[i].start, strlen(actions[i].start))) {
			subtype = actions[i].subtype;
			rate = actions[i].rate > 0 ? strtod(text + strlen("rate: "), NULL) : actions[i].rate;
			if (actions[i].rate > 0 && !(rate > DBL_MIN))
				rate = DBL_MIN;
		}
	community = json_pack("{s:i, s:i}", "type", type, "subtype", subtype);
	json_object_set_new(community, "rate", json_real(rate)); /* none, if it is no number */
	json_array_append_new(list, community);
}

/* `text` is behind the NLRI. There are communities of 8 bytes, and those of IPv6. */
static json_t *attributes(const char *text)
{
	static const char extended[] = "{Extcomms: ", communities[] = "{Communities: ";
	json_t *actions = json_array(), *blackhole = json_array();
	const char *found = strstr(text, communities), *word = found ? strstr(found, "blackhole") : NULL;

	if (word && word < found + strcspn(found, "}"))
		json_array_append_new(blackhole, json_integer(0xffff029a));
	for (const char *at = strstr(text, extended); at; at = strstr(at, extended))
		for (at += strlen(extended); *at == '['; at += strspn(at, "], ")) {
			add_action(actions, at + 1);
			at += strcspn(at, "]");
		}
	return json_pack("[{s:i, s:o}, {s:i, s:o}]", "type", 16, "value", actions, "type", 8, "communities", blackhole);
}

json_t *route_text_read(const char *text)
{
	static const char route[] = "[ROUTE] ", withdrawn[] = "[DELROUTE] ";
	const size_t length = strlen(text);
	const char *title = length > TIME_BYTES ? text + TIME_BYTES : "";
	const bool is_withdrawn = !strncmp(title, withdrawn, strlen(withdrawn));
	const char *nlri, *end;
	json_t *value, *prefix;

	if (!is_withdrawn && strncmp(title, route, strlen(route)))
		return NULL;
	nlri = title + strlen(is_withdrawn ? withdrawn : route);
	end = strstr(nlri, " via ");
	/* "%!s(<nil>)": gobgp cannot read it. */
	if (!end || *nlri == '%')
		return NULL;
	prefix = json_stringn(nlri, end - nlri);
	if (*nlri == '[' &&
	    (flow_kind(nlri + 1, strcspn(nlri + 1, ":")) || !strncmp(nlri, "[unknown", strlen("[unknown"))))
		value = json_pack("{s:o}", "value", components(nlri, end));
	else
		value = flow_prefix(prefix) ? json_pack("{s:O}", "prefix", prefix) : json_object();
	json_decref(prefix);
	return json_pack("{s:o, s:b, s:o}", "nlri", value, "withdrawal", is_withdrawn, "attrs", attributes(end));
}

/* ---- peers ---- */

bool session_read(const char *text, __s64 now_s, struct flow_peer *told)
{
	unsigned int days = 0, hours = 0, minutes = 0, seconds = 0;
	char time[16], state[8];
	int at = 0, more = 0;

	*told = (struct flow_peer){};
	if (!strchr(text, '|'))
		return false;
	if (!strncmp(text, "Peer ", 5))
		return true;
	/* "192.0.2.1 65001 1d 00:00:07 Establ      |  1  1". The time is how long the session has been up, or down. */
	sscanf(text, "%45[0-9A-Za-z.:%%_-] %*u %n", told->address, &at);
	sscanf(text + at, "%ud %n", &days, &more);
	days = more ? days : 0;
	at += at ? more : 0;
	if (!at || sscanf(text + at, "%15s %7s", time, state) != 2)
		return false;
	if (sscanf(time, "%u:%u:%u", &hours, &minutes, &seconds) == 3)
		told->since_s = now_s - (((days * 24LL + hours) * 60 + minutes) * 60 + seconds);
	else if (strcmp(time, "never"))
		return false;
	told->state = strcmp(state, "Establ") ? PEER_DOWN : PEER_UP;
	return true;
}
