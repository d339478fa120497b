// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Plain text, as FireHOL writes it: each line is a rule, an address, a prefix or a range. And Spamhaus DROP, as text,
 * "192.0.2.0/24 ; SBL123", or as JSON lines: {"cidr":"192.0.2.0/24","sblid":"SBL123","rir":...}, and one line
 * {"type":"metadata",...}. www.spamhaus.org/blocklists/do-not-route-or-peer
 * And ranges of IPv4: "NAME:192.0.2.0-192.0.2.9" of P2P lists, and "192.0.2.0 TAB 192.0.2.255 TAB 24 TAB ..." of DShield.
 */
#include <arpa/inet.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "lists/internal.h"

static int take_line(struct list_input *list, char *line)
{
	struct list_row row;
	struct reason reason;

	list_row_clear(&row);
	return rule_split(line, row.words, &row.count, &reason) ? list_refuse(list, "%s", reason.text) :
								  list_take(list, &row);
}

int list_read_text(struct list_input *list)
{
	/* Most lines are a single IPv4 address; this is the fast way for those. */
	struct rule rule = {
		.family = FLOW_IPV4,
		.src_len = 32,
		.action = list->action,
		.timeout_ms = list->timeout_ms,
		.fields = list->is_new_only && list->action != RULE_PASS ? RULE_NEW : 0,
	};
	int got, error = 0;

	while (!error && (got = list_next(list, reader_next)) > 0)
		error = inet_pton(AF_INET, list->reader.line, &rule.src.v4) == 1 ? list->take(list, &rule) :
										   take_line(list, list->reader.line);
	return error ? error : got;
}

void list_write_text(FILE *to, const struct rule *rule)
{
	char text[RULE_TEXT_BYTES];

	fprintf(to, "%s\n", rule_format(rule, text));
}

/* ---- Spamhaus ---- */

static int take_network(struct list_input *list, const char *network, const char *number)
{
	struct list_row row;

	list_row_clear(&row);
	list_row_add(&row, "src", network);
	if (number && *number)
		list_row_add(&row, "comment", number);
	return list_take(list, &row);
}

/* More words before the ; would change the meaning of the line. Such a line is refused, not read in part. */
static int read_text_line(struct list_input *list, char *line)
{
	static const char space[] = " \t\v\f\r";
	char *network = line + strspn(line, space);
	char *number = strchr(network, ';'), *rest;

	if (number)
		*number++ = '\0';
	if (!*network || *network == '#')
		return 0;
	rest = network + strcspn(network, space);
	if (rest[strspn(rest, space)] && rest[strspn(rest, space)] != '#')
		return list_refuse(list,
				   "'%.60s': a line of a Spamhaus list has only a network before its ';'; "
				   "read rules with --format text",
				   network);
	*rest = '\0';
	if (number) {
		number += strspn(number, space);
		number[strcspn(number, space)] = '\0';
	}
	return take_network(list, network, number);
}

static int read_json_line(struct list_input *list, const char *line)
{
	json_error_t error;
	json_t *object = json_loads(line, 0, &error);
	const char *network = json_string_value(json_object_get(object, "cidr"));
	const char *type = json_string_value(json_object_get(object, "type"));
	int result = 0;

	if (!object)
		result = list_refuse(list, "'%.40s': %s", line, error.text);
	else if (network)
		result = take_network(list, network, json_string_value(json_object_get(object, "sblid")));
	else if (!type || strcmp(type, "metadata"))
		result = list_refuse(list, "'%.40s': no member \"cidr\"; " LIST_NAME_JSON, line);
	json_decref(object);
	return result;
}

int list_read_spamhaus(struct list_input *list)
{
	int got, error = 0;

	while (!error && (got = list_next(list, reader_line)) > 0) {
		char *line = list->reader.line;

		error = line[strspn(line, " \t")] == '{' ? read_json_line(list, line) : read_text_line(list, line);
	}
	return error ? error : got;
}

/* ---- ranges of IPv4 ---- */

#define RANGE_BYTES (2 * INET_ADDRSTRLEN)

/* Writes the range behind the last colon: the name may have any characters. */
static bool p2p_range(const char *line, char range[RANGE_BYTES])
{
	const char *colon = strrchr(line, ':');
	char start[INET_ADDRSTRLEN], end[INET_ADDRSTRLEN];
	struct in_addr ignored;
	int length = 0;

	if (!colon || sscanf(colon, ": %15[0-9.] - %15[0-9.] %n", start, end, &length) != 2 || colon[length])
		return false;
	snprintf(range, RANGE_BYTES, "%s-%s", start, end);
	return inet_pton(AF_INET, start, &ignored) == 1 && inet_pton(AF_INET, end, &ignored) == 1;
}

/* Writes the network of the first three columns, which must agree. */
static bool dshield_range(const char *line, char range[RANGE_BYTES])
{
	char from[INET_ADDRSTRLEN], to[INET_ADDRSTRLEN];
	struct in_addr start, end;
	unsigned int bits = 0;

	if (sscanf(line, "%15[0-9.]%*[ \t]%15[0-9.]%*[ \t]%2u", from, to, &bits) != 3 || bits - 1 > 31 ||
	    inet_pton(AF_INET, from, &start) != 1 || inet_pton(AF_INET, to, &end) != 1)
		return false;
	snprintf(range, RANGE_BYTES, "%s/%u", from, bits);
	return ntohl(end.s_addr) - ntohl(start.s_addr) == ~0U >> (bits - 1) >> 1;
}

static bool is_heading(const char *line)
{
	return !strncasecmp(line, "Start\tEnd\t", 10);
}

/* A bad address, a URL and an IPv4 address written as IPv6 are odd lines of other lists rather than names. */
static bool has_name(const char *line)
{
	const size_t length = strcspn(line, " \t");
	const size_t colon = strrchr(line, ':') - line, end = length < colon ? length : colon;
	const bool is_address = strspn(line, "0123456789abcdefABCDEF.:/") >= end && strcspn(line, ".:") < end;
	char first[32];

	/* Nor is a line of a text, with a comment. */
	snprintf(first, sizeof(first), "%.*s", (int)end, line);
	return !is_address && !strstr(line, "://") && strcspn(line, "#;\"") > colon &&
	       (strchr(first, '.') || !rule_is_word(first));
}

enum list_format list_range_format(const char *line)
{
	char ignored[RANGE_BYTES];

	return p2p_range(line, ignored) && has_name(line)       ? LIST_P2P :
	       is_heading(line) || dshield_range(line, ignored) ? LIST_DSHIELD :
								  LIST_UNKNOWN;
}

int list_read_ranges(struct list_input *list)
{
	const bool is_p2p = list->format == LIST_P2P;
	char range[RANGE_BYTES];
	int got, error = 0;

	while (!error && (got = list_next(list, reader_line)) > 0) {
		const char *line = list->reader.line + strspn(list->reader.line, " \t\r");

		if (!*line || strchr("#;", *line) || (!is_p2p && is_heading(line)))
			continue;
		if (is_p2p ? p2p_range(line, range) : dshield_range(line, range)) {
			error = take_network(list, range, NULL);
		} else if (!line[strcspn(line, " \t#;")] && strpbrk(line, ".:") && list_is_rule(line)) {
			/* An odd line, even the first, costs only itself: the others may be addresses, but no words. */
			list->reader.is_kept = true;
			got = list_next(list, reader_next);
			error = got > 0 ? take_line(list, list->reader.line) : got;
		} else {
			list_refuse(list, "'%.60s': must be %s", line,
				    is_p2p ? "NAME:START-END" : "START END BITS, and these agree");
		}
	}
	return error ? error : got;
}
