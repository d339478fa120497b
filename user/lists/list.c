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

#define NUMBER_DIGITS 5 /* of a port in a range */

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
	if (row->count + 2 > RULE_WORDS_MAX)
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
	row->used += (size_t)length < room ? (size_t)length + 1 : room - 1;
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

/* Finds the next range from word *at on, and sets *at. false: there is none. */
static bool find_range(const struct list_row *row, size_t *at, bool *is_port)
{
	for (size_t i = 0; i < row->count; i++) {
		const char *word = row->words[i];
		const bool is_alone = strpbrk(word, ".:");

		if (!is_alone && ++i == row->count)
			break;
		if (i < *at || !strchr(row->words[i], '-'))
			continue;
		*is_port = !strcmp(word, "sport") || !strcmp(word, "dport");
		if (is_alone || *is_port || !strcmp(word, "src") || !strcmp(word, "dst")) {
			*at = i;
			return true;
		}
	}
	return false;
}

/* The values of a range that a rule can hold: prefixes or ports. */
struct values {
	bool is_port;
	struct list_range addresses;
	unsigned int port, last_port;
};

/* Only digits, up to `end`. scanf() would accept "-1". */
static bool parse_port(const char *text, char end, unsigned int *number)
{
	const size_t digits = strspn(text, "0123456789");

	*number = digits <= NUMBER_DIGITS ? strtoul(text, NULL, 10) : 0;
	return digits && digits <= NUMBER_DIGITS && !rule_has_leading_zero(text) && text[digits] == end;
}

static int values_parse(struct values *values, const char *word, bool is_port, struct reason *reason)
{
	*values = (struct values){ .is_port = is_port };
	if (!is_port)
		return list_range_parse(word, &values->addresses, reason);
	if (parse_port(word, '-', &values->port) && parse_port(strchr(word, '-') + 1, '\0', &values->last_port) &&
	    values->port <= values->last_port)
		return 0;
	return reason_set(reason, -EINVAL, "'%s' is not a range of ports", word);
}

static bool values_next(struct values *values, char text[RULE_PREFIX_BYTES])
{
	union flow_addr address;
	unsigned int length;

	if (values->is_port) {
		sprintf(text, "%u", values->port);
		return values->port++ <= values->last_port;
	}
	if (!list_range_next(&values->addresses, &address, &length))
		return false;
	/* Messages quote the length of each prefix, even of a single address. */
	rule_prefix_format(values->addresses.family, &address, rule_address_bits(values->addresses.family), text);
	sprintf(text + strlen(text), "/%u", length);
	return true;
}

/* Makes one rule for each combination of values in the ranges from word `at` on. */
static int take_from(struct list *list, struct list_row *row, size_t at)
{
	char text[RULE_PREFIX_BYTES];
	struct values values;
	struct reason reason;
	struct rule rule;
	const char *word;
	bool is_port;
	int error = 0;

	if (!find_range(row, &at, &is_port)) {
		if (rule_parse_words(row->words, row->count, &rule, &reason))
			return list_refuse(list, "%s", reason.text);
		if (!rule.timeout_ms && !row->is_permanent)
			rule.timeout_ms = list->timeout_ms;
		return list->take(list, &rule);
	}
	word = row->words[at];
	if (values_parse(&values, word, is_port, &reason))
		return list_refuse(list, "%s", reason.text);
	row->words[at] = text;
	while (!error && values_next(&values, text))
		error = take_from(list, row, at + 1);
	row->words[at] = word;
	return error;
}

/* The number of values in a range. 1 for a bad range: take_from() refuses it later. */
static __u64 count_values(const char *word, bool is_port)
{
	struct values values;
	struct reason ignored;
	union flow_addr address;
	unsigned int length;
	__u64 count = 0;

	if (values_parse(&values, word, is_port, &ignored))
		return 1;
	if (is_port)
		return values.last_port - values.port + 1;
	while (list_range_next(&values.addresses, &address, &length))
		count++;
	return count;
}

static bool names_action(const struct list_row *row)
{
	enum rule_action action;

	for (size_t i = 0; i < row->count; i++) {
		if (!strcmp(row->words[i], "comment"))
			i++;
		else if (!strcmp(row->words[i], "action") || !rule_action_parse(row->words[i], &action))
			return true;
	}
	return false;
}

int list_take(struct list *list, struct list_row *row)
{
	__u64 rules = 1;
	bool is_port;

	if (list->action != RULE_DROP && !names_action(row))
		list_row_add(row, "action", rule_action_name(list->action));

	/* The product of several ranges may overflow. */
	for (size_t at = 0; find_range(row, &at, &is_port); at++)
		if (__builtin_mul_overflow(rules, count_values(row->words[at], is_port), &rules))
			rules = ~0ULL;
	if (rules > LIST_RULES_MAX)
		return list_refuse(list, "its ranges mean %llu rules; one line may have at most %d: name fewer ports",
				   (unsigned long long)rules, LIST_RULES_MAX);
	return take_from(list, row, 0);
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
