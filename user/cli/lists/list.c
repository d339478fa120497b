// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The part that all formats share: detects the format, and makes rules of words. */
#include "lists/list.h"

#include <netdb.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "lists/internal.h"
#include "base/safe_text.h"

#define START_BYTES 8192 /* in which the first lines end */

/* ---- formats ---- */

static const struct {
	const char *name;
	int (*read)(struct list_input *list);
} formats[LIST_FORMATS] = {
	[LIST_TEXT] = { "text", list_read_text }, [LIST_IPSET] = { "ipset", list_read_ipset },
	[LIST_NFT] = { "nft", list_read_nft },    [LIST_SPAMHAUS] = { "spamhaus", list_read_spamhaus },
	[LIST_CSV] = { "csv", list_read_csv },    [LIST_IPTABLES] = { "iptables", list_read_iptables },
	[LIST_P2P] = { "p2p", list_read_ranges }, [LIST_DSHIELD] = { "dshield", list_read_ranges },
	[LIST_JSON] = { "json", list_read_json },
};

enum list_format list_format_named(const char *name)
{
	/* No option names JSON: its paths do. */
	for (enum list_format format = LIST_TEXT; format < LIST_JSON; format++)
		if (!strcmp(formats[format].name, name))
			return format;
	return LIST_UNKNOWN;
}

bool list_choose_set(struct list_input *list, const char *name)
{
	const bool is_wanted = !list->set || !strcmp(list->set, name);

	list->has_set |= is_wanted;
	if (!is_wanted)
		text_append(list->other_sets, sizeof(list->other_sets), "%s%s", *list->other_sets ? ", " : "", name);
	return is_wanted;
}

/* ---- words ---- */

int list_report(struct list_input *list, void (*report)(struct list_input *list, const char *text), int result,
		const char *format, ...)
{
	struct reason reason;
	va_list arguments;

	va_start(arguments, format);
	reason_print(&reason, format, arguments);
	va_end(arguments);
	if (report)
		report(list, reason.text);
	return result;
}

void list_row_add(struct list_row *row, const char *keyword, const char *value)
{
	/* A comment stays the last: without quotes, what follows it could be a part of it. */
	const size_t last = row->count && !strcmp(row->words[row->count - 2], "comment") ? 2 : 0;
	const char **at = row->words + row->count - last;

	row->is_cut |= row->count + 2 > RULE_WORDS_MAX;
	if (row->is_cut)
		return;
	memmove(at + 2, at, last * sizeof(*at));
	at[0] = keyword;
	at[1] = value;
	row->count += 2;
}

void list_row_print(struct list_row *row, const char *keyword, const char *format, ...)
{
	char *value = row->text + row->used;
	const size_t room = sizeof(row->text) - row->used;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(value, room, format, arguments);
	va_end(arguments);
	row->is_cut |= (size_t)length >= room;
	row->used += row->is_cut ? 0 : (size_t)length + 1;
	list_row_add(row, keyword, value);
}

bool list_protocol(const char *name, char text[LIST_PROTOCOL_BYTES])
{
	const struct protoent *known;
	__u8 number;

	if (!rule_protocol_number(name, &number)) {
		known = getprotobyname(name);
		if (!known || known->p_proto < 0 || known->p_proto > 254)
			return false;
		number = known->p_proto;
	}
	snprintf(text, LIST_PROTOCOL_BYTES, "%u", number);
	return true;
}

/* ---- from words to rules ---- */

static int take(const struct rule *rule, void *context)
{
	struct list_input *list = context;
	struct rule timed = *rule;

	if (!timed.timeout_ms && !list->is_permanent)
		timed.timeout_ms = list->timeout_ms;
	if (list->is_new_only && timed.action != RULE_PASS) {
		if (!rule_may_begin(&timed))
			return list_refuse(
				list, "such packets begin nothing, and the list is new-only");
		timed.fields |= RULE_NEW;
	}
	return list->take(list, &timed);
}

int list_take(struct list_input *list, struct list_row *row)
{
	struct rule_each each = { .take = take,
				  .context = list,
				  .action = list->action,
				  .is_of_file = true,
				  .is_strict = list->is_strict };
	struct reason reason;
	struct rules rules;
	int error;

	if (row->is_cut)
		return list_refuse(list, "'%s': too many or too long words for a rule", row->words[1]);
	if (row->is_limited && !rules_parse(&rules, row->words, row->count, list->is_strict, &reason)) {
		const size_t count = rules.count;

		rules_free(&rules);
		if (count > 1)
			return list_refuse(list, "one limit for what needs %zu rules, each of which would have its own",
					   count);
	}
	list->is_permanent = row->is_permanent;
	error = rule_each(&each, row->words, row->count, &reason);
	if (each.masked.count && !list->masked.count)
		list->masked = each.masked;
	else
		list->masked.count += each.masked.count;
	return error == -EINVAL ? list_refuse(list, "%s", reason.text) : error;
}

/* ---- reading ---- */

const char *list_next_line(const char *text)
{
	while (text += strspn(text, " \t\r\n"), *text && strchr("#;", *text))
		text += strcspn(text, "\n");
	return text;
}

/* Whether a rule follows the first line, so that this is an odd one of a text, whatever it looks like. JSON has strings. */
static bool has_odd_start(const char *text)
{
	text = list_next_line(text);
	text = list_next_line(text + strcspn(text, "\n"));
	return *text != '"' && list_is_rule(text);
}

const char *list_stranger(const char *bytes)
{
	static const struct {
		const char *start, *what;
	} strangers[] = {
		{ "<", "a page of HTML or XML" },
		{ "\x1f\x8b", "a gzip file" },
		{ "PK\3\4", "a zip archive" },
		{ "BZh", "a bzip2 file" },
		{ "\3757zXZ", "an xz file" },
		{ "\x28\xb5\x2f\xfd", "a zstd file" },
		{ "%PDF-", "a PDF document" },
	};
	const char *text = text_behind_mark(bytes);
	bool is_sure;

	text += strspn(text, " \t\r\n");
	is_sure = suggest_has("<!doctype|<html|<head|<body|<?xml", text, strcspn(text, " \t\r\n>"), false);
	for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++)
		if (!strncmp(text, strangers[i].start, strlen(strangers[i].start)))
			return is_sure || !strchr("<B", *text) || !has_odd_start(text) ? strangers[i].what : NULL;
	return NULL;
}

int list_next(struct list_input *list, int (*next)(struct reader *reader))
{
	int got;

	do {
		got = list_go_on(list);
		if (got)
			return got;
		got = next(&list->reader);
		if (got == -EILSEQ)
			list_refuse(list, "a NUL byte; this is not a text file");
	} while (got == -EILSEQ);
	return got;
}

static int take_none(const struct rule *rule, void *context)
{
	(void)rule, (void)context;
	return 0;
}

/* A text list may begin with a rule whose comment has a comma and the name of a column: that is no heading of CSV. */
bool list_is_rule(const char *line)
{
	char text[RULE_TEXT_BYTES];
	struct rule_words words;
	bool is_quoted = false;
	struct reason ignored;
	struct rule_each each = { .take = take_none, .is_of_file = true };
	size_t length = 0;

	for (; line[length] && (is_quoted || !strchr("#;\r\n", line[length])); length++)
		is_quoted ^= line[length] == '"';
	snprintf(text, sizeof(text), "%.*s", (int)length, line);
	return !rule_words_split(&words, text, &ignored) && !rule_each(&each, words.word, words.count, &ignored);
}

/* LIST_UNKNOWN: this line does not show the format. */
static enum list_format format_of(const char *line)
{
	line += strspn(line, " \t");
	if (*line == ';' && strstr(line, "Spamhaus"))
		return LIST_SPAMHAUS;
	if (*line == '*' || !strncmp(line, "# Generated by iptables-save", 28) ||
	    !strncmp(line, "# Generated by ip6tables-save", 29))
		return LIST_IPTABLES;
	if (!*line || *line == '#' || *line == ';')
		return LIST_UNKNOWN;
	/* "[ blocklist ]" is the odd line of a text. */
	if (*line == '[' && strchr("[]{\"", line[1 + strspn(line + 1, " \t\r")]))
		return LIST_JSON;
	if (*line == '{')
		/* nft writes one long line, or an object over many lines. Spamhaus writes an object on each line. */
		return strstr(line, "\"nftables\"") || !strchr(line, '}') ? LIST_NFT : LIST_SPAMHAUS;
	/* nft without -j: a ruleset, or commands */
	if ((!strncmp(line, "table ", 6) || !strncmp(line, "add ", 4)) && strchr(line, '{'))
		return LIST_NFT;
	if (line[strcspn(line, " \t")] &&
	    suggest_has("create|add|-N|-A|--create|--add", line, strcspn(line, " \t"), true))
		return LIST_IPSET;
	if (list_is_rule(line))
		return LIST_TEXT;
	return list_is_csv_heading(line) ? LIST_CSV : list_range_format(line) ? list_range_format(line) : LIST_TEXT;
}

/* Whether a line that shows this format could also be an odd one of a text. */
static bool is_unsure(enum list_format format, const char *line)
{
	int end = 0;

	line += strspn(line, " \t");
	/* Behind its name, a set has a type or an element. */
	if (format == LIST_IPSET && sscanf(line, "%*s %*s%n", &end) != EOF)
		return !strpbrk(line + end, ".:0123456789");
	if (format == LIST_JSON || (format == LIST_NFT && *line == '{'))
		return !strchr(line, '"');
	return format == LIST_IPTABLES && *line == '*';
}

int list_read(struct list_input *list)
{
	const char *stranger;
	char start[START_BYTES];

	reader_peek(&list->reader, start, sizeof(start));
	stranger = list_stranger(start);
	if (stranger) {
		list->is_cut = true;
		list->reader.number = 1;
		return list_refuse(list, "this is %s, not a list", stranger);
	}
	if (list->json)
		list->format = LIST_JSON;
	if (!list->format) {
		int got;

		while ((got = list_next(list, reader_line)) > 0 && !(list->format = format_of(list->reader.line)))
			;
		/* The one line of JSON may be longer than the reader takes. */
		if (got == -EMSGSIZE && strchr("{[", list->reader.line[0]))
			list->format = format_of(list->reader.line) == LIST_NFT ? LIST_NFT : LIST_JSON;
		if (got > 0 && is_unsure(list->format, list->reader.line) && has_odd_start(start))
			list->format = LIST_TEXT;
		/* An empty list has no format. */
		if (!list->format)
			return got;
		list->reader.is_kept = true;
	}
	return formats[list->format].read(list);
}
