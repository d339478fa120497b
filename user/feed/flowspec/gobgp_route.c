// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "feed/flowspec/internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Path attributes and values of BGP, by their numbers. */
enum {
	ATTRIBUTE_COMMUNITIES = 8,
	ATTRIBUTE_MP_REACH = 14,
	ATTRIBUTE_EXTENDED_COMMUNITIES = 16,
	ATTRIBUTE_IPV6_EXTENDED_COMMUNITIES = 25,
	SAFI_UNICAST = 1,
	SAFI_FLOWSPEC = 133,
	TRAFFIC_ACTION = 0x80, /* to 0x82: types of extended communities: RFC 8955 section 7 */
	TRAFFIC_RATE = 6,
	TRAFFIC_FLOW_ACTION = 7,
	TRAFFIC_REDIRECT = 8,
	TRAFFIC_MARKING = 9,
	TRAFFIC_REDIRECT_IPV6 = 11,
	TRAFFIC_PACKET_RATE = 12,
};

#define COMMUNITY_BLACKHOLE 0xffff029a /* 65535:666, RFC 7999 */

/* A number of one byte. -1: it is larger; 0: it is no number. */
static int byte_of(const json_t *object, const char *name)
{
	const double number = json_number_value(json_object_get(object, name));

	return number >= 0 && number <= 255 ? (int)number : -1;
}

/* The attribute with this number; NULL: the route does not have it. */
static const json_t *attribute(const json_t *route, int type)
{
	json_t *found;
	size_t i;

	json_array_foreach(json_object_get(route, "attrs"), i, found) if (byte_of(found, "type") == type) return found;
	return NULL;
}

static enum route_kind kind_of(const json_t *route, const json_t *nlri)
{
	const json_t *reach = attribute(route, ATTRIBUTE_MP_REACH);
	const int safi = byte_of(reach, "safi");

	if (json_object_get(nlri, "rd"))
		return ROUTE_OTHER;
	if (json_is_array(json_object_get(nlri, "value")) && (!reach || safi == SAFI_FLOWSPEC))
		return ROUTE_FLOW;
	if (json_is_string(json_object_get(nlri, "prefix")) && (!reach || safi == SAFI_UNICAST))
		return ROUTE_BLACKHOLE;
	return ROUTE_OTHER;
}

/* ---- actions ---- */

double flow_float(__u32 bits)
{
	float number;

	memcpy(&number, &bits, sizeof(number));
	return number;
}

/*
 * The rate of a community: 0 also if it is negative (RFC 8955 sections 7.1 and 7.2). gobgp does not know the rate of packets,
 * and prints in base64 all bytes behind the type: the last four are the rate.
 */
static double rate_of(const json_t *community)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const json_t *rate = json_object_get(community, "rate"), *value = json_object_get(community, "value");
	const char *base64 = json_string_length(value) == 12 ? json_string_value(value) : NULL, *digit;
	__u64 bits = 0;
	double number;

	if (json_is_number(rate))
		return json_number_value(rate) > 0 ? json_number_value(rate) : 0;
	for (size_t i = 4; base64 && i < 10; i++) {
		digit = strchr(digits, base64[i]);
		if (!digit || !*digit)
			return NAN;
		bits = bits << 6 | (digit - digits);
	}
	number = base64 ? flow_float(bits >> 4) : NAN;
	return number < 0 ? 0 : number;
}

/* What a flow asks for. */
struct actions {
	bool is_drop, is_sample;
	__u64 rate;        /* as in struct rule; 0: none */
	const char *other; /* NULL: nothing else */
};

/* Adds what a community asks for: nothing, if it is no traffic filtering action, as a route target. */
static void add_action(struct actions *actions, const json_t *community)
{
	const int type = byte_of(community, "type"), subtype = byte_of(community, "subtype");
	const bool is_bytes = subtype == TRAFFIC_RATE;
	/* draft-ietf-idr-flowspec-redirect-ip: 0x010c, 0x000c for IPv6, and 0x0800 before. */
	const bool is_to_address = (type >= 0 && type <= 1 && subtype == 12) || (type == 8 && !subtype);
	const char *other = is_to_address ? "the action redirect to an address" : NULL;
	double rate, number;
	__u64 wanted;

	switch (type < TRAFFIC_ACTION || type > TRAFFIC_ACTION + 2 ? 0 : subtype) {
	case TRAFFIC_RATE:
	case TRAFFIC_PACKET_RATE:
		rate = rate_of(community);
		number = is_bytes ? 8 * rate : rate;
		wanted = number <= RULE_RATE_MAX ? (__u64)ceil(number) | (is_bytes ? RULE_RATE_BITS : 0) : 0;
		if (rate == 0)
			actions->is_drop = true;
		else if (isnan(rate))
			other = "a rate that is no number";
		else if (number < 1)
			other = "a rate below 1 bit or packet a second";
		else if (!wanted)
			other = "a rate above 10^12 bits or packets a second";
		else if (actions->rate && actions->rate != wanted)
			other = "two rates";
		else
			actions->rate = wanted;
		break;
	case TRAFFIC_FLOW_ACTION:
		actions->is_sample = true;
		break;
	case TRAFFIC_REDIRECT:
	case TRAFFIC_REDIRECT_IPV6:
		other = "the action redirect";
		break;
	case TRAFFIC_MARKING:
		other = "the action mark";
	}
	if (!actions->other)
		actions->other = other;
}

/*
 * Whether the flow asks for a drop or a rate, and for no other action. What is dropped cannot be sampled, and no later flow
 * matters to it: so those bits do not change a drop. A rate of 0 is a drop, whatever other rate there is.
 */
static bool is_drop(struct route *route, const json_t *json, __u64 *rate)
{
	static const int types[] = { ATTRIBUTE_EXTENDED_COMMUNITIES, ATTRIBUTE_IPV6_EXTENDED_COMMUNITIES };
	struct actions actions = {};
	json_t *community;
	size_t i;

	for (size_t j = 0; j < 2; j++)
		json_array_foreach(json_object_get(attribute(json, types[j]), "value"), i, community)
			add_action(&actions, community);
	if (!actions.other && !actions.is_drop && (actions.is_sample || !actions.rate))
		actions.other = actions.is_sample ? "the action sample or terminal" : "no action";
	route->refusal = REFUSAL_ACTION;
	if (actions.other)
		reason_set(&route->why, 0, "it asks for %s, not for a drop", actions.other);
	*rate = actions.is_drop ? 0 : actions.rate;
	return !actions.other;
}

static bool is_blackhole(const json_t *json)
{
	json_t *community;
	size_t i;

	json_array_foreach(json_object_get(attribute(json, ATTRIBUTE_COMMUNITIES), "communities"), i,
			   community) if (json_number_value(community) == COMMUNITY_BLACKHOLE) return true;
	return false;
}

/* ---- rules ---- */

bool flow_is_own(const struct flowspec_options *options, const struct rule *rule)
{
	bool is_own = options->is_any;

	for (size_t i = 0; i < options->own_count && !is_own; i++)
		is_own = rule_covers(&options->own[i], rule);
	return is_own;
}

/* A route to one address becomes `dst ADDRESS`. */
static int read_blackhole(struct route *route, const json_t *json, const json_t *nlri,
			  const struct flowspec_options *options)
{
	const char *prefix = flow_prefix(json_object_get(nlri, "prefix"));
	char text[RULE_TEXT_BYTES];
	struct rule rule;
	int error = 0;

	if (!prefix)
		return -EBADMSG;
	if (!options->takes_blackholes) {
		route->kind = ROUTE_OTHER;
		return 0;
	}
	snprintf(route->name, sizeof(route->name), "blackhole %s", prefix);
	route->key = strdup(route->name);
	if (!route->key)
		return -ENOMEM;
	snprintf(text, sizeof(text), "dst %s action %s", prefix, rule_action_name(options->action));
	if (rule_parse(text, &rule, &route->why))
		error = -EINVAL;
	else if (rule.dst_len != rule_address_bits(rule.family) || (rule.family == FLOW_IPV6) != !!strchr(prefix, ':'))
		error = reason_set(&route->why, -EINVAL, "it is not a route to one address");
	else
		error = rule_set_add(&route->rules, &rule);
	route->is_drop = !error && is_blackhole(json);
	route->refusal = REFUSAL_TOO_WIDE;
	/* A route without the community may have had it before, so it counts as withdrawn. */
	route->is_withdrawn |= !is_blackhole(json);
	return error == -ENOMEM ? error : 0;
}

/*
 * What gobgp itself tells flows apart by: it compares their texts, which lack TCP flags above cwr, and how long the values
 * are. If another flow of the same text follows, gobgp does not withdraw the first.
 */
static char *key_of(const json_t *components)
{
	json_t *copy = json_deep_copy(components), *component, *item;
	size_t i, k;
	char *key;

	json_array_foreach(copy, i, component)
	{
		const int type = byte_of(component, "type");

		if (type > 0)
			json_object_set_new(component, "type", json_integer(type));
		if (json_is_object(json_object_get(component, "value")))
			json_object_set_new(component, "offset", json_integer(byte_of(component, "offset")));
		json_array_foreach(json_object_get(component, "value"), k, item)
		{
			const double number = json_number_value(json_object_get(item, "value"));
			const __s64 value = number > 0 && number < INT32_MAX ? number : INT32_MAX;

			json_object_set_new(item, "op", json_integer(byte_of(item, "op") & 0x47)); /* of these, text */
			json_object_set_new(item, "value", json_integer(type == TCP_FLAGS ? value & 0xff : value));
		}
	}
	key = json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII);
	json_decref(copy);
	return key;
}

static int read_flow(struct route *route, const json_t *json, const json_t *nlri,
		     const struct flowspec_options *options)
{
	const json_t *components = json_object_get(nlri, "value");
	struct reason no_rules = {};
	json_t *component;
	struct rule rule;
	__u64 rate;
	int error;
	size_t i;

	json_array_foreach(components, i, component) route->has_flags |= byte_of(component, "type") == TCP_FLAGS;
	flow_name(components, route->name, sizeof(route->name));
	route->key = key_of(components);
	if (!route->key)
		return -ENOMEM;
	route->is_drop = is_drop(route, json, &rate);
	error = flow_rules(components, options->action, &route->rules, &no_rules);
	if (!error && route->is_drop && rate && route->rules.count != 1) {
		/* Each rule has a meter of its own: the flow would get more than its rate. */
		error = reason_set(&no_rules, -E2BIG, "a rate is for one rule, and this flow takes %zu",
				   route->rules.count);
	} else if (!error && route->is_drop && rate) {
		rule_set_get(&route->rules, 0, &rule);
		rule_set_close(&route->rules);
		rule.fields |= RULE_RATE;
		rule.rate = rate;
		error = rule_set_add(&route->rules, &rule);
	}
	if (!error)
		return 0;
	rule_set_close(&route->rules);
	if (route->is_drop) {
		route->why = no_rules;
		route->refusal = error == -ENOTSUP ? REFUSAL_COMPONENT :
				 error == -E2BIG   ? REFUSAL_RULES :
				 error == -EDOM    ? REFUSAL_TOO_WIDE :
				 error == -EBADMSG ? REFUSAL_MALFORMED :
						     REFUSAL_VALUE;
	}
	route->is_drop = false;
	return error == -ENOMEM ? error : 0;
}

int route_read(struct route *route, const char *text, const struct flowspec_options *options, struct reason *reason)
{
	const json_t *nlri, *peer;
	json_error_t where;
	struct rule first;
	json_t *json;
	int error = 0;

	*route = (struct route){};
	/* Accepts numbers of any size and texts with NUL bytes: a route of another family must not end the reading. */
	json = *text == '{' ?
		       json_loads(text, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &where) :
		       route_text_read(text);
	nlri = json_object_get(json, "nlri");
	peer = json_object_get(json, "neighbor-ip");
	if (json_is_string(json_object_get(json, "error")))
		error = reason_set(reason, -EBADMSG, "gobgp says: %s",
				   json_string_value(json_object_get(json, "error")));
	else if (!json_is_object(nlri))
		error = reason_set(reason, -EBADMSG, "the input has a route that is not one: %.100s", text);
	if (!error) {
		route->kind = kind_of(json, nlri);
		route->is_withdrawn = json_is_true(json_object_get(json, "withdrawal"));
		if (json_is_string(peer) && json_string_length(peer) < sizeof(route->peer) &&
		    strspn(json_string_value(peer), "0123456789abcdefABCDEF.:") == json_string_length(peer))
			strcpy(route->peer, json_string_value(peer));
	}
	if (route->kind == ROUTE_FLOW)
		error = read_flow(route, json, nlri, options);
	else if (route->kind == ROUTE_BLACKHOLE)
		error = read_blackhole(route, json, nlri, options);
	json_decref(json);
	if (error == -EBADMSG && route->kind == ROUTE_BLACKHOLE)
		reason_set(reason, error, "the input has a prefix that is not one: %.100s", text);
	if (error || !route->is_drop)
		return error;
	rule_set_get(&route->rules, 0, &first); /* all rules of a flow have the same destination */
	route->is_drop = false;
	if (strlen(route->key) > ROUTE_KEY_BYTES) {
		route->refusal = REFUSAL_VALUE;
		reason_set(&route->why, 0, "its text has more than %d bytes", ROUTE_KEY_BYTES);
	} else if (!flow_is_own(options, &first)) {
		route->refusal = REFUSAL_OWN;
		reason_set(&route->why, 0, "its destination is in none of own-prefixes");
	} else {
		route->is_drop = true;
	}
	return 0;
}

void route_close(struct route *route)
{
	free(route->key);
	rule_set_close(&route->rules);
	*route = (struct route){};
}
