// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads the output of ipset save: sets and their elements. The first address of an element is the source, the
 * second the destination, the port is the destination's. A set name from list_write_ipset() may name other columns.
 * nomatch makes a pass rule.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "lists/internal.h"
#include "base/memory.h"

#define COLUMNS_MAX 3 /* of an ipset */

struct ipset {
	char *name;
	struct list_columns columns; /* src, dst, sport, dport; a port includes its protocol */
	bool is_unfit;               /* its elements cannot be rules, or are not wanted */
	bool has_timeout;
	char timeout[16]; /* for elements without one; "0": never */
	char netmask[4];  /* "": none */
};

struct ipset_list {
	struct list_input *list;
	struct ipset *sets;
	size_t count;
	const char *words[RULE_WORDS_MAX]; /* of the current line */
	size_t words_count;
};

/* ---- sets ---- */

static struct ipset *new_set(struct ipset_list *in, const char *name)
{
	struct ipset *set;

	if (array_grow(&in->sets, in->count, sizeof(*in->sets)))
		return NULL;
	set = &in->sets[in->count];
	*set = (struct ipset){ .name = strdup(name) };
	if (!set->name)
		return NULL;
	in->count++;
	set->is_unfit = !list_choose_set(in->list, name);
	set->columns.action = in->list->action;
	return set;
}

/* Adds the column for the next address or port of an element. */
static int add_column(struct ipset *set, bool is_port)
{
	struct list_columns *columns = &set->columns;

	if (columns->count == COLUMNS_MAX)
		return -EINVAL;
	columns->keyword[columns->count++] = is_port ? "dport" : list_columns_have(columns, "src") ? "dst" : "src";
	return 0;
}

/* -EINVAL: the set has been refused. */
static int parse_set_options(struct list_input *list, struct ipset *set, const char *const *words, size_t count)
{
	for (size_t i = 0; i + 1 < count; i++) {
		const char *const value = words[i + 1];
		const bool is_timeout = !strcmp(words[i], "timeout");

		if (is_timeout || !strcmp(words[i], "netmask")) {
			char *to = is_timeout ? set->timeout : set->netmask;
			const size_t room = is_timeout ? sizeof(set->timeout) : sizeof(set->netmask);

			if (snprintf(to, room, "%s", value) >= (int)room)
				return list_reject(list, "'%s %s' is too long; set '%s' is left out",
						   words[i], value, set->name);
			set->has_timeout |= is_timeout;
		} else if (!strcmp(words[i], "bitmask")) {
			unsigned char length = 0;
			union flow_addr mask;
			const bool is_address = rule_address_parse(value, &mask) != FLOW_NO_FAMILY;

			while (length < 128 && mask.byte[length / 8] & 0x80 >> length % 8)
				length++;
			if (!is_address || !rule_is_network_of(&mask, length, &mask))
				return list_reject(list, "'bitmask %s' is no prefix length; set '%s' is left out",
						   value, set->name);
			snprintf(set->netmask, sizeof(set->netmask), "%hhu", length);
		}
	}
	return 0;
}

static int take_name(struct ipset_list *in, struct ipset *set, const char *type)
{
	char text[LIST_COLUMNS_BYTES];

	list_columns_take_name(&set->columns, set->name, '-');
	return list_note(in->list, "set '%s' (%s): %s", set->name, type, list_columns_format(&set->columns, text));
}

static int read_create(struct ipset_list *in)
{
	const char *const *words = in->words;
	struct ipset *set;
	const char *at;

	if (in->words_count < 3)
		return list_refuse(in->list, "'%s': needs the name of a set and its type", words[0]);
	set = new_set(in, words[1]);
	if (!set)
		return -ENOMEM;
	if (set->is_unfit)
		return 0;
	/* The type has the columns, for example "hash:ip,port,ip" or "bitmap:port". */
	at = strchr(words[2], ':');
	set->is_unfit = !at || !strncmp(words[2], "list", 4);
	while (!set->is_unfit && *at) {
		const size_t length = strcspn(++at, ",");
		const bool is_port = length == 4 && !strncmp(at, "port", length);
		const bool is_address = (length == 2 && !strncmp(at, "ip", length)) ||
					(length == 3 && !strncmp(at, "net", length));

		set->is_unfit = (!is_port && !is_address) || add_column(set, is_port);
		at += length;
	}
	if (set->is_unfit)
		return list_refuse(in->list, "'%s': elements of this type cannot be rules; set '%s' is left out",
				   words[2], words[1]);
	set->is_unfit = parse_set_options(in->list, set, words + 3, in->words_count - 3);
	return set->is_unfit ? 0 : take_name(in, set, words[2]);
}

/* ---- elements ---- */

/* If a list has only add lines, the first element of a set shows its columns. */
static struct ipset *set_of_element(struct ipset_list *in, const char *element)
{
	struct ipset *set = new_set(in, in->words[1]);

	if (!set || set->is_unfit)
		return set;
	for (const char *at = element; at; at = strchr(at, ',')) {
		const size_t length = strcspn(at += *at == ',', ",");
		const size_t digits = strspn(at, "0123456789");
		const char *colon = memchr(at, ':', length);
		char protocol[LIST_PROTOCOL_BYTES], name[LIST_PROTOCOL_BYTES];
		bool is_port = digits == length;

		if (colon) {
			snprintf(name, sizeof(name), "%.*s", (int)(colon - at), at);
			is_port = list_protocol(name, protocol) && !memchr(colon + 1, ':', at + length - colon - 1);
		}
		set->is_unfit |= add_column(set, is_port) != 0;
	}
	if (set->is_unfit)
		list_refuse(in->list, "'%s': such elements cannot be rules; set '%s' is left out", element, set->name);
	else
		take_name(in, set, "not created here");
	return set;
}

/* Whether a rule may follow "add": then this is a line of batch. */
static bool may_start_rule(const char *word)
{
	const size_t length = strcspn(word, "/");
	const char *keyword = rule_keyword_of(word);
	char address[INET6_ADDRSTRLEN];
	union flow_addr ignored;

	snprintf(address, sizeof(address), "%.*s", length < sizeof(address) ? (int)length : 0, word);
	return rule_address_parse(address, &ignored) != FLOW_NO_FAMILY || (keyword && !strcmp(keyword, word));
}

/* "80", "tcp:80", "icmp:echo-request", "icmp:8/0", "gre:0". -EINVAL: it has been refused. */
static int add_port(struct list_input *list, struct list_row *row, const char *keyword, char *port)
{
	char *rest = strchr(port, ':'), protocol[LIST_PROTOCOL_BYTES], *slash;
	const struct list_icmp_pair *pair;

	if (rest)
		*rest++ = '\0';
	if (rest && !list_protocol(port, protocol))
		return list_reject(list, "'%s' is not a protocol", port);
	list_row_print(row, "proto", "%s", rest ? protocol : "tcp");
	if (rest && (!strcmp(protocol, "1") || !strcmp(protocol, "58"))) {
		slash = strchr(rest, '/');
		pair = slash ? NULL : list_icmp_pair(strcmp(protocol, "1"), rest);
		if (slash) {
			*slash = '\0';
			list_row_add(row, "type", rest);
			list_row_add(row, "code", slash + 1);
			return 0;
		}
		if (!pair)
			return list_reject(list,
					   "'%s': neither an ICMP type and code like 8/0, nor ipset's name for them",
					   rest);
		list_row_print(row, "type", "%u", pair->type);
		list_row_print(row, "code", "%u", pair->code);
		return 0;
	}
	if (!rest || rule_has_ports(strtoul(protocol, NULL, 10)))
		list_row_add(row, keyword, rest ? rest : port);
	else if (strcmp(rest, "0"))
		return list_reject(list, "'%s:%s': that protocol has no ports", port, rest);
	return 0;
}

static int add_columns(struct list_input *list, struct list_row *row, const struct ipset *set, char *element)
{
	const struct list_columns *columns = &set->columns;
	size_t parts = 1;

	for (const char *at = element; *at; at++)
		parts += *at == ',';
	if (parts != columns->count)
		return list_reject(list, "'%s' does not have the columns of set '%s'", element, set->name);
	for (size_t i = 0; i < parts; i++) {
		const char *const keyword = columns->keyword[i];
		char *part = strsep(&element, ",");

		if (strstr(keyword, "port")) {
			if (add_port(list, row, keyword, part))
				return -EINVAL;
		} else if (*set->netmask && !strpbrk(part, "/-")) {
			list_row_print(row, keyword, "%s/%s", part, set->netmask);
		} else {
			list_row_add(row, keyword, part);
		}
	}
	return 0;
}

static int read_add(struct ipset_list *in)
{
	const char *name = in->words_count > 1 ? in->words[1] : "", *timeout;
	struct ipset *set = NULL;
	enum rule_action action;
	struct list_row row;

	list_row_clear(&row);
	/* An element usually belongs to the last set. */
	for (size_t i = in->count; i-- > 0 && !set;)
		if (!strcmp(in->sets[i].name, name))
			set = &in->sets[i];
	if (!set && may_start_rule(name))
		return list_refuse(in->list, "'%s %s': this is a line of batch, and no set: xdp-cuckoo batch FILE",
				   in->words[0], name);
	if (in->words_count < 3)
		return list_refuse(in->list, "'%s': needs the name of a set and an element", in->words[0]);
	if (!set)
		set = set_of_element(in, in->words[2]);
	if (!set)
		return -ENOMEM;
	if (set->is_unfit || add_columns(in->list, &row, set, (char *)in->words[2]))
		return 0;
	timeout = set->has_timeout ? set->timeout : NULL;
	action = set->columns.action;
	for (size_t i = 3; i < in->words_count; i++) {
		const char *word = in->words[i], *value;

		if (!strcmp(word, "nomatch") && set->columns.action != RULE_DROP)
			return list_refuse(in->list, "'nomatch': rules with action %s can have no exceptions",
					   rule_action_name(set->columns.action));
		if (!strcmp(word, "nomatch"))
			action = RULE_PASS;
		if (is_one_of(word, "-exist|-!|nomatch"))
			continue;
		value = ++i < in->words_count ? in->words[i] : "";
		if (!strcmp(word, "timeout"))
			timeout = value;
		else if (!strcmp(word, "comment"))
			list_row_add(&row, "comment", value);
		else if (!is_one_of(word, "packets|bytes|skbmark|skbprio|skbqueue")) /* they count or mark packets */
			return list_refuse(in->list, "'%s' is no option of an element", word);
	}
	if (action != in->list->action)
		list_row_add(&row, "action", rule_action_name(action));
	row.is_permanent = timeout && !strcmp(timeout, "0");
	if (timeout && !row.is_permanent)
		list_row_add(&row, "timeout", timeout);
	return list_take(in->list, &row);
}

/* ---- lines ---- */

int list_read_ipset(struct list_input *list)
{
	struct ipset_list in = { .list = list };
	struct reason reason;
	int got, error = 0;

	while (!error && (got = list_next(list, reader_next)) > 0) {
		const bool is_bad = rule_split(list->reader.line, in.words, &in.words_count, &reason);
		const char *word = !is_bad && in.words_count ? in.words[0] : "";

		if (is_bad)
			error = list_refuse(list, "%s", reason.text);
		else if (is_one_of(word, "create|-N|--create"))
			error = read_create(&in);
		else if (is_one_of(word, "add|-A|--add"))
			error = read_add(&in);
		/* Other commands that scripts write around a list. */
		else if (*word && !is_one_of(word, "flush|-F|swap|-W|destroy|-X|rename|-E|COMMIT|quit"))
			error = list_refuse(list, "'%s': neither create nor add", word);
	}
	for (size_t i = 0; i < in.count; i++)
		free(in.sets[i].name);
	free(in.sets);
	return error ? error : got;
}
