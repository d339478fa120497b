// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes rules for ipset restore: one set for each action, family and kind of element. hash:net cannot hold a
 * prefix of length 0, so that is written as two halves.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lists/internal.h"

#define TIMEOUT_MAX_S 2147483 /* ipset's own limit */
#define MAXELEM_DEFAULT 65536
#define NAME_BYTES 32 /* ipset's own limit */

enum port_column { PORT_NONE, PORT_SOURCE, PORT_DESTINATION };

/* What all elements of a set have in common. */
struct kind {
	__u8 family;
	bool is_pass, has_src, has_dst;
	bool is_src_whole, is_dst_whole; /* single addresses, where these need another type */
	enum port_column port;
};

struct ipset {
	struct kind kind;
	__u64 count;
	bool is_timed, is_commented;
};

struct writing {
	FILE *to;
	const struct rule_set *rules;
	struct ipset *sets;
	size_t count;
};

/* ---- what it holds ---- */

static const char *why_no_port(const struct rule *rule)
{
	const bool has_sport = rule->fields & RULE_SPORT, has_dport = rule->fields & RULE_DPORT;

	if (!(rule->fields & RULE_PROTO))
		return has_sport || has_dport ? "is left out: ipset needs a protocol with a port" : NULL;
	if (rule->port_kind == FLOW_ICMP)
		return has_sport && has_dport ? NULL : "is left out: ipset needs an ICMP type and code";
	if (rule->proto == IPPROTO_ICMP || rule->proto == IPPROTO_ICMPV6)
		return "is left out: ipset needs an ICMP type and code";
	if (has_sport && has_dport)
		return "is left out: ipset holds one port";
	if (!has_sport && !has_dport && rule_has_ports(rule->proto))
		return "is left out: ipset needs a port with this protocol";
	if (rule->proto == IPPROTO_DCCP)
		return "is left out: ipset knows no ports of dccp";
	return rule->proto ? NULL : "is left out: ipset knows no protocol 0";
}

/* NULL: ipset can hold the rule. */
static const char *why_not(const struct rule *rule)
{
	if (rule->family == FLOW_NO_FAMILY)
		return "is left out: ipset needs an address";
	if (rule->timeout_ms > TIMEOUT_MAX_S * 1000LL)
		return "is left out: ipset's timeouts end at 2147483 s";
	return why_no_port(rule);
}

static struct kind kind_of(const struct rule *rule)
{
	const unsigned int bits = rule->family == FLOW_IPV4 ? 32 : 128;
	const bool has_port = rule->fields;
	struct kind kind = { .family = rule->family, .is_pass = rule->action == RULE_PASS };

	/* A rule for a whole family becomes a source prefix. */
	kind.has_dst = rule->dst_len;
	kind.has_src = rule->src_len || !rule->dst_len;
	kind.port = !has_port                                                  ? PORT_NONE :
		    rule->port_kind == FLOW_PORTS && rule->fields & RULE_SPORT ? PORT_SOURCE :
										 PORT_DESTINATION;
	kind.is_src_whole = kind.has_src && kind.has_dst && has_port && rule->src_len == bits;
	kind.is_dst_whole = kind.is_src_whole && rule->dst_len == bits;
	return kind;
}

static bool is_same_kind(const struct kind *a, const struct kind *b)
{
	return a->family == b->family && a->is_pass == b->is_pass && a->has_src == b->has_src &&
	       a->has_dst == b->has_dst && a->is_src_whole == b->is_src_whole && a->is_dst_whole == b->is_dst_whole &&
	       a->port == b->port;
}

static struct ipset *set_of(struct writing *writing, const struct rule *rule)
{
	const struct kind kind = kind_of(rule);
	struct ipset *grown;

	for (size_t i = 0; i < writing->count; i++)
		if (is_same_kind(&writing->sets[i].kind, &kind))
			return &writing->sets[i];
	grown = realloc(writing->sets, (writing->count + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	writing->sets = grown;
	grown[writing->count] = (struct ipset){ .kind = kind };
	return &grown[writing->count++];
}

static int survey(struct writing *writing, const struct list_losses *losses)
{
	for (size_t i = 0; i < writing->rules->count; i++) {
		const char *why;
		struct ipset *set;
		struct rule rule;

		rule_set_get(writing->rules, i, &rule);
		why = why_not(&rule);
		if (why) {
			losses->tell(&rule, why, losses->context);
			continue;
		}
		set = set_of(writing, &rule);
		if (!set)
			return -ENOMEM;
		set->count += 1 + !(rule.src_len || rule.dst_len);
		set->is_timed |= rule.timeout_ms != 0;
		set->is_commented |= rule.comment[0];
	}
	return 0;
}

/* ---- writing ---- */

static void name_of(const struct kind *kind, char name[NAME_BYTES])
{
	static const char *const ports[] = { "", "-sport", "-dport" };
	/* Sets of different types need different names. */
	const char *type = kind->is_src_whole && kind->is_dst_whole ? "ip" : kind->is_src_whole ? "ipnet" : "net";

	snprintf(name, NAME_BYTES, "xc-%s%s%s%s-%s%d", kind->is_pass ? "pass" : "drop", kind->has_src ? "-src" : "-dst",
		 ports[kind->port], kind->has_src && kind->has_dst ? "-dst" : "", type,
		 kind->family == FLOW_IPV4 ? 4 : 6);
}

static const char *type_of(const struct kind *kind)
{
	if (kind->is_src_whole)
		return kind->is_dst_whole ? "hash:ip,port,ip" : "hash:ip,port,net";
	if (kind->has_src && kind->has_dst)
		return kind->port ? "hash:net,port,net" : "hash:net,net";
	return kind->port ? "hash:net,port" : "hash:net";
}

static void write_create(FILE *to, const struct ipset *set, const char *name)
{
	fprintf(to, "create %s %s family %s maxelem %llu%s%s\n", name, type_of(&set->kind),
		set->kind.family == FLOW_IPV4 ? "inet" : "inet6",
		(unsigned long long)(set->count > MAXELEM_DEFAULT ? set->count : MAXELEM_DEFAULT),
		set->is_timed ? " timeout 0" : "", set->is_commented ? " comment" : "");
}

static void write_prefix(FILE *to, enum flow_family family, const union flow_addr *address, unsigned int length)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(family == FLOW_IPV4 ? AF_INET : AF_INET6, address, text, sizeof(text));
	fputs(text, to);
	if (length < (family == FLOW_IPV4 ? 32 : 128))
		fprintf(to, "/%u", length);
}

static void write_port(FILE *to, const struct rule *rule)
{
	const char *name = rule_protocol_name(rule->proto);

	if (rule->port_kind == FLOW_ICMP)
		fprintf(to, "%s:%u/%u", name, ntohs(rule->sport), ntohs(rule->dport));
	else if (rule->port_kind == FLOW_PORTS)
		fprintf(to, "%s:%u", name, ntohs(rule->fields & RULE_SPORT ? rule->sport : rule->dport));
	else
		fprintf(to, "%u:0", rule->proto);
}

static void write_element(FILE *to, const struct kind *kind, const struct rule *rule, const char *name)
{
	fprintf(to, "add %s ", name);
	if (kind->has_src)
		write_prefix(to, rule->family, &rule->src, rule->src_len);
	else
		write_prefix(to, rule->family, &rule->dst, rule->dst_len);
	if (kind->port) {
		fputc(',', to);
		write_port(to, rule);
	}
	if (kind->has_src && kind->has_dst) {
		fputc(',', to);
		write_prefix(to, rule->family, &rule->dst, rule->dst_len);
	}
	if (rule->timeout_ms)
		fprintf(to, " timeout %lld", (long long)(rule->timeout_ms + 999) / 1000);
	if (rule->comment[0])
		fprintf(to, " comment \"%s\"", rule->comment);
	fputc('\n', to);
}

static void write_rule(FILE *to, const struct kind *kind, const struct rule *rule, const char *name)
{
	struct rule half = *rule;

	if (rule->src_len || rule->dst_len) {
		write_element(to, kind, rule, name);
		return;
	}
	half.src_len = 1;
	write_element(to, kind, &half, name);
	half.src.byte[0] = 0x80;
	write_element(to, kind, &half, name);
}

static void write_set(const struct writing *writing, const struct ipset *set)
{
	char name[NAME_BYTES];

	name_of(&set->kind, name);
	write_create(writing->to, set, name);
	for (size_t i = 0; i < writing->rules->count; i++) {
		struct kind kind;
		struct rule rule;

		rule_set_get(writing->rules, i, &rule);
		kind = kind_of(&rule);
		if (!why_not(&rule) && is_same_kind(&kind, &set->kind))
			write_rule(writing->to, &kind, &rule, name);
	}
}

int list_write_ipset(FILE *to, const struct rule_set *set, const struct list_losses *losses)
{
	struct writing writing = { .to = to, .rules = set };
	int error = survey(&writing, losses);

	for (size_t i = 0; i < writing.count && !error; i++)
		write_set(&writing, &writing.sets[i]);
	free(writing.sets);
	return error;
}
