// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads sets in the output of nft -j list set, list sets or list ruleset, and in a file for nft -j -f. Rules say which
 * sets are meant. No rule is read: one with a limit is refused, because without it the rule would drop all packets.
 * The first address of an element is the source, the second the destination. A single service is the destination
 * port. Of two services, the first is the source port. A typeof, or a set name from list_write_nft(), may name
 * other columns.
 *
 * The reader walks the JSON text, and never makes a JSON value of a whole set. So it knows line numbers,
 * and a set of a million elements needs no more memory than its text.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include <jansson.h>

#include "io/json_walk.h"
#include "lists/internal.h"
#include "base/memory.h"
#include "base/safe_text.h"

#define NAME_BYTES 256
#define ID_BYTES (8 + 2 * NAME_BYTES) /* of "FAMILY TABLE NAME" */
#define SHOWN_BYTES 60 /* of an element, in messages */

struct nft_set {
	char id[ID_BYTES], name[NAME_BYTES];
	struct list_columns columns;
	enum list_icmp_name icmp; /* for ICMP types; for codes it is this + 1 */
	__u8 proto;               /* of its ports; 0: any */
	__s64 timeout_s;          /* for elements without one; 0: never */
};

struct nft_list {
	struct list_input *list;
	struct nft_set *sets;
	size_t count;
	json_t *chains;  /* by id, of arriving packets: has a rule done more than to drop some? */
	json_t *dropped; /* the ids of sets of which a rule surely drops the sources */
	bool has_chains; /* else the text has only sets, and each is meant */
	bool is_unsure;  /* the order of the rules, or whether they hold, is not known */
};

/* ---- sets ---- */

struct meaning {
	const char *names, *keyword; /* names: joined by '|' */
};

static const struct meaning types[] = {
	{ "ipv4_addr", "src" },    { "ipv6_addr", "src" },    { "inet_service", "dport" },
	{ "inet_proto", "proto" }, { "icmp_type", "type" },   { "icmp_code", "code" },
	{ "icmpv6_type", "type" }, { "icmpv6_code", "code" }, {},
};

/* The header fields in typeof and in rules: these also name the side. */
static const struct meaning fields[] = {
	{ "ip saddr|ip6 saddr", "src" },
	{ "ip daddr|ip6 daddr", "dst" },
	{ "meta l4proto|ip protocol|ip6 nexthdr", "proto" },
	{ "icmp type|icmpv6 type", "type" },
	{ "icmp code|icmpv6 code", "code" },
	{},
};

/* `name` NULL: it was no string. Returns NULL if no rule can say it. */
static const char *keyword_of(const struct meaning *meaning, const char *name)
{
	while (name && meaning->names && !is_one_of(name, meaning->names))
		meaning++;
	return name ? meaning->keyword : NULL;
}

/*
 * {"payload": {"protocol": "ip", "field": "saddr"}}, {"meta": {"key": "l4proto"}}. False: it is no
 * header field.
 */
static bool read_field(const json_t *expression, const char **protocol, const char **field)
{
	if (!json_unpack((json_t *)expression, "{s:{s:s, s:s}}", "payload", "protocol", protocol,
			 "field", field))
		return true;
	*protocol = "meta";
	return !json_unpack((json_t *)expression, "{s:{s:s}}", "meta", "key", field);
}

static const char *keyword_of_expression(struct nft_set *set, const json_t *expression)
{
	const char *protocol, *field;
	char name[32];
	__u8 number;

	if (!read_field(expression, &protocol, &field))
		return NULL;
	if (!strncmp(protocol, "ip", 2))
		set->columns.family = protocol[2] == '6' ? 6 : 4;
	if (!strcmp(protocol, "icmpv6"))
		set->icmp = LIST_ICMPV6_TYPE;
	snprintf(name, sizeof(name), "%s %s", protocol, field);
	/* "tcp dport"; "th dport" is the port of any protocol. */
	if (strcmp(field, "sport") && strcmp(field, "dport"))
		return keyword_of(fields, name);
	if (rule_protocol_number(protocol, &number) && rule_has_ports(number))
		set->proto = number;
	else if (strcmp(protocol, "th"))
		return NULL;
	return *field == 's' ? "sport" : "dport";
}

/* The second address is the destination; of two services, the first is the source port. */
static const char *keyword_of_type(struct nft_set *set, const char *name)
{
	struct list_columns *columns = &set->columns;
	const char *keyword = keyword_of(types, name);

	if (!keyword)
		return NULL;
	if (!strncmp(name, "icmpv6", 6))
		set->icmp = LIST_ICMPV6_TYPE;
	for (size_t i = 0; i < columns->count && !strcmp(keyword, "dport"); i++)
		if (!strcmp(columns->keyword[i], "dport"))
			columns->keyword[i] = "sport";
	return !strcmp(keyword, "src") && list_columns_have(columns, "src") ? "dst" : keyword;
}

/* -EINVAL: a rule has no such columns. */
static int parse_type(struct nft_set *set, const json_t *type)
{
	const json_t *expression = json_object_get(type, "typeof");
	const json_t *parts = expression ? json_object_get(expression, "concat") : json_is_array(type) ? type : NULL;
	const size_t count = parts ? json_array_size(parts) : 1;
	struct list_columns *columns = &set->columns;

	*columns = (struct list_columns){};
	set->icmp = LIST_ICMP_TYPE;
	for (size_t i = 0; i < count; i++) {
		const json_t *part = parts ? json_array_get(parts, i) : expression ? expression : type;
		const char *keyword = expression ? keyword_of_expression(set, part) :
						   keyword_of_type(set, json_string_value(part));

		if (!keyword || columns->count == LIST_COLUMNS_MAX || list_columns_have(columns, keyword))
			return -EINVAL;
		columns->keyword[columns->count++] = keyword;
	}
	return count ? 0 : -EINVAL;
}

static const struct nft_set *find_set(const struct nft_list *in, const char *id)
{
	for (size_t i = in->count; i-- > 0;)
		if (!strcmp(in->sets[i].id, id))
			return &in->sets[i];
	return NULL;
}

/* ---- elements ---- */

/* Adds one value: a word, a number, a prefix or a range. -EINVAL: anything else. */
static int add_value(const struct nft_set *set, struct list_row *row, const char *keyword, const json_t *value)
{
	const json_t *range = json_object_get(value, "range");
	const char *word = json_string_value(value), *address, *last;
	char protocol[LIST_PROTOCOL_BYTES];
	const bool is_code = !strcmp(keyword, "code"), is_icmp = is_code || !strcmp(keyword, "type");
	const int icmp = word && is_icmp ? list_icmp_number(set->icmp + is_code, word) : -1;
	json_int_t number, end, length;

	if (json_is_integer(value))
		list_row_print(row, keyword, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (icmp >= 0)
		list_row_print(row, keyword, "%d", icmp);
	else if (word && !strcmp(keyword, "proto") && list_protocol(word, protocol))
		list_row_print(row, keyword, "%s", protocol);
	else if (word)
		list_row_print(row, keyword, "%s", word);
	else if (!json_unpack((json_t *)value, "{s:{s:s, s:I}}", "prefix", "addr", &address, "len", &length))
		list_row_print(row, keyword, "%s/%" JSON_INTEGER_FORMAT, address, length);
	else if (!json_unpack((json_t *)range, "[s, s!]", &address, &last))
		list_row_print(row, keyword, "%s-%s", address, last);
	else if (!json_unpack((json_t *)range, "[I, I!]", &number, &end))
		list_row_print(row, keyword, "%" JSON_INTEGER_FORMAT "-%" JSON_INTEGER_FORMAT, number, end);
	else
		return -EINVAL;
	return 0;
}

static int add_values(const struct nft_set *set, struct list_row *row, const json_t *value)
{
	const json_t *parts = json_object_get(value, "concat");
	int error = 0;

	if (!parts)
		return set->columns.count == 1 ? add_value(set, row, set->columns.keyword[0], value) : -EINVAL;
	if (json_array_size(parts) != set->columns.count)
		return -EINVAL;
	for (size_t i = 0; i < set->columns.count && !error; i++)
		error = add_value(set, row, set->columns.keyword[i], json_array_get(parts, i));
	return error;
}

/* ICMP columns imply the protocol; port columns may. The name of a set may imply the family. */
static void add_implied(const struct nft_set *set, struct list_row *row)
{
	const struct list_columns *columns = &set->columns;
	const bool has_proto = list_columns_have(columns, "proto");

	if ((list_columns_have(columns, "type") || list_columns_have(columns, "code")) && !has_proto)
		list_row_add(row, "proto", set->icmp == LIST_ICMP_TYPE ? "icmp" : "ipv6-icmp");
	if (set->proto && !has_proto)
		list_row_print(row, "proto", "%u", set->proto);
	if (columns->family && !list_columns_have(columns, "src") && !list_columns_have(columns, "dst"))
		list_row_add(row, "src", columns->family == 4 ? "0.0.0.0/0" : "::/0");
}

/* ---- rules ---- */

/* Whether the part compares a header field with a word. */
static bool read_match(const json_t *match, const char **protocol, const char **field,
		       const char **word)
{
	const json_t *left;
	const char *op;

	return !json_unpack((json_t *)match, "{s:s, s:o, s:s}", "op", &op, "left", &left, "right",
			    word) &&
	       !strcmp(op, "==") && read_field(left, protocol, field);
}

/*
 * Notes the set of a rule that drops all packets of its sources, whatever else they are. Before it
 * only rules may come that drop: after an accept or a jump, it does not see all packets.
 */
static int read_rule(struct nft_list *in, const char *family, const char *table, const char *chain,
		     json_t *parts, json_int_t handle)
{
	const char *what, *protocol, *field, *word, *set = NULL;
	bool has_limit = false, drops = false, is_plain = true, passes = false;
	char id[ID_BYTES];
	json_t *part, *value, *has_passed;
	size_t i;

	json_array_foreach(parts, i, part)
	{
		json_object_foreach(part, what, value)
		{
			const bool is_limit = !strcmp(what, "limit"),
				   is_match = !strcmp(what, "match");
			const bool is_harmless = is_one_of(what, "counter|log|drop|reject");
			const bool is_word = is_match &&
					     read_match(value, &protocol, &field, &word);
			const bool is_sources = is_word && !set && !strncmp(protocol, "ip", 2) &&
						!strcmp(field, "saddr") && *word == '@';

			/* The filter does not see packets of the loopback interface. */
			if (is_word && !strcmp(protocol, "meta") && !strncmp(field, "iif", 3) &&
			    !strcmp(word, "lo"))
				return 0;
			set = is_sources ? word + 1 : set;
			is_plain &= is_sources || is_harmless;
			has_limit |= is_limit;
			drops |= !strcmp(what, "drop") || !strcmp(what, "reject");
			passes |= !is_harmless && !is_match && !is_limit;
		}
	}
	snprintf(id, sizeof(id), "%s %s %s", family, table, chain);
	has_passed = json_object_get(in->chains, id);
	if (has_passed && passes)
		json_object_set_new(in->chains, id, json_true());
	if (json_is_false(has_passed) && set && drops && is_plain) {
		snprintf(id, sizeof(id), "%s %s %s", family, table, set);
		json_object_set_new(in->dropped, id, json_true());
	}
	if (!has_limit || (!drops && !passes))
		return 0;
	return list_refuse(
		in->list,
		"chain '%s', rule with handle %lld: limits of nft are not read; write: xdp-cuckoo add "
		"RULE rate N/s",
		chain, (long long)handle);
}

static int read_chain_or_rule(struct nft_list *in, const struct json_span *span, bool is_chain)
{
	const char *family, *table, *name, *hook = "", *type = "";
	json_t *value = json_walk_value(span), *parts = NULL;
	json_int_t handle = 0;
	char id[ID_BYTES];
	int error = 0;

	in->list->reader.number = span->line;
	in->has_chains = true;
	if (json_unpack(value, "{s:s, s:s, s:s, s?s, s?s, s?o, s?I}", "family", &family, "table",
			&table, is_chain ? "name" : "chain", &name, "hook", &hook, "type", &type,
			"expr", &parts, "handle", &handle)) {
		json_decref(value);
		return 0;
	}
	snprintf(id, sizeof(id), "%s %s %s", family, table, name);
	if (!is_chain)
		error = read_rule(in, family, table, name, parts, handle);
	/* Other families see some interfaces only; nat sees only the first packet. */
	else if (is_one_of(hook, "prerouting|input") && is_one_of(family, "ip|ip6|inet") &&
		 !json_object_get(in->chains, id))
		json_object_set_new(in->chains, id, json_boolean(strcmp(type, "filter")));
	json_decref(value);
	return error;
}

/* ---- objects ---- */

/* How many bytes of a span a message shows. */
static int shown_bytes(const struct json_span *span)
{
	return MIN(span->end - span->at, SHOWN_BYTES);
}

/* Ends a walk. `got` is the last result of json_walk_next(). */
static int end_walk(struct nft_list *in, const struct json_walk *walk, int got, int error)
{
	if (error || got >= 0)
		return error;
	in->list->is_cut = true;
	in->list->reader.number = walk->rest.line;
	list_refuse(in->list, "'%.*s': not JSON as nft -j writes it; not all of it was read", shown_bytes(&walk->rest),
		    walk->rest.at);
	return -EBADMSG;
}

static int read_elements(struct nft_list *in, const struct nft_set *set, const struct json_span *elements)
{
	struct json_walk walk = { .rest = *elements, .open = '[' };
	const struct json_span *const span = &walk.value;
	int got = 0, error = 0;

	while (!error && (got = json_walk_next(&walk)) > 0 && !(error = list_go_on(in->list))) {
		json_t *value = json_walk_value(span);
		const json_t *element = json_object_get(value, "elem");
		const char *comment = json_string_value(json_object_get(element, "comment"));
		/* "expires", the time left, counts more than "timeout". Less than a second becomes one second. */
		const json_t *expires = json_object_get(element, "expires");
		const json_t *timeout = expires ? expires : json_object_get(element, "timeout");
		const json_int_t seconds = timeout ? json_integer_value(timeout) : set->timeout_s;
		struct list_row row;

		list_row_clear(&row);
		in->list->reader.number = span->line;
		if (!value) {
			list_refuse(in->list, "'%.*s' is not JSON", shown_bytes(span), span->at);
		} else if (add_values(set, &row, element ? json_object_get(element, "val") : value)) {
			list_refuse(in->list, "'%.*s' does not have the columns of set '%s'", shown_bytes(span),
				    span->at, set->name);
		} else if (timeout && !json_is_integer(timeout)) {
			list_refuse(in->list, "'%.*s': its timeout is not a whole number of seconds", shown_bytes(span),
				    span->at);
		} else {
			if (seconds || expires)
				list_row_print(&row, "timeout", "%" JSON_INTEGER_FORMAT, seconds ? seconds : 1);
			add_implied(set, &row);
			if (set->columns.action != in->list->action)
				list_row_add(&row, "action", rule_action_name(set->columns.action));
			if (comment)
				list_row_add(&row, "comment", comment);
			error = list_take(in->list, &row);
		}
		json_decref(value);
	}
	return end_walk(in, &walk, got, error);
}

/* Reads what the text says of a set before its elements. *is_fit: the type can be that of rules. */
static int read_set_head(struct nft_list *in, const struct json_span *span, struct nft_set *set,
			 struct json_span *elements, bool *is_fit)
{
	char family[8] = "", table[NAME_BYTES] = "";
	const struct {
		const char *key;
		char *to;
		size_t room;
	} texts[] = { { "family", family, sizeof(family) },
		      { "table", table, sizeof(table) },
		      { "name", set->name, sizeof(set->name) } };
	struct json_walk walk = { .rest = *span, .open = '{' };
	int got;

	while ((got = json_walk_next(&walk)) > 0) {
		json_t *value = strcmp(walk.key, "elem") ? json_walk_value(&walk.value) : NULL;

		if (!strcmp(walk.key, "elem"))
			*elements = walk.value;
		else if (!strcmp(walk.key, "timeout"))
			set->timeout_s = json_is_integer(value) ? json_integer_value(value) : -1; /* -1: bad */
		else if (!strcmp(walk.key, "type"))
			*is_fit = !parse_type(set, value);
		for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
			if (!strcmp(walk.key, texts[i].key))
				snprintf(texts[i].to, texts[i].room, "%s",
					 json_is_string(value) ? json_string_value(value) : "");
		json_decref(value);
	}
	snprintf(set->id, sizeof(set->id), "%s %s %s", family, table, set->name);
	return end_walk(in, &walk, got, 0);
}

/* Reads a new set, or more elements for a set that came before. */
static int read_set(struct nft_list *in, const struct json_span *span, bool is_new)
{
	struct json_span elements = {};
	struct nft_set set = {};
	const struct nft_set *known = &set;
	char columns[LIST_COLUMNS_BYTES];
	bool is_fit = false;
	int error = read_set_head(in, span, &set, &elements, &is_fit);

	if (error)
		return error;
	in->list->reader.number = span->line;
	if (!list_choose_set(in->list, set.name))
		return 0;
	if (!in->list->set && in->has_chains &&
	    (in->is_unsure || !json_object_get(in->dropped, set.id)))
		return !is_new ?
			       0 :
			       list_note(in->list,
					 "set '%s' is left out: no rule at prerouting or input surely drops "
					 "all packets of its sources; if it is meant: --set %s",
					 set.id, set.name);
	if (!is_new)
		known = find_set(in, set.id);
	if (is_new ? !is_fit : !known)
		return list_refuse(in->list,
				   is_new ? "set '%s': elements of its type cannot be rules; it is left out" :
					    "elements of set '%s', but its type was not given before",
				   set.name);
	if (is_new) {
		set.columns.action = in->list->action;
		if (!set.columns.family && !strncmp(set.id, "ip", 2))
			set.columns.family = set.id[2] == '6' ? 6 : 4;
		list_columns_take_name(&set.columns, set.name, '_');
		list_note(in->list, "set '%s': %s", set.id,
			  list_columns_format(&set.columns, columns));
		if (array_grow(&in->sets, in->count, sizeof(*in->sets)))
			return -ENOMEM;
		in->sets[in->count++] = set;
	}
	return elements.at ? read_elements(in, known, &elements) : 0;
}

/*
 * Reads a set or its elements, or else a chain, a rule, or what makes these unsure. Commands do not nest. So a file cannot make
 * this reader recurse deeper.
 */
static int read_object(struct nft_list *in, const struct json_span *span, bool is_about_sets, bool is_in_command)
{
	static const char others[] = "insert|replace|delete|destroy|flush|rename";
	struct json_walk walk = { .rest = *span, .open = '{' };
	int got = 0, error = 0;

	while (!error && (got = json_walk_next(&walk)) > 0) {
		const size_t length = walk.value.end - walk.value.at;

		if (!strcmp(walk.key, "set") || !strcmp(walk.key, "element"))
			error = is_about_sets ? read_set(in, &walk.value, *walk.key == 's') : 0;
		else if (!is_in_command && (!strcmp(walk.key, "add") || !strcmp(walk.key, "create")))
			error = read_object(in, &walk.value, is_about_sets, true);
		else if (is_about_sets && !strcmp(walk.key, "map"))
			list_note(in->list, "maps are not read, only sets");
		else if (!is_about_sets && !in->list->set && (!strcmp(walk.key, "chain") || !strcmp(walk.key, "rule")))
			error = read_chain_or_rule(in, &walk.value, *walk.key == 'c');
		else if (!is_about_sets)
			in->is_unsure |= is_one_of(walk.key, others) ||
					 (!strcmp(walk.key, "table") &&
					  memmem(walk.value.at, length, "dormant", 7));
	}
	/* The text is walked twice. What is wrong with it is said once. */
	return is_about_sets ? end_walk(in, &walk, got, error) : error;
}

/* Reads one JSON document from the front of the text. */
static int read_document(struct nft_list *in, struct json_span *text)
{
	struct json_walk walk = { .rest = *text, .open = '{' }, objects;
	bool is_nft = false;
	int got = 0, error = 0;

	while (!error && (got = json_walk_next(&walk)) > 0) {
		if (strcmp(walk.key, "nftables"))
			continue;
		is_nft = true;
		/* nft writes a set before the rules that use it. */
		for (int is_about_sets = 0; is_about_sets < 2 && !error; is_about_sets++) {
			objects = (struct json_walk){ .rest = walk.value, .open = '[' };
			while (!error && (got = json_walk_next(&objects)) > 0)
				error = read_object(in, &objects.value, is_about_sets, false);
		}
		error = end_walk(in, &objects, got, error);
	}
	error = end_walk(in, &walk, got, error);
	if (!error && !is_nft) {
		in->list->reader.number = text->line;
		list_refuse(in->list, "not JSON as nft -j writes it: no member \"nftables\"; " LIST_NAME_JSON);
	}
	*text = walk.rest;
	return error;
}

int list_read_nft(struct list_input *list)
{
	struct nft_list in = { .list = list };
	struct json_span span = { .line = list->reader.is_kept ? list->reader.number : 1 };
	size_t length;
	char *text;
	int error = reader_rest(&list->reader, &text, &length);

	list->reader.number = span.line;
	if (error)
		return error == -EILSEQ ? list_refuse(list, "a NUL byte; this is not a text file") :
					  error;
	in.chains = json_object();
	in.dropped = json_object();
	span.at = text_behind_mark(text);
	span.end = text + length;
	if (span.at[strspn(span.at, " \t\r\n")] != '{')
		error = list_reject(list,
				    "'%.*s': not JSON; write: nft -j list set ... | xdp-cuckoo import -",
				    (int)MIN(strcspn(text, "\n"), SHOWN_BYTES), text);
	while (!error && span.at < span.end) /* a file may have several documents */
		error = read_document(&in, &span);
	free(in.sets);
	json_decref(in.chains);
	json_decref(in.dropped);
	free(text);
	/* Bad JSON has been refused. */
	return error == -EBADMSG || error == -EINVAL ? 0 : error;
}
