// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The canonical text of a rule, the text of a shape, and times in rules and options, for example "1h30m". */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "rule/internal.h"
#include "base/safe_text.h"

const char *rule_prefix_format(enum flow_family family, const union flow_addr *address, unsigned int length,
			       char text[RULE_PREFIX_BYTES])
{
	inet_ntop(family == FLOW_IPV4 ? AF_INET : AF_INET6, address, text, RULE_PREFIX_BYTES);
	if (length < rule_address_bits(family))
		sprintf(text + strlen(text), "/%u", length);
	return text;
}

static const char *const action_names[RULE_ACTIONS] = { "drop", "pass", "monitor" };

const char *rule_action_name(enum rule_action action)
{
	return action_names[action];
}

int rule_action_parse(const char *word, enum rule_action *action)
{
	for (*action = 0; *action < RULE_ACTIONS; ++*action)
		if (!strcasecmp(word, action_names[*action]))
			return 0;
	return -EINVAL;
}

const char *const rule_flag_names[8] = { "fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr" };

const struct rule_fragment rule_fragments[RULE_FRAGMENTS] = {
	{ "no", FLOW_FRAGMENT_MASK, FLOW_FRAGMENT_NO },
	{ "first", FLOW_FRAGMENT_MASK, FLOW_FRAGMENT_FIRST },
	{ "later", FLOW_FRAGMENT_MASK, FLOW_FRAGMENT_LATER },
	{ "any", FLOW_FRAGMENT_ANY, FLOW_FRAGMENT_ANY },
};

static void append_flags(char *text, char before, __u8 flags)
{
	for (unsigned int i = 0; i < 8; i++)
		if (flags & 1 << i) {
			text_append(text, RULE_TEXT_BYTES, "%c%s", before, rule_flag_names[i]);
			before = ',';
		}
	if (!flags)
		text_append(text, RULE_TEXT_BYTES, "%cnone", before);
}

/* `free`: how many of the lower bits of the number are not compared. */
static void append_block(char *text, const char *word, unsigned int number, unsigned int free)
{
	text_append(text, RULE_TEXT_BYTES, " %s %u", word, number);
	if (free)
		text_append(text, RULE_TEXT_BYTES, "/%u", RULE_PORT_BITS - free);
}

const char *rule_format(const struct rule *rule, char text[RULE_TEXT_BYTES])
{
	const struct rule_details *details = &rule->details;
	const bool is_icmp = rule->port_kind == FLOW_ICMP;
	/* Without an address or ICMP, only a prefix of length 0 ("src 0.0.0.0/0") shows the family. */
	const bool needs_family = rule->family != FLOW_NO_FAMILY && !rule->dst_len && !rule_is_icmp(rule);
	const char *name = rule_protocol_name(rule->proto);
	char prefix[RULE_PREFIX_BYTES], time[RULE_TIME_BYTES], rate[RULE_RATE_BYTES];

	/* Each piece starts with its separator. The first separator is removed at the end. */
	text[0] = '\0';
	if (rule->fields & RULE_PROTO && name)
		text_append(text, RULE_TEXT_BYTES, " proto %s", name);
	else if (rule->fields & RULE_PROTO)
		text_append(text, RULE_TEXT_BYTES, " proto %u", rule->proto);
	if (rule->src_len || needs_family)
		text_append(text, RULE_TEXT_BYTES, " src %s",
			    rule_prefix_format(rule->family, &rule->src, rule->src_len, prefix));
	if (rule->fields & RULE_SPORT)
		append_block(text, is_icmp ? "type" : "sport", ntohs(rule->sport), details->sport_free);
	if (rule->dst_len)
		text_append(text, RULE_TEXT_BYTES, " dst %s",
			    rule_prefix_format(rule->family, &rule->dst, rule->dst_len, prefix));
	if (rule->fields & RULE_DPORT)
		append_block(text, is_icmp ? "code" : "dport", ntohs(rule->dport), details->dport_free);
	if (details->flags_mask) {
		text_append(text, RULE_TEXT_BYTES, " flags");
		append_flags(text, ' ', rule->flags);
		if (details->flags_mask != rule->flags)
			append_flags(text, '/', details->flags_mask);
	}
	for (unsigned int i = 0; i < RULE_FRAGMENTS; i++)
		if (rule_fragments[i].mask == details->fragment_mask && rule_fragments[i].value == rule->fragment)
			text_append(text, RULE_TEXT_BYTES, " fragment %s", rule_fragments[i].name);
	if (details->length_bits)
		append_block(text, "length", rule->length, RULE_PORT_BITS - details->length_bits);
	if (rule->fields & RULE_NEW)
		text_append(text, RULE_TEXT_BYTES, " state new");
	if (rule->fields & RULE_RATE)
		text_append(text, RULE_TEXT_BYTES, " rate %s", rule_rate_format(rule->rate, rate));
	if (rule->action != RULE_DROP)
		text_append(text, RULE_TEXT_BYTES, " action %s", rule_action_name(rule->action));
	if (rule->timeout_ms)
		text_append(text, RULE_TEXT_BYTES, " timeout %s", rule_time_format(rule->timeout_ms, time));
	if (rule->comment[0])
		text_append(text, RULE_TEXT_BYTES, " comment \"%s\"", rule->comment);
	memmove(text, text + 1, strlen(text));
	return text;
}

/* `bits`: how many are compared. */
static void append_part(char *text, const char *word, unsigned int bits)
{
	text_append(text, RULE_TEXT_BYTES, bits == RULE_PORT_BITS ? " %s" : " %s/%u", word, bits);
}

const char *rule_shape_format(const struct rule_shape *shape, char text[RULE_TEXT_BYTES])
{
	const struct rule_details *details = &shape->details;

	strcpy(text, shape->family == FLOW_IPV4 ? "ipv4" : "ipv6");
	if (shape->fields & RULE_PROTO)
		text_append(text, RULE_TEXT_BYTES, " proto");
	if (shape->src_len)
		text_append(text, RULE_TEXT_BYTES, " src/%u", shape->src_len);
	if (shape->fields & RULE_SPORT)
		append_part(text, "sport", RULE_PORT_BITS - details->sport_free);
	if (shape->dst_len)
		text_append(text, RULE_TEXT_BYTES, " dst/%u", shape->dst_len);
	if (shape->fields & RULE_DPORT)
		append_part(text, "dport", RULE_PORT_BITS - details->dport_free);
	if (details->flags_mask) {
		text_append(text, RULE_TEXT_BYTES, " flags");
		append_flags(text, '/', details->flags_mask);
	}
	if (details->fragment_mask)
		text_append(text, RULE_TEXT_BYTES,
			    details->fragment_mask == FLOW_FRAGMENT_ANY ? " fragment any" : " fragment");
	if (details->length_bits)
		append_part(text, "length", details->length_bits);
	if (shape->fields & RULE_NEW)
		text_append(text, RULE_TEXT_BYTES, " state new");
	if (shape->fields & RULE_RATE)
		text_append(text, RULE_TEXT_BYTES, " rate");
	if (shape->action != RULE_DROP)
		text_append(text, RULE_TEXT_BYTES, " action %s", rule_action_name(shape->action));
	return text;
}

/* ---- rates ---- */

static const char powers[] = "kKMmGgTt"; /* of 1000, each in two forms */

/* What follows the number and its power. Not "bps": tc means bytes by it, others bits. */
static const struct {
	const char *word;
	unsigned int bits; /* 0: packets */
} rate_units[] = {
	{ "/s", 0 },    { "/second", 0 }, { "packets/s", 0 },   { "packets/second", 0 }, { "pps", 0 },
	{ "bit/s", 1 }, { "bits/s", 1 },  { "bit/second", 1 },  { "bits/second", 1 },    { "bit", 1 },
	{ "B/s", 8 },   { "byte/s", 8 },  { "byte/second", 8 }, { "bytes/second", 8 },   { "bytes/s", 8 },
};

int rule_rate_parse(const char *text, __u64 *rate)
{
	const char *power;
	__u64 number = 0;

	if (*text < '0' || *text > '9' || rule_has_leading_zero(text))
		return -EINVAL;
	for (; *text >= '0' && *text <= '9'; text++)
		number = number > RULE_RATE_MAX ? number : 10 * number + (*text - '0');
	power = *text ? strchr(powers, *text) : NULL;
	text += power != NULL;
	for (size_t i = 0; i < sizeof(rate_units) / sizeof(rate_units[0]); i++) {
		const unsigned int bits = rate_units[i].bits;

		if (*text == 'b' && rate_units[i].word[0] == 'B' ? true : strcasecmp(text, rate_units[i].word))
			continue;
		for (int left = power ? (power - powers) / 2 + 1 : 0; left && number <= RULE_RATE_MAX; left--)
			number *= 1000;
		if (!number || number > RULE_RATE_MAX / (bits ? bits : 1))
			return -ERANGE;
		*rate = bits ? number * bits | RULE_RATE_BITS : number;
		return 0;
	}
	return -EINVAL;
}

const char *rule_rate_format(__u64 rate, char text[RULE_RATE_BYTES])
{
	__u64 number = rate & ~RULE_RATE_BITS;
	size_t thousands = 0;

	if (!number)
		return strcpy(text, "?");
	for (; rate & RULE_RATE_BITS && !(number % 1000) && thousands < 4; thousands++)
		number /= 1000;
	snprintf(text, RULE_RATE_BYTES, "%llu", (unsigned long long)number);
	if (thousands)
		text_append(text, RULE_RATE_BYTES, "%c", powers[2 * (thousands - 1)]);
	text_append(text, RULE_RATE_BYTES, "%s", rate & RULE_RATE_BITS ? "bit/s" : "/s");
	return text;
}

/* ---- times ---- */

static const struct {
	char name;
	__u32 seconds;
} units[] = { { 'y', 31536000 }, { 'w', 604800 }, { 'd', 86400 }, { 'h', 3600 }, { 'm', 60 }, { 's', 1 } };

#define UNITS (sizeof(units) / sizeof(units[0]))

int rule_time_parse(const char *text, __s64 *ms)
{
	__u64 seconds = 0;
	size_t unit = 0; /* the largest that may come next */

	do {
		const char *digits = text;
		__u64 number = 0;

		for (; *text >= '0' && *text <= '9' && number <= RULE_TIMEOUT_MAX_S; text++)
			number = 10 * number + (*text - '0');
		if (text == digits || number > RULE_TIMEOUT_MAX_S)
			return -EINVAL;
		if (!*text && !unit) {
			unit = UNITS - 1; /* a number alone */
		} else {
			while (unit < UNITS && units[unit].name != *text)
				unit++;
			if (unit == UNITS)
				return -EINVAL;
			text++;
		}
		seconds += number * units[unit++].seconds;
	} while (*text);
	if (!seconds || seconds > RULE_TIMEOUT_MAX_S)
		return -EINVAL;
	*ms = 1000 * (__s64)seconds;
	return 0;
}

int rule_moment_parse(const char *text, __s64 *second)
{
	static const char *const forms[] = { "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%MZ" };

	*second = -1;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct tm utc = {};
		const char *end = strptime(text, forms[i], &utc);
		const int day = utc.tm_mday;

		if (!end || *end)
			continue;
		*second = timegm(&utc);
		/* timegm() takes November 31 for December 1. */
		return *second < 0 || utc.tm_mday != day ? -EINVAL : 0;
	}
	return -EINVAL;
}

const char *rule_time_format(__s64 ms, char text[RULE_TIME_BYTES])
{
	__u64 seconds = ms > 0 ? (ms + 999) / 1000 : 0;

	*text = '\0';
	/* Weeks are enough: older versions know no years. */
	for (size_t i = 1; i < UNITS; i++) {
		__u64 number = seconds / units[i].seconds;

		seconds %= units[i].seconds;
		if (number || (i == UNITS - 1 && !*text))
			text_append(text, RULE_TIME_BYTES, "%llu%c", (unsigned long long)number, units[i].name);
	}
	return text;
}
