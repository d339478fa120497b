// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes rules for ipset restore: one set for each action, family and kind of element. hash:net cannot hold a
 * prefix of length 0, so a rule without a prefix is written as two halves.
 */
#include <arpa/inet.h>

#include "lists/internal.h"

#define TIMEOUT_MAX_S 2147483 /* ipset's own limit */
#define MAXELEM_DEFAULT 65536
#define NAME_BYTES 32 /* ipset's own limit */

/* ---- what it holds ---- */

/* NULL: ipset can hold the rule. */
static const char *why_not(const struct rule *rule)
{
	const bool has_sport = rule->fields & RULE_SPORT, has_dport = rule->fields & RULE_DPORT;

	if (rule->family == FLOW_NO_FAMILY)
		return "is left out: ipset needs an address";
	if (rule->fields & RULE_RATE)
		return "is left out: a set of ipset has no rate";
	if (rule->fields & RULE_NEW)
		return "is left out: a set of ipset has no state";
	if (rule->fields & RULE_DETAILS)
		return "is left out: a set of ipset has no TCP flags, fragments, lengths and blocks of ports";
	if (rule->timeout_ms > TIMEOUT_MAX_S * 1000LL)
		return "is left out: ipset's timeouts end at 2147483 s";
	if (!(rule->fields & RULE_PROTO))
		return has_sport || has_dport ? "is left out: ipset needs a protocol with a port" : NULL;
	if (rule->port_kind == FLOW_ICMP ? !has_sport || !has_dport : rule_is_icmp(rule))
		return "is left out: ipset needs an ICMP type and code";
	if (rule->port_kind == FLOW_ICMP)
		return NULL;
	if (has_sport && has_dport)
		return "is left out: ipset holds one port";
	if (!has_sport && !has_dport && rule_has_ports(rule->proto))
		return "is left out: ipset needs a port with this protocol";
	if (rule->proto == IPPROTO_DCCP)
		return "is left out: ipset knows no ports of dccp";
	return rule->proto ? NULL : "is left out: ipset knows no protocol 0";
}

static bool kind_of(const struct rule *rule, struct list_kind *kind, void *context)
{
	const unsigned int bits = rule_address_bits(rule->family);
	const struct list_losses *losses = context;
	const char *why = why_not(rule);

	if (why) {
		losses->tell(rule, why, losses->context);
		return false;
	}
	kind->family = rule->family;
	kind->action = rule->action;
	if (rule->fields)
		kind->fields = rule->port_kind == FLOW_PORTS && rule->fields & RULE_SPORT ? RULE_SPORT : RULE_DPORT;
	/* A rule for a whole family becomes a source prefix. */
	kind->src_len = rule->src_len || !rule->dst_len ? LIST_ANY_LENGTH : 0;
	kind->dst_len = rule->dst_len ? LIST_ANY_LENGTH : 0;
	/* Single addresses with a port between need another type. */
	if (rule->fields && rule->dst_len && rule->src_len == bits) {
		kind->src_len = bits;
		if (rule->dst_len == bits)
			kind->dst_len = bits;
	}
	return true;
}

/* ---- writing ---- */

static void write_element(FILE *to, const struct list_kind *kind, const struct rule *rule, const char *name)
{
	const char *protocol = rule_protocol_name(rule->proto);
	char text[RULE_PREFIX_BYTES];

	fprintf(to, "add %s %s", name,
		kind->src_len ? rule_prefix_format(rule->family, &rule->src, rule->src_len, text) :
				rule_prefix_format(rule->family, &rule->dst, rule->dst_len, text));
	if (kind->fields && rule->port_kind == FLOW_ICMP)
		fprintf(to, ",%s:%u/%u", protocol, ntohs(rule->sport), ntohs(rule->dport));
	else if (kind->fields && rule->port_kind == FLOW_PORTS)
		fprintf(to, ",%s:%u", protocol, ntohs(rule->fields & RULE_SPORT ? rule->sport : rule->dport));
	else if (kind->fields)
		fprintf(to, ",%u:0", rule->proto);
	if (kind->src_len && kind->dst_len)
		fprintf(to, ",%s", rule_prefix_format(rule->family, &rule->dst, rule->dst_len, text));
	if (rule->timeout_ms)
		fprintf(to, " timeout %lld", (long long)(rule->timeout_ms + 999) / 1000);
	if (rule->comment[0])
		fprintf(to, " comment \"%s\"", rule->comment);
	fputc('\n', to);
}

int list_write_ipset(FILE *to, const struct rule_set *set, const struct list_losses *losses)
{
	struct list_groups groups;
	int error = list_groups_make(&groups, set, kind_of, (void *)losses);

	for (size_t i = 0; i < groups.count && !error; i++) {
		const struct list_group *group = &groups.group[i];
		const struct list_kind *kind = &group->kind;
		const __u64 elements = group->rules + group->without_prefix; /* two halves */
		const bool has_both = kind->src_len && kind->dst_len, is_v4 = kind->family == FLOW_IPV4;
		const char *port = !kind->fields ? "" : kind->fields == RULE_SPORT ? "-sport" : "-dport";
		const char *suffix = "net", *type = kind->fields ? "net,port" : "net";
		char name[NAME_BYTES];
		struct rule rule;

		/* An ipset has one of these types. Sets of different types need different names. */
		if (has_both && kind->src_len != LIST_ANY_LENGTH) {
			suffix = kind->dst_len != LIST_ANY_LENGTH ? "ip" : "ipnet";
			type = kind->dst_len != LIST_ANY_LENGTH ? "ip,port,ip" : "ip,port,net";
		} else if (has_both) {
			type = kind->fields ? "net,port,net" : "net,net";
		}
		snprintf(name, sizeof(name), "xc-%s%s%s%s-%s%d", rule_action_name(kind->action),
			 kind->src_len ? "-src" : "-dst", port, has_both ? "-dst" : "", suffix, is_v4 ? 4 : 6);
		fprintf(to, "create %s hash:%s family %s maxelem %llu%s%s\n", name, type, is_v4 ? "inet" : "inet6",
			(unsigned long long)(elements > MAXELEM_DEFAULT ? elements : MAXELEM_DEFAULT),
			group->is_timed ? " timeout 0" : "", group->is_commented ? " comment" : "");
		for (size_t k = 0; list_groups_next(&groups, group, &k, &rule);) {
			const bool has_halves = !rule.src_len && !rule.dst_len;

			rule.src_len = has_halves ? 1 : rule.src_len;
			write_element(to, kind, &rule, name);
			rule.src.byte[0] |= has_halves ? 0x80 : 0;
			if (has_halves)
				write_element(to, kind, &rule, name);
		}
	}
	list_groups_close(&groups);
	return error;
}
