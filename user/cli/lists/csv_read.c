// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * CSV (RFC 4180), with commas or semicolons. The first line names the columns, in any order, in upper or lower case.
 * Lines that start with # are comments.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lists/internal.h"

#define COLUMNS_MAX 512 /* of a file */
#define COLUMN_NAMES_MAX 12

/* The columns that `export` writes, in this order, and their names in other files. */
static const struct {
	const char *keyword, *names[COLUMN_NAMES_MAX];
} columns[] = {
	{ "proto", { "protocol" } },
	{ "src",
	  { "source", "src_ip", "source_ip", "ip", "ip_address", "address", "addr", "cidr", "network", "net", "prefix",
	    "range" } },
	{ "sport", { "src_port", "source_port" } },
	{ "dst", { "dest", "destination", "dst_ip", "dest_ip", "destination_ip" } },
	{ "dport", { "port", "dst_port", "dest_port", "destination_port" } },
	{ "type", { "icmp_type" } },
	{ "code", { "icmp_code" } },
	{ "flags", { "tcp_flags" } },
	{ "fragment", {} },
	{ "length", { "packet_length" } },
	{ "state", {} },
	{ "rate", { "rate_limit" } },
	{ "action", { "verdict" } },
	{ "timeout",
	  { "ttl", "expires", "expires_at", "expires_in", "expiry", "expiration", "expire", "valid_until", "until",
	    "duration", "bantime", "ban_time" } },
	{ "comment", {} },
};

/*
 * No rule can say these, and without them a rule would mean more packets, or drop what the row lets pass: a row says
 * nothing there, or that it does not apply.
 */
static const char *const foreign[] = {
	"interface", "iface", "in_interface", "out_interface", "vlan", "dscp", "tos",	 "mark",
	"not",	     "negate", "invert",	   "netmask",	    "mask", "masklen", "prefix_length", "prefix_len",
	"end_ip",    "ip_end", "last_ip",	   "ip_to",	    "range_end", "disabled", "enabled",
	"allow", "allowed", "allowlist", "allowlisted", "whitelist", "whitelisted", "is_whitelisted", "permit", "permitted",
	"trusted", "exempt", "exception", "except", "exclude", "excluded",
};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

struct csv {
	struct list_input *list;
	char separator;                    /* a comma, or a semicolon, as where a comma divides a number */
	const char *keywords[COLUMNS_MAX]; /* or a foreign name; NULL: the column is ignored */
	size_t count;
	bool needs_address; /* each row must have one */
	bool is_bad;        /* the quotes of the last record */
};

/* ---- fields ---- */

/*
 * Cuts one field off *rest, in place. Removes its quotes, or the white space around an unquoted field. NULL
 * at the end. Sets *is_bad if its quote is not closed, or text follows the closed one.
 */
static char *next_field(char **rest, char separator, bool *is_bad)
{
	char *field = *rest, *from, *to;

	if (!field)
		return NULL;
	field += strspn(field, " \t");
	from = to = strchrnul(field, separator);
	while (to > field && strchr(" \t", to[-1]))
		to--;
	if (*field == '"') {
		for (from = field + 1, to = field; *from && (*from != '"' || from[1] == '"'); *to++ = *from++)
			from += *from == '"';
		*is_bad |= !*from;
		from += *from == '"';
		from += strspn(from, " \t");
		*is_bad |= *from && *from != separator;
	}
	*rest = *from ? from + 1 : NULL;
	*to = '\0';
	return field;
}

/* Whether a quoted field is open at the end of the line. `is_open`: one is open at its start. */
static bool ends_in_quotes(const char *line, char separator, bool is_open)
{
	bool is_start = !is_open; /* of a field */

	for (; *line; line++) {
		if (is_open && *line == '"' && line[1] == '"') {
			line++;
		} else if (*line == '"' && (is_open || is_start)) {
			is_open = !is_open;
			is_start = false;
		} else if (!is_open) {
			is_start = *line == separator || (is_start && strchr(" \t", *line));
		}
	}
	return is_open;
}

/* ---- columns ---- */

/* "ipAddress" and "IP address" are ip_address, too. */
static bool is_name(const char *field, const char *name)
{
	do {
		field += strspn(field, "_- ");
		name += strspn(name, "_");
		if (tolower((unsigned char)*field) != *name)
			return false;
		name++;
	} while (*field++);
	return true;
}

static const char *keyword_of(const char *name)
{
	for (size_t i = 0; i < COLUMNS; i++) {
		if (is_name(name, columns[i].keyword))
			return columns[i].keyword;
		for (size_t k = 0; k < COLUMN_NAMES_MAX && columns[i].names[k]; k++)
			if (is_name(name, columns[i].names[k]))
				return columns[i].keyword;
	}
	return NULL;
}

static const char *foreign_of(const char *name)
{
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		if (is_name(name, foreign[i]))
			return foreign[i];
	return NULL;
}

static bool is_address(const char *keyword)
{
	return keyword && (!strcmp(keyword, "src") || !strcmp(keyword, "dst"));
}

static bool may_lack(const char *keyword)
{
	return !strcmp(keyword, "timeout") || !strcmp(keyword, "comment");
}

static bool names_a_flow(const char *keyword)
{
	return keyword && strcmp(keyword, "rate") && strcmp(keyword, "action") &&
	       !may_lack(keyword);
}

static bool is_heading(const char *line, char separator)
{
	char *copy = strdup(line), *rest = copy, *field;
	bool is_bad = false, is_heading = false;

	while (copy && (field = next_field(&rest, separator, &is_bad)))
		is_heading |= names_a_flow(keyword_of(field));
	free(copy);
	return is_heading;
}

/* As text, all behind a semicolon would be a comment, and the rules too wide. */
static char separator_of(const char *heading)
{
	return !is_heading(heading, ',') && is_heading(heading, ';') ? ';' : ',';
}

bool list_is_csv_heading(const char *line)
{
	return is_heading(line, separator_of(line));
}

/* ---- rows ---- */

static int take_record(struct csv *csv, char *rest)
{
	size_t column = 0;
	bool has_address = false;
	struct list_row row;
	char *field;

	list_row_clear(&row);
	csv->is_bad = false;
	while ((field = next_field(&rest, csv->separator, &csv->is_bad))) {
		const char *keyword;

		if (csv->is_bad)
			return list_refuse(
				csv->list,
				"a quote is not closed before the end of the list, or text follows the closing one");
		if (column == csv->count)
			return list_refuse(csv->list, "'%.40s': more fields than the heading has", field);
		keyword = csv->keywords[column++];
		if (!keyword || !*field)
			continue;
		if (foreign_of(keyword)) {
			if (!suggest_has(strcmp(keyword, "enabled") ? "any|no|false|0" : "yes|true|1", field,
					 strlen(field), false))
				return list_refuse(csv->list, "%s '%.40s': no rule can say this", keyword, field);
			continue;
		}
		/* Seconds since 1970 would be a timeout of decades. */
		if (!strcmp(keyword, "timeout") && strlen(field) > 9 && strspn(field, "0123456789") == strlen(field))
			return list_refuse(csv->list, "timeout '%.40s': write a moment as 2026-12-01T00:00Z", field);
		has_address |= is_address(keyword);
		if (!strcmp(keyword, "timeout") && !strcmp(field, "0"))
			row.is_permanent = true;
		else
			list_row_add(&row, keyword, field);
	}
	for (; column < csv->count; column++)
		if (csv->keywords[column] && !may_lack(csv->keywords[column]) &&
		    !foreign_of(csv->keywords[column]))
			return list_refuse(csv->list, "fewer fields than the heading has: no %s; is the line cut?",
					   csv->keywords[column]);
	if (csv->needs_address && !has_address)
		return list_refuse(csv->list, "no address: the row would match every source; write 0.0.0.0/0 or ::/0 "
					      "if you mean that");
	return list_take(csv->list, &row);
}

/*
 * A quoted field may contain line ends. Errors name the first line of the record. If a quote is missing, the lines behind
 * it are lost, so each counts as a bad line. None is read as a row: who fills in a field could write rules in it.
 */
static int read_long_record(struct csv *csv)
{
	struct reader *reader = &csv->list->reader;
	const __u64 first = reader->number;
	char *record = NULL;
	size_t length;
	FILE *lines = open_memstream(&record, &length);
	bool is_open = true;
	int got = 1;
	__u64 last;

	if (!lines)
		return -ENOMEM;
	fputs(reader->line, lines);
	while (is_open && (got = list_next(csv->list, reader_line)) > 0) {
		is_open = ends_in_quotes(reader->line, csv->separator, true);
		fprintf(lines, "\n%s", reader->line);
		if (ferror(lines))
			break;
	}
	if (fclose(lines) && got >= 0)
		got = -ENOMEM;
	if (got >= 0) {
		last = reader->number;
		reader->number = first;
		got = take_record(csv, record);
		while (csv->is_bad && reader->number < last) {
			reader->number++;
			list_refuse(csv->list, "it is behind the quote of line %llu", (unsigned long long)first);
		}
		reader->number = last;
	}
	free(record);
	return got;
}

int list_read_csv(struct list_input *list)
{
	struct csv csv = { .list = list };
	char ignored[128] = "", *line, *field;
	bool is_bad = false, has_flow = false, has_address = false;
	unsigned int own = 0;
	int got, error = 0;

	do {
		got = list_next(list, reader_line);
		line = list->reader.line;
	} while (got > 0 && (!*line || *line == '#'));
	if (got <= 0)
		return got;
	csv.separator = separator_of(line);
	while ((field = next_field(&line, csv.separator, &is_bad))) {
		const char *keyword = keyword_of(field), *meaning = keyword ? keyword : foreign_of(field);

		if (csv.count == COLUMNS_MAX)
			return list_refuse(list, "more than 512 columns");
		csv.keywords[csv.count++] = meaning;
		has_flow |= names_a_flow(keyword);
		has_address |= is_address(keyword);
		own += is_address(keyword) && !strcasecmp(field, keyword);
		if (!meaning && strlen(ignored) + strlen(field) + 3 < sizeof(ignored))
			sprintf(ignored + strlen(ignored), "%s%s", *ignored ? ", " : "", field);
	}
	if (*ignored)
		list_note(list, "columns that are not used: %s", ignored);
	if (!has_flow)
		return list_refuse(list, "the first line must name the columns: proto, src, sport, dst, dport, type, "
					 "code, flags, fragment, length, state, rate, action, timeout, comment; "
					 "none that names packets is there");
	/* Files of `export` have both columns, src and dst. There, two empty fields mean any address. */
	csv.needs_address = has_address && own < 2;
	while (!error && (got = list_next(list, reader_line)) > 0) {
		line = list->reader.line;
		if (*line && *line != '#')
			error = ends_in_quotes(line, csv.separator, false) ? read_long_record(&csv) :
									     take_record(&csv, line);
	}
	return error ? error : got;
}

/* ---- writing ---- */

void list_write_csv_heading(FILE *to)
{
	for (size_t i = 0; i < COLUMNS; i++)
		fprintf(to, "%s%s", i ? "," : "", columns[i].keyword);
	fputc('\n', to);
}

void list_write_csv(FILE *to, const struct rule *rule)
{
	char text[RULE_TEXT_BYTES];
	const char *words[RULE_WORDS_MAX];
	struct reason reason;
	size_t count;

	rule_format(rule, text);
	rule_split(text, words, &count, &reason);
	for (size_t i = 0; i < COLUMNS; i++) {
		if (i)
			fputc(',', to);
		for (size_t k = 0; k + 1 < count; k += 2)
			if (!strcmp(words[k], columns[i].keyword))
				/* A rule has no quotes, so none need doubling. */
				fprintf(to, strpbrk(words[k + 1], ", ") ? "\"%s\"" : "%s",
					words[k + 1] + (*words[k + 1] == '"'));
	}
	fputc('\n', to);
}
