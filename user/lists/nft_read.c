// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads the sets in the output of nft -j list set, list sets or list ruleset, and in a file for nft -j -f.
 * The first address of an element is the source, the second the destination. One service is the destination
 * port; of two, the first is the source port. A set with typeof, or with a name from list_write_nft(), says
 * otherwise.
 *
 * The reader walks the JSON text, and makes JSON values only of single elements. So it knows line numbers,
 * and a set of a million elements needs no more memory than its text.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "io/json_walk.h"
#include "lists/internal.h"
#include "lists/set_name.h"

#define NAME_BYTES 256
#define SHOWN_BYTES 60 /* of an element, in messages */

struct nft_set {
	char family[8], table[NAME_BYTES], name[NAME_BYTES];
	const char *columns[LIST_SET_COLUMNS_MAX]; /* keywords */
	enum list_icmp_name icmp;                  /* for ICMP types; for codes it is this + 1 */
	size_t count;
	bool is_pass;
	const char *only_family; /* the source prefix for the family, if no column shows it */
	__s64 timeout_s;         /* for elements without one; 0: never */
};

struct nft_list {
	struct list *list;
	struct nft_set *sets;
	size_t count;
	bool is_nft;
	struct json_span bad; /* where the text is not JSON */
};

/* ---- sets ---- */

static const struct {
	const char *type, *keyword;
} types[] = {
	{ "ipv4_addr", "src" },  { "ipv6_addr", "src" },  { "inet_service", "dport" }, { "inet_proto", "proto" },
	{ "icmp_type", "type" }, { "icmp_code", "code" }, { "icmpv6_type", "type" },   { "icmpv6_code", "code" },
};

/* The header fields in typeof: these also name the side. */
static const struct {
	const char *field, *keyword;
} fields[] = {
	{ "saddr", "src" },     { "daddr", "dst" },     { "sport", "sport" },
	{ "dport", "dport" },   { "l4proto", "proto" }, { "protocol", "proto" },
	{ "nexthdr", "proto" }, { "type", "type" },     { "code", "code" },
};

static const char *keyword_of_type(const char *type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(types[i].type, type))
			return types[i].keyword;
	return NULL;
}

/* {"payload": {"protocol": "ip", "field": "saddr"}}, {"meta": {"key": "l4proto"}} */
static const char *keyword_of_expression(struct nft_set *set, const json_t *expression)
{
	const json_t *payload = json_object_get(expression, "payload");
	const json_t *meta = json_object_get(expression, "meta");
	const char *field =
		json_string_value(payload ? json_object_get(payload, "field") : json_object_get(meta, "key"));
	const char *protocol = json_string_value(json_object_get(payload, "protocol"));

	if (protocol && !strcmp(protocol, "icmpv6"))
		set->icmp = LIST_ICMPV6_TYPE;
	for (size_t i = 0; field && i < sizeof(fields) / sizeof(fields[0]); i++)
		if (!strcmp(fields[i].field, field))
			return fields[i].keyword;
	return NULL;
}

static bool has_column(const struct nft_set *set, const char *keyword)
{
	for (size_t i = 0; i < set->count; i++)
		if (!strcmp(set->columns[i], keyword))
			return true;
	return false;
}

static int add_column(struct nft_set *set, const char *type, const char *keyword)
{
	if (!keyword || set->count == LIST_SET_COLUMNS_MAX)
		return -EINVAL;
	if (type && !strcmp(keyword, "src") && has_column(set, "src"))
		keyword = "dst";
	if (type && !strcmp(keyword, "dport"))
		for (size_t i = 0; i < set->count; i++)
			if (!strcmp(set->columns[i], "dport"))
				set->columns[i] = "sport";
	if (type && !strncmp(type, "icmpv6", 6))
		set->icmp = LIST_ICMPV6_TYPE;
	if (has_column(set, keyword))
		return -EINVAL;
	set->columns[set->count++] = keyword;
	return 0;
}

static int parse_typeof(struct nft_set *set, const json_t *type)
{
	const json_t *expression = json_object_get(type, "typeof");
	const json_t *parts = json_object_get(expression, "concat"), *part;
	int error = 0;
	size_t i;

	if (!parts)
		return add_column(set, NULL, keyword_of_expression(set, expression));
	json_array_foreach(parts, i, part) error = error ? error :
							   add_column(set, NULL, keyword_of_expression(set, part));
	return error;
}

static int parse_type(struct nft_set *set, const json_t *type)
{
	const json_t *part;
	int error = 0;
	size_t i;

	set->count = 0;
	set->icmp = LIST_ICMP_TYPE;
	if (json_is_object(type))
		return parse_typeof(set, type);
	if (json_is_string(type))
		return add_column(set, json_string_value(type), keyword_of_type(json_string_value(type)));
	json_array_foreach(type, i, part)
	{
		const char *name = json_string_value(part);

		error = error || !name ? -EINVAL : add_column(set, name, keyword_of_type(name));
	}
	return error ? error : set->count ? 0 : -EINVAL;
}

static void take_own_name(struct nft_set *set)
{
	struct list_set_name own;

	if (!list_set_name_parse(set->name, '_', &own) || own.count != set->count)
		return;
	memcpy(set->columns, own.columns, sizeof(set->columns));
	set->is_pass = own.is_pass;
	if (own.family && !has_column(set, "src") && !has_column(set, "dst"))
		set->only_family = own.family == 4 ? "0.0.0.0/0" : "::/0";
}

static struct nft_set *find_set(struct nft_list *in, const struct nft_set *like)
{
	for (size_t i = in->count; i-- > 0;)
		if (!strcmp(in->sets[i].name, like->name) && !strcmp(in->sets[i].table, like->table) &&
		    !strcmp(in->sets[i].family, like->family))
			return &in->sets[i];
	return NULL;
}

static int keep_set(struct nft_list *in, const struct nft_set *set)
{
	struct nft_set *grown = realloc(in->sets, (in->count + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	in->sets = grown;
	in->sets[in->count++] = *set;
	return 0;
}

static void note_set(struct nft_list *in, const struct nft_set *set)
{
	char text[64] = "";

	for (size_t i = 0; i < set->count; i++)
		strcat(strcat(text, i ? ", " : ""), set->columns[i]);
	list_note(in->list, "set '%s %s %s': %s, action %s", set->family, set->table, set->name, text,
		  set->is_pass ? "pass" : "drop");
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
		return set->count == 1 ? add_value(set, row, set->columns[0], value) : -EINVAL;
	if (json_array_size(parts) != set->count)
		return -EINVAL;
	for (size_t i = 0; i < set->count && !error; i++)
		error = add_value(set, row, set->columns[i], json_array_get(parts, i));
	return error;
}

/* "expires", the time left, counts more than "timeout". Less than a second becomes one second. */
static void add_timeout(const struct nft_set *set, struct list_row *row, const json_t *element)
{
	const json_t *expires = json_object_get(element, "expires");
	const json_t *timeout = expires ? expires : json_object_get(element, "timeout");
	const json_int_t seconds = timeout ? json_integer_value(timeout) : set->timeout_s;

	if (seconds || expires)
		list_row_print(row, "timeout", "%" JSON_INTEGER_FORMAT, seconds ? seconds : 1);
}

/* ICMP columns imply the protocol. The name of the set may imply family and action. */
static void add_implied(const struct nft_set *set, struct list_row *row)
{
	if ((has_column(set, "type") || has_column(set, "code")) && !has_column(set, "proto"))
		list_row_add(row, "proto", set->icmp == LIST_ICMP_TYPE ? "icmp" : "ipv6-icmp");
	if (set->only_family)
		list_row_add(row, "src", set->only_family);
	if (set->is_pass)
		list_row_add(row, "action", "pass");
}

/* The start of a piece, for a message. */
static int shown(const struct json_span *span)
{
	return span->end - span->at > SHOWN_BYTES ? SHOWN_BYTES : span->end - span->at;
}

static int read_value(struct nft_list *in, const struct nft_set *set, const struct json_span *span, const json_t *value)
{
	const json_t *element = json_object_get(value, "elem");
	const char *comment = json_string_value(json_object_get(element, "comment"));
	struct list_row row = { .count = 0 };

	if (add_values(set, &row, element ? json_object_get(element, "val") : value))
		return list_refuse(in->list, "'%.*s' does not have the columns of set '%s'", shown(span), span->at,
				   set->name);
	add_implied(set, &row);
	add_timeout(set, &row, element);
	if (comment)
		list_row_add(&row, "comment", comment);
	return list_take(in->list, &row);
}

struct reading_set {
	struct nft_list *in;
	struct nft_set set;
	bool is_fit;
	struct json_span elements;
};

static int read_element(const struct json_span *span, void *context)
{
	const struct reading_set *reading = context;
	struct nft_list *in = reading->in;
	json_t *value;
	int error = in->list->go_on(in->list);

	if (error)
		return error;
	in->list->reader.number = span->line;
	value = json_walk_value(span);
	if (!value)
		return list_refuse(in->list, "'%.*s' is not JSON", shown(span), span->at);
	error = read_value(in, &reading->set, span, value);
	json_decref(value);
	return error;
}

static int read_elements(struct reading_set *reading)
{
	if (!reading->elements.at)
		return 0;
	return json_walk_array(&reading->elements, read_element, reading, &reading->in->bad);
}

/* ---- objects ---- */

static void copy_text(char *to, size_t size, const json_t *value)
{
	snprintf(to, size, "%s", json_is_string(value) ? json_string_value(value) : "");
}

static int read_set_member(const char *key, const struct json_span *span, void *context)
{
	struct reading_set *reading = context;
	struct nft_set *set = &reading->set;
	json_t *value;

	if (!strcmp(key, "elem")) {
		reading->elements = *span;
		return 0;
	}
	value = json_walk_value(span);
	if (!strcmp(key, "family"))
		copy_text(set->family, sizeof(set->family), value);
	else if (!strcmp(key, "table"))
		copy_text(set->table, sizeof(set->table), value);
	else if (!strcmp(key, "name"))
		copy_text(set->name, sizeof(set->name), value);
	else if (!strcmp(key, "timeout"))
		set->timeout_s = json_integer_value(value);
	else if (!strcmp(key, "type"))
		reading->is_fit = !parse_type(set, value);
	json_decref(value);
	return 0;
}

static int read_set(struct nft_list *in, const struct json_span *span)
{
	struct reading_set reading = { .in = in };
	int error = json_walk_object(span, read_set_member, &reading, &in->bad);

	if (error)
		return error;
	in->list->reader.number = span->line;
	if (!reading.is_fit)
		return list_refuse(in->list, "set '%s': elements of its type cannot be rules; it is left out",
				   reading.set.name);
	take_own_name(&reading.set);
	note_set(in, &reading.set);
	error = keep_set(in, &reading.set);
	return error ? error : read_elements(&reading);
}

/* Reads more elements for a set that came before. */
static int read_more_elements(struct nft_list *in, const struct json_span *span)
{
	struct reading_set reading = { .in = in };
	int error = json_walk_object(span, read_set_member, &reading, &in->bad);
	const struct nft_set *set = error ? NULL : find_set(in, &reading.set);

	if (error)
		return error;
	in->list->reader.number = span->line;
	if (!set)
		return list_refuse(in->list, "elements of set '%s', but its type was not given before",
				   reading.set.name);
	reading.set = *set;
	return read_elements(&reading);
}

static int read_member(const char *key, const struct json_span *value, void *context)
{
	struct nft_list *in = context;

	if (!strcmp(key, "set"))
		return read_set(in, value);
	if (!strcmp(key, "element"))
		return read_more_elements(in, value);
	if (!strcmp(key, "map"))
		list_note(in->list, "maps are not read, only sets");
	return 0;
}

/* Commands do not nest. So a file cannot make this reader recurse deeper. */
static int read_command(const char *key, const struct json_span *value, void *context)
{
	struct nft_list *in = context;

	if (!strcmp(key, "add") || !strcmp(key, "create"))
		return json_walk_object(value, read_member, in, &in->bad);
	return read_member(key, value, context);
}

static int read_object(const struct json_span *object, void *context)
{
	struct nft_list *in = context;

	return json_walk_object(object, read_command, in, &in->bad);
}

static int read_document(const char *key, const struct json_span *value, void *context)
{
	struct nft_list *in = context;

	if (strcmp(key, "nftables"))
		return 0;
	in->is_nft = true;
	return json_walk_array(value, read_object, in, &in->bad);
}

/* Reads one JSON document from the front of the text. */
static int read_next(struct nft_list *in, struct json_span *text)
{
	struct list *list = in->list;
	const __u64 line = text->line;
	int error;

	in->is_nft = false;
	error = json_walk_next(text, read_document, in, &in->bad);
	if (error || in->is_nft)
		return error;
	list->reader.number = line;
	return list_refuse(list, "not JSON as nft -j writes it: no member \"nftables\"");
}

/* A file may have several documents. */
static int read_all(struct nft_list *in, struct json_span *text)
{
	struct list *list = in->list;
	int error;

	do
		error = read_next(in, text);
	while (!error && text->at < text->end);
	if (error != -EBADMSG)
		return error;
	list->reader.number = in->bad.line;
	return list_refuse(list, "'%.*s': not JSON as nft -j writes it; not all of it was read", shown(&in->bad),
			   in->bad.at);
}

int list_read_nft(struct list *list)
{
	struct nft_list in = { .list = list };
	struct json_span span = { .line = list->reader.is_kept ? list->reader.number : 1 };
	size_t length;
	char *text;
	int error = reader_rest(&list->reader, &text, &length);

	list->reader.number = span.line;
	if (error == -EILSEQ)
		return list_refuse(list, "a NUL byte; this is not a text file");
	if (error)
		return error;
	span.at = text;
	span.end = text + length;
	error = read_all(&in, &span);
	free(in.sets);
	free(text);
	return error;
}
