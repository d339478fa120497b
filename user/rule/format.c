// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The canonical text of a rule, and the text of a shape. */
#include <errno.h>
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rule/rule.h"

/* A text that is written piece by piece. A piece that does not fit is cut. */
struct writer {
	char *text;
	size_t used, size;
};

__attribute__((format(printf, 2, 3))) static void put(struct writer *to, const char *format, ...)
{
	va_list arguments;
	int written;

	va_start(arguments, format);
	written = vsnprintf(to->text + to->used, to->size - to->used, format, arguments);
	va_end(arguments);
	to->used += written;
	if (to->used >= to->size)
		to->used = to->size - 1;
}

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
		if (!strcmp(word, action_names[*action]))
			return 0;
	return -EINVAL;
}

const char *rule_format(const struct rule *rule, char text[RULE_TEXT_BYTES])
{
	struct writer to = { .text = text, .size = RULE_TEXT_BYTES };
	const bool is_icmp = rule->port_kind == FLOW_ICMP;
	/* Without an address or ICMP, only a prefix of length 0 ("src 0.0.0.0/0") shows the family. */
	const bool needs_family = rule->family != FLOW_NO_FAMILY && !rule->dst_len && !rule_is_icmp(rule);
	const char *name = rule_protocol_name(rule->proto);
	char prefix[RULE_PREFIX_BYTES], time[RULE_TIME_BYTES];

	/* Each piece starts with its separator. The first separator is removed at the end. */
	text[0] = '\0';
	if (rule->fields & RULE_PROTO && name)
		put(&to, " proto %s", name);
	else if (rule->fields & RULE_PROTO)
		put(&to, " proto %u", rule->proto);
	if (rule->src_len || needs_family)
		put(&to, " src %s", rule_prefix_format(rule->family, &rule->src, rule->src_len, prefix));
	if (rule->fields & RULE_SPORT)
		put(&to, " %s %u", is_icmp ? "type" : "sport", ntohs(rule->sport));
	if (rule->dst_len)
		put(&to, " dst %s", rule_prefix_format(rule->family, &rule->dst, rule->dst_len, prefix));
	if (rule->fields & RULE_DPORT)
		put(&to, " %s %u", is_icmp ? "code" : "dport", ntohs(rule->dport));
	if (rule->fields & RULE_NEW)
		put(&to, " state new");
	if (rule->action != RULE_DROP)
		put(&to, " action %s", rule_action_name(rule->action));
	if (rule->timeout_ms)
		put(&to, " timeout %s", rule_time_format(rule->timeout_ms, time));
	if (rule->comment[0])
		put(&to, " comment \"%s\"", rule->comment);
	memmove(text, text + 1, to.used);
	return text;
}

const char *rule_shape_format(const struct rule_shape *shape, char text[RULE_TEXT_BYTES])
{
	struct writer to = { .text = text, .size = RULE_TEXT_BYTES };

	put(&to, "%s", shape->family == FLOW_IPV4 ? "ipv4" : "ipv6");
	if (shape->fields & RULE_PROTO)
		put(&to, " proto");
	if (shape->src_len)
		put(&to, " src/%u", shape->src_len);
	if (shape->fields & RULE_SPORT)
		put(&to, " sport");
	if (shape->dst_len)
		put(&to, " dst/%u", shape->dst_len);
	if (shape->fields & RULE_DPORT)
		put(&to, " dport");
	if (shape->fields & RULE_NEW)
		put(&to, " state new");
	if (shape->action != RULE_DROP)
		put(&to, " action %s", rule_action_name(shape->action));
	return text;
}
