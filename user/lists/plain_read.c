// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Plain text, as FireHOL writes it: each line is a rule, an address, a prefix or a range. */
#include <arpa/inet.h>

#include "lists/internal.h"

static int take_line(struct list *list, char *line)
{
	/* Most lines are a single IPv4 address; this is the fast way for those. */
	struct rule rule = {
		.family = FLOW_IPV4, .src_len = 32, .action = list->action, .timeout_ms = list->timeout_ms
	};
	struct list_row row;
	struct reason reason;

	if (inet_pton(AF_INET, line, &rule.src.v4) == 1)
		return list->take(list, &rule);
	row.is_permanent = row.is_cut = false;
	if (rule_split(line, row.words, &row.count, &reason))
		return list_refuse(list, "%s", reason.text);
	return list_take(list, &row);
}

int list_read_text(struct list *list)
{
	int got, error = 0;

	while (!error && (got = list_next(list, reader_next)) > 0)
		error = take_line(list, list->reader.line);
	return error ? error : got;
}

void list_write_text(FILE *to, const struct rule *rule)
{
	char text[RULE_TEXT_BYTES];

	fprintf(to, "%s\n", rule_format(rule, text));
}
