// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The part that all formats share: detects the format, and makes rules of words. */
#include "lists/list.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lists/internal.h"

/* ---- formats ---- */

static const struct {
	const char *name;
	int (*read)(struct list *list);
} formats[LIST_FORMATS] = {
	[LIST_TEXT] = { "text", list_read_text }, [LIST_IPSET] = { "ipset", list_read_ipset },
	[LIST_NFT] = { "nft", list_read_nft },    [LIST_SPAMHAUS] = { "spamhaus", list_read_spamhaus },
	[LIST_CSV] = { "csv", list_read_csv },
};

enum list_format list_format_named(const char *name)
{
	for (enum list_format format = LIST_TEXT; format < LIST_FORMATS; format++)
		if (!strcmp(formats[format].name, name))
			return format;
	return LIST_UNKNOWN;
}

const char *list_format_name(enum list_format format)
{
	return formats[format].name;
}

bool list_wants_set(struct list *list, const char *name)
{
	const size_t used = strlen(list->other_sets);
	const bool is_wanted = !list->set || !strcmp(list->set, name);

	list->has_set |= is_wanted;
	if (!is_wanted)
		snprintf(list->other_sets + used, sizeof(list->other_sets) - used, "%s%s", used ? ", " : "", name);
	return is_wanted;
}

/* ---- words ---- */

int list_report(struct list *list, void (*report)(struct list *list, const char *text), const char *format, ...)
{
	struct reason reason;
	va_list arguments;

	va_start(arguments, format);
	reason_print(&reason, format, arguments);
	va_end(arguments);
	report(list, reason.text);
	return 0;
}

void list_row_add(struct list_row *row, const char *keyword, const char *value)
{
	row->is_cut |= row->count + 2 > RULE_WORDS_MAX;
	if (row->is_cut)
		return;
	row->words[row->count++] = keyword;
	row->words[row->count++] = value;
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

	if (rule_protocol_number(name, &number)) {
		known = getprotobyname(name);
		if (!known || known->p_proto < 0 || known->p_proto > 254)
			return false;
		number = known->p_proto;
	}
	snprintf(text, LIST_PROTOCOL_BYTES, "%u", number);
	return true;
}

/* ---- from words to rules ---- */

struct taking {
	struct list *list;
	const struct list_row *row;
};

static int take(const struct rule *rule, void *context)
{
	const struct taking *taking = context;
	struct rule timed = *rule;

	if (!timed.timeout_ms && !taking->row->is_permanent)
		timed.timeout_ms = taking->list->timeout_ms;
	return taking->list->take(taking->list, &timed);
}

int list_take(struct list *list, struct list_row *row)
{
	struct taking taking = { list, row };
	struct rule_each each = { .take = take,
				  .context = &taking,
				  .action = list->action,
				  .is_of_file = true,
				  .is_strict = list->is_strict };
	struct reason reason;
	int error;

	if (row->is_cut)
		return list_refuse(list, "'%s': too many or too long words for a rule", row->words[1]);
	error = rule_each(&each, row->words, row->count, &reason);

	if (each.masked.count && !list->masked.count)
		list->masked = each.masked;
	else
		list->masked.count += each.masked.count;
	return error == -EINVAL ? list_refuse(list, "%s", reason.text) : error;
}

/* ---- reading ---- */

int list_next(struct list *list, int (*next)(struct reader *reader))
{
	int got;

	do {
		got = list->go_on(list);
		if (got)
			return got;
		got = next(&list->reader);
		if (got == -EILSEQ)
			list_refuse(list, "a NUL byte; this is not a text file");
	} while (got == -EILSEQ);
	return got;
}

/* LIST_UNKNOWN: this line does not show the format. */
static enum list_format format_of(const char *line)
{
	static const char *const ipset_words[] = { "create", "add", "-N", "-A", "--create", "--add" };

	line += strspn(line, " \t");
	if (*line == ';' && strstr(line, "Spamhaus"))
		return LIST_SPAMHAUS;
	if (!*line || *line == '#' || *line == ';')
		return LIST_UNKNOWN;
	if (*line == '{')
		/* nft writes one long line, or an object over many lines. Spamhaus writes an object on each line. */
		return strstr(line, "\"nftables\"") || !strchr(line, '}') ? LIST_NFT : LIST_SPAMHAUS;
	/* nft without -j: a ruleset, or commands */
	if ((!strncmp(line, "table ", 6) || !strncmp(line, "add ", 4)) && strchr(line, '{'))
		return LIST_NFT;
	for (size_t i = 0; i < sizeof(ipset_words) / sizeof(ipset_words[0]); i++) {
		const size_t length = strlen(ipset_words[i]);

		if (!strncmp(line, ipset_words[i], length) && (line[length] == ' ' || line[length] == '\t'))
			return LIST_IPSET;
	}
	return list_is_csv_heading(line) ? LIST_CSV : LIST_TEXT;
}

int list_read(struct list *list)
{
	if (!list->format) {
		int got;

		while ((got = list_next(list, reader_line)) > 0 && !(list->format = format_of(list->reader.line)))
			;
		/* The one line of nft may be longer than the reader takes. */
		if (got == -EMSGSIZE && format_of(list->reader.line) == LIST_NFT)
			list->format = LIST_NFT;
		/* An empty list has no format. */
		if (!list->format)
			return got;
		list->reader.is_kept = true;
	}
	return formats[list->format].read(list);
}
