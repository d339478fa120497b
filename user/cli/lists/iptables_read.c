// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads the output of iptables-save and ip6tables-save, and the user.rules and user6.rules of ufw. DROP and REJECT
 * in a chain that arriving packets go through become rules. A line that a rule cannot express exactly is refused.
 *
 * In iptables the first line that matches decides; here the order of rules means nothing. So a line that lets packets
 * pass makes no rule, and a later line that drops some of the same packets is refused.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lists/internal.h"
#include "base/memory.h"
#include "base/safe_text.h"

#define MODULES "tcp|udp|sctp|dccp|udplite|icmp|icmp6|multiport|comment|iprange|state|conntrack|hashlimit|length"

/* Packets that may not reach the lines after `line`. */
struct passed {
	struct rule rule;
	__u64 line;
	const char *chain;  /* after a jump: only lines of this chain are not reached; NULL: lines of every chain */
	bool is_of_answers; /* only packets that begin nothing: they are not in the way of a rule with `state new` */
};

struct iptables {
	struct list_input *list;
	enum flow_family family; /* by the last comment of iptables-save */
	char table[16];
	struct passed *passed; /* of the table */
	size_t count;
	__u64 unread;       /* the last line of the table that drops and is not read; 0: none */
	char limits[16384]; /* names of hashlimits, joined by '|': lines with one name share its packets */
};

/* One line with -A. */
struct line {
	struct list_row *row; /* its matches, up to `unfit` */
	const char *target;
	const char *unfit; /* the first word that no rule can express; NULL: none */
	const char *limit; /* the name of its hashlimit; NULL: it has none */
	bool has_flow, has_address, is_of_loopback, is_of_answers;
};

static const char *const chains[][2] = {
	{ "filter", "INPUT" },
	{ "filter", "ufw-user-input" },
	{ "filter", "ufw6-user-input" },
	{ "raw", "PREROUTING" },
};

static const struct {
	const char *options, *keyword;
} options[] = {
	{ "-s|--source|--src-range", "src" }, { "-d|--destination|--dst-range", "dst" },
	{ "-p|--protocol", "proto" },         { "--sport|--sports", "sport" },
	{ "--dport|--dports", "dport" },      { "--icmp-type|--icmpv6-type", "type" },
	{ "-m|--match", "module" },           { "--comment", "comment" },
	{ "--reject-with", "answer" },        { "-j|--jump|-g|--goto", "target" },
	{ "-i|--in-interface", "interface" }, { "--state|--ctstate", "state" },
	{ "--tcp-flags", "flags" },           { "--hashlimit-above", "above" },
	{ "--length", "length" },             { "-f|--fragment", "fragment" },
	{ "--hashlimit-name", "limit" },      { "--hashlimit-burst|--hashlimit-htable-expire", "answer" },
};

static const struct rule any = { .family = FLOW_NO_FAMILY };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The name of a chain that is read, from the table above; NULL: it is not read. */
static const char *find_chain(const struct iptables *in, const char *name)
{
	for (size_t i = 0; i < COUNT(chains); i++)
		if (!strcmp(chains[i][0], in->table) && !strcmp(chains[i][1], name))
			return chains[i][1];
	return NULL;
}

static void add_match(struct line *line, const char *keyword, char *value)
{
	char protocol[LIST_PROTOCOL_BYTES], *slash = strchr(value, '/');

	line->has_flow |= strcmp(keyword, "comment") != 0;
	line->has_address |= !strcmp(keyword, "src") || !strcmp(keyword, "dst");
	if (strstr(keyword, "port") || !strcmp(keyword, "length"))
		for (char *c = value; *c; c++)
			*c = *c == ':' ? '-' : *c;
	if (!strcmp(keyword, "proto") && list_protocol(value, protocol)) {
		list_row_print(line->row, keyword, "%s", protocol);
		return;
	}
	list_row_add(line->row, keyword, value);
	if (!strcmp(keyword, "type") && slash) {
		*slash = '\0';
		list_row_add(line->row, "code", slash + 1);
	}
}

/* "1000/sec" or "512kb/s", as a rate. False: no rate is equal to it. */
static bool add_limit(struct list_row *row, const char *text)
{
	static const struct {
		const char *names;
		unsigned int number; /* bytes, or 0 for packets; seconds */
	} units[] = { { "", 0 }, { "b", 1 }, { "kb", 1 << 10 }, { "mb", 1 << 20 } },
	  periods[] = { { "s|sec|second", 1 },
			{ "min|minute", 60 },
			{ "hour", 3600 },
			{ "day", 86400 },
			{ "week", 604800 } };
	char *unit;
	const __u64 number = strtoull(text, &unit, 10);
	const size_t length = strcspn(unit, "/");
	unsigned int seconds = 0, bytes;
	size_t i = 0;

	while (i < COUNT(units) &&
	       (strlen(units[i].names) != length || strncmp(units[i].names, unit, length)))
		i++;
	if (unit == text || i == COUNT(units) || !unit[length])
		return false;
	row->is_limited = true;
	for (size_t k = 0; k < COUNT(periods); k++)
		if (is_one_of(unit + length + 1, periods[k].names))
			seconds = periods[k].number;
	bytes = units[i].number;
	if (!seconds || number > RULE_RATE_MAX || (!bytes && number % seconds))
		return false;
	list_row_print(row, "rate", bytes ? "%llubit/s" : "%llu/s",
		       (unsigned long long)(bytes ? number * 8 * bytes : number) / seconds);
	return true;
}

/* Reads the words after the chain. Behind a word that no rule can express, only the target is looked for. */
static void read_options(struct line *line, const char *const *words, size_t count)
{
	for (size_t i = 2; i < count; i++) {
		const char *const word = words[i], *keyword = NULL;
		char *value;

		for (size_t k = 0; k < COUNT(options); k++)
			if (is_one_of(word, options[k].options))
				keyword = options[k].keyword;
		if (keyword && !strcmp(keyword, "fragment") && !line->unfit && !line->row->is_limited) {
			list_row_add(line->row, keyword, "later");
			line->has_flow = true;
			continue;
		}
		value = keyword && strcmp(keyword, "fragment") && i + 1 < count ? (char *)words[++i] : NULL;
		if (!line->unfit && !line->row->is_limited &&
		    ((value && !strcmp(keyword, "flags") && i + 1 < count) || !strcmp(word, "--syn"))) {
			list_row_print(line->row, "flags", "%s/%s", value ? words[++i] : "syn",
				       value ? value : "fin,syn,rst,ack");
			line->has_flow = true;
			continue;
		}
		if (value && !strcmp(keyword, "target")) {
			line->target = value;
		} else if (line->unfit || (value && !strcmp(keyword, "answer"))) {
			continue;
			/* NOLINTNEXTLINE(bugprone-branch-clone): the reasons differ. */
		} else if (!value) {
			line->unfit = word;
		} else if (!strcmp(keyword, "interface")) {
			line->unfit = word;
			line->is_of_loopback = !strcmp(value, "lo");
		} else if (!strcmp(keyword, "state") && strcasecmp(value, "NEW")) {
			line->unfit = value;
			line->is_of_answers = !strcasestr(value, "NEW") && !strcasestr(value, "INVALID") &&
					      !strcasestr(value, "UNTRACKED");
		} else if (!strcmp(keyword, "limit")) {
			line->limit = value;
		} else if (!strcmp(keyword, "above")) {
			line->unfit = add_limit(line->row, value) ? NULL : value;
		} else if (strcmp(keyword, "module") && line->row->is_limited && strcmp(keyword, "comment")) {
			line->unfit = word; /* packets that it does not match count in the limit before it */
		} else if (strcmp(keyword, "module")) {
			add_match(line, keyword, value);
		} else if (!is_one_of(value, MODULES)) {
			line->unfit = value;
		}
	}
}

/* What to say of a limit that is no rate. */
static const char *advice_of(const struct line *line)
{
	return !strcmp(line->unfit, "limit") || !strcmp(line->unfit, "--hashlimit-upto") ?
		       "; a rate drops what is above it, as -m hashlimit --hashlimit-above with -j DROP" :
	       !strcmp(line->unfit, "--hashlimit-mode") ? "; a rate is for all packets of a rule, not for each source" :
							  "";
}

/* To iptables, an ACK of a connection that it does not know is NEW, too. So `state new` narrows no rule here. */
static int remember(struct iptables *in, const struct rule *rule, const char *chain, bool is_of_answers)
{
	if (array_grow(&in->passed, in->count, sizeof(*in->passed)))
		return -ENOMEM;
	in->passed[in->count] = (struct passed){ *rule, in->list->reader.number, chain, is_of_answers };
	in->passed[in->count++].rule.fields &= ~RULE_NEW;
	return 0;
}

/* A line that drops nothing: its packets may pass, or go through a chain that is not read. */
static int read_pass(struct iptables *in, struct line *line, const char *chain)
{
	const bool is_accept = !strcmp(line->target, "ACCEPT"), is_whole = !line->has_flow && !line->unfit;
	struct reason ignored;
	struct rules rules;
	int error;

	/* The filter does not see packets of the loopback interface. */
	if (line->is_of_loopback || !*line->target)
		return 0;
	if (is_accept && line->unfit && *advice_of(line))
		list_refuse(in->list, "'%s': no rule can say this%s", line->unfit, advice_of(line));
	/* A chain that is read, and that all packets go through, loses nothing. */
	if (!is_accept && !(is_whole && find_chain(in, line->target)))
		list_refuse(in->list, "'-j %s': only DROP, REJECT and ACCEPT are read", line->target);
	if (!strcmp(line->target, "LOG") || !strcmp(line->target, "NFLOG"))
		return 0;
	error = rules_parse(&rules, line->row->words, line->row->count, false, &ignored);
	if (error)
		return error == -ENOMEM ? error : remember(in, &any, is_accept ? NULL : chain, line->is_of_answers);
	for (size_t i = 0; i < rules.count && !error; i++)
		error = remember(in, &rules.rule[i], is_accept ? NULL : chain, line->is_of_answers);
	rules_free(&rules);
	return error;
}

static int read_drop(struct iptables *in, struct line *line, const char *chain)
{
	struct list_input *list = in->list;
	const struct passed *passed = NULL;
	struct reason reason;
	struct rules rules;
	int error;

	if (line->row->is_limited && in->unread)
		return list_refuse(list, "line %llu comes first and is not read; what it drops would count in the rate",
				   (unsigned long long)in->unread);
	if (line->unfit) {
		in->unread = list->reader.number;
		return list_refuse(list, "'%s': no rule can say this%s", line->unfit, advice_of(line));
	}
	if (line->limit && is_one_of(line->limit, in->limits))
		return list_refuse(list, "'--hashlimit-name %s': another line has it, and both share its packets",
				   line->limit);
	if (line->limit)
		text_append(in->limits, sizeof(in->limits), "%s%s", *in->limits ? "|" : "", line->limit);
	if (!line->has_flow)
		return list_refuse(list, "'-A %s -j %s': a rule must name an address, a protocol or a port", chain,
				   line->target);
	if (list->action == RULE_PASS)
		return list_refuse(list, "'-j %s' in a list with action pass", line->target);
	if (!line->has_address && in->family == FLOW_NO_FAMILY)
		return list_refuse(list, "IPv4 or IPv6? The line '# Generated by iptables-save' or '# Generated by "
					 "ip6tables-save' is missing");
	error = rules_parse(&rules, line->row->words, line->row->count, list->is_strict, &reason);
	if (error)
		return error == -ENOMEM ? error : list_refuse(list, "%s", reason.text);
	for (size_t i = 0; i < rules.count && !passed; i++)
		for (size_t k = 0; k < in->count && !passed; k++)
			if ((!in->passed[k].chain || in->passed[k].chain == chain) &&
			    !(in->passed[k].is_of_answers && (rules.rule[i].fields & RULE_NEW || list->is_new_only)) &&
			    rule_overlaps(&in->passed[k].rule, &rules.rule[i]))
				passed = &in->passed[k];
	rules_free(&rules);
	if (passed)
		return list_refuse(list,
				   "line %llu comes first and may let some of these packets pass; delete one of the two",
				   (unsigned long long)passed->line);
	return list_take(list, line->row);
}

static int read_append(struct iptables *in, const char *const *words, size_t count)
{
	const char *const name = count > 1 ? words[1] : "", *const chain = find_chain(in, name);
	struct list_row row;
	struct line line = { .row = &row, .target = "" };
	bool is_drop;

	list_row_clear(&row);
	read_options(&line, words, count);
	is_drop = !strcmp(line.target, "DROP") || !strcmp(line.target, "REJECT");
	/* Each file of ufw ends with "-A ufw-user-limit -j REJECT"; a line that jumps there is refused. */
	if (!chain && (!is_drop || strstr(name, "-user-limit")))
		return 0;
	if (!chain)
		return list_refuse(in->list,
				   "'-A %s': only the chains INPUT and ufw-user-input, and PREROUTING of the table raw, "
				   "are read",
				   name);
	if (!strncmp(chain, "ufw", 3))
		in->family = chain[3] == '6' ? FLOW_IPV6 : FLOW_IPV4;
	if (!line.has_address && in->family != FLOW_NO_FAMILY)
		list_row_add(&row, "src", in->family == FLOW_IPV4 ? "0.0.0.0/0" : "::/0");
	return (is_drop ? read_drop : read_pass)(in, &line, chain);
}

/* iptables-save writes \" and \\ in strings. Quotes of a comment become those that a comment may have. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++)
		*to++ = *from != '\\' || !from[1] ? *from : *++from == '"' ? '\'' : *from;
	*to = '\0';
}

static int read_line(struct iptables *in)
{
	static const char generated[] = "# Generated by ip";
	const char *words[RULE_WORDS_MAX], *const *word = words;
	char *text = in->list->reader.line;
	struct reason reason;
	size_t count;

	if (!strncmp(text, generated, sizeof(generated) - 1)) {
		in->limits[0] = '\0';
		in->family = text[sizeof(generated) - 1] == '6' ? FLOW_IPV6 : FLOW_IPV4;
	}
	if (*text == '#')
		return 0;
	unescape(text);
	if (rule_split(text, words, &count, &reason)) {
		list_refuse(in->list, "%s", reason.text);
		return remember(in, &any, NULL, false);
	}
	/* "[packets:bytes]" of iptables-save -c */
	if (count && *words[0] == '[') {
		word++;
		count--;
	}
	if (!count || !strcmp(word[0], "COMMIT"))
		return 0;
	if (!strcmp(word[0], "-A"))
		return read_append(in, word, count);
	switch (*word[0]) {
	case '*': /* a table */
		snprintf(in->table, sizeof(in->table), "%s", word[0] + 1);
		in->count = in->unread = 0;
		return 0;
	case ':': /* a chain */
		if (find_chain(in, word[0] + 1) && count > 1 && !strcmp(word[1], "DROP"))
			list_refuse(in->list, "the policy DROP is no rule: leave it to iptables");
		return 0;
	default:
		return list_refuse(in->list, "'%s': iptables-save writes no such line", word[0]);
	}
}

int list_read_iptables(struct list_input *list)
{
	struct iptables in = { .list = list, .family = FLOW_NO_FAMILY, .table = "filter" };
	int got, error = 0;

	while (!error && (got = list_next(list, reader_line)) > 0)
		error = read_line(&in);
	free(in.passed);
	return error ? error : got;
}
