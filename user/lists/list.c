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

/* ---- words ---- */

int list_refuse(struct list *list, const char *format, ...)
{
	struct reason reason;
	va_list arguments;

	va_start(arguments, format);
	reason_print(&reason, format, arguments);
	va_end(arguments);
	list->refuse(list, reason.text);
	return 0;
}

void list_note(struct list *list, const char *format, ...)
{
	struct reason reason;
	va_list arguments;

	va_start(arguments, format);
	reason_print(&reason, format, arguments);
	va_end(arguments);
	list->note(list, reason.text);
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

enum word_kind { WORD_PLAIN, WORD_ADDRESS, WORD_NUMBER };

/* Whether the value after a keyword may be a range. */
static enum word_kind kind_of(const char *keyword)
{
	if (!strcmp(keyword, "src") || !strcmp(keyword, "dst"))
		return WORD_ADDRESS;
	if (!strcmp(keyword, "sport") || !strcmp(keyword, "dport"))
		return WORD_NUMBER;
	return WORD_PLAIN;
}

struct taking {
	struct list *list;
	const char *words[RULE_WORDS_MAX];
	size_t count;
	bool is_permanent;
};

static int take_rule(const struct taking *taking)
{
	struct list *list = taking->list;
	struct reason reason;
	struct rule rule;

	if (rule_parse_words(taking->words, taking->count, &rule, &reason))
		return list_refuse(list, "%s", reason.text);
	if (!rule.timeout_ms && !taking->is_permanent)
		rule.timeout_ms = list->timeout_ms;
	return list->take(list, &rule);
}

/* Finds the next range from word *at on. Returns its kind and sets *at; WORD_PLAIN: there is none. */
static enum word_kind find_range(const struct taking *taking, size_t *at)
{
	enum word_kind kind;

	for (size_t i = 0; i < taking->count; i++) {
		const char *word = taking->words[i];
		const bool is_alone = strpbrk(word, ".:");

		kind = is_alone ? WORD_ADDRESS : kind_of(word);
		if (!is_alone && ++i == taking->count)
			break;
		if (i >= *at && kind != WORD_PLAIN && strchr(taking->words[i], '-')) {
			*at = i;
			return kind;
		}
	}
	return WORD_PLAIN;
}

static int take_from(struct taking *taking, size_t at);

static int take_addresses(struct taking *taking, size_t at)
{
	const char *const word = taking->words[at];
	char text[INET6_ADDRSTRLEN + 4], address_text[INET6_ADDRSTRLEN];
	struct list_range range;
	union flow_addr address;
	struct reason reason;
	unsigned int length;
	int error = list_range_parse(word, &range, &reason);

	if (error)
		return list_refuse(taking->list, "%s", reason.text);
	taking->words[at] = text;
	while (!error && list_range_next(&range, &address, &length)) {
		inet_ntop(range.family == FLOW_IPV4 ? AF_INET : AF_INET6, &address, address_text, sizeof(address_text));
		snprintf(text, sizeof(text), "%s/%u", address_text, length);
		error = take_from(taking, at + 1);
	}
	taking->words[at] = word;
	return error;
}

/* Only digits, up to `end`. scanf() would accept "-1". */
static bool parse_number(const char *text, char end, unsigned int *number)
{
	const size_t digits = strspn(text, "0123456789");

	*number = digits <= NUMBER_DIGITS ? strtoul(text, NULL, 10) : 0;
	return digits && digits <= NUMBER_DIGITS && !rule_has_leading_zero(text) && text[digits] == end;
}

static bool parse_numbers(const char *text, unsigned int *first, unsigned int *last)
{
	return parse_number(text, '-', first) && parse_number(strchr(text, '-') + 1, '\0', last) && *first <= *last;
}

static int take_numbers(struct taking *taking, size_t at)
{
	const char *const word = taking->words[at];
	unsigned int first, last;
	char text[16];
	int error = 0;

	if (!parse_numbers(word, &first, &last))
		return list_refuse(taking->list, "'%s' is not a range of ports", word);
	taking->words[at] = text;
	for (; !error && first <= last; first++) {
		snprintf(text, sizeof(text), "%u", first);
		error = take_from(taking, at + 1);
	}
	taking->words[at] = word;
	return error;
}

/* Makes one rule for each combination of values in the ranges from word `at` on. */
static int take_from(struct taking *taking, size_t at)
{
	switch (find_range(taking, &at)) {
	case WORD_ADDRESS:
		return take_addresses(taking, at);
	case WORD_NUMBER:
		return take_numbers(taking, at);
	default:
		return take_rule(taking);
	}
}

/* The number of values in a range. 1 for a bad range: take_from() refuses it later. */
static unsigned int count_values(const char *word, enum word_kind kind)
{
	unsigned int first, last, length, count = 0;
	struct list_range range;
	union flow_addr address;
	struct reason ignored;

	if (kind == WORD_NUMBER)
		return parse_numbers(word, &first, &last) ? last - first + 1 : 1;
	if (list_range_parse(word, &range, &ignored))
		return 1;
	while (list_range_next(&range, &address, &length))
		count++;
	return count;
}

int list_take(struct list *list, const struct list_row *row)
{
	/* cppcheck-suppress ctuuninitvar ; rule_split() sets the count */
	struct taking taking = { .list = list, .count = row->count, .is_permanent = row->is_permanent };
	enum word_kind kind;
	bool may_have_range = false;
	__u64 rules = 1;

	memcpy(taking.words, row->words, row->count * sizeof(*row->words));
	for (size_t i = 0; i < row->count && !may_have_range; i++)
		may_have_range = strchr(row->words[i], '-');
	if (!may_have_range)
		return take_rule(&taking);
	/* The product of several ranges may overflow. */
	for (size_t at = 0; (kind = find_range(&taking, &at)) != WORD_PLAIN; at++)
		if (__builtin_mul_overflow(rules, count_values(taking.words[at], kind), &rules))
			rules = ~0ULL;
	if (rules > LIST_RULES_MAX)
		return list_refuse(list, "its ranges mean %llu rules; one line may have at most %d: name fewer ports",
				   (unsigned long long)rules, LIST_RULES_MAX);
	return take_from(&taking, 0);
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

static bool is_word(const char *line, const char *word)
{
	const size_t length = strlen(word);

	return !strncmp(line, word, length) && (line[length] == ' ' || line[length] == '\t');
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
	for (size_t i = 0; i < sizeof(ipset_words) / sizeof(ipset_words[0]); i++)
		if (is_word(line, ipset_words[i]))
			return LIST_IPSET;
	return list_is_csv_heading(line) ? LIST_CSV : LIST_TEXT;
}

/* Uses the first line that shows the format. The reader will return it again. */
static int detect(struct list *list)
{
	int got;

	if (list->format)
		return 0;
	while (!list->format && (got = list_next(list, reader_line)) > 0)
		list->format = format_of(list->reader.line);
	/* The one line of nft may be longer than the reader takes. */
	if (got == -EMSGSIZE && format_of(list->reader.line) == LIST_NFT)
		list->format = LIST_NFT;
	if (!list->format)
		return got;
	reader_keep(&list->reader);
	return 0;
}

int list_read(struct list *list)
{
	int error = detect(list);

	/* An empty list has no format. */
	if (error || !list->format)
		return error;
	return formats[list->format].read(list);
}
