// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Plain text, as of FireHOL: each line is a rule, an address, a prefix or a range. */
#include <arpa/inet.h>

#include "lists/internal.h"

/* The fast way for a single IPv4 address: most lines are that. */
static bool is_address(const struct list *list, struct rule *rule)
{
	*rule = (struct rule){ .family = FLOW_IPV4, .src_len = 32, .timeout_ms = list->timeout_ms };
	return inet_pton(AF_INET, list->reader.line, &rule->src.v4) == 1;
}

static int take_words(struct list *list)
{
	struct list_row row;
	struct reason reason;

	row.is_permanent = false;
	if (rule_split(list->reader.line, row.words, &row.count, &reason))
		return list_refuse(list, "%s", reason.text);
	return list_take(list, &row);
}

int list_read_text(struct list *list)
{
	int got;

	while ((got = list_next(list, reader_next)) > 0) {
		struct rule rule;
		int error = is_address(list, &rule) ? list->take(list, &rule) : take_words(list);

		if (error)
			return error;
	}
	return got;
}

void list_write_text(FILE *to, const struct rule *rule)
{
	char text[RULE_TEXT_BYTES];

	fprintf(to, "%s\n", rule_format(rule, text));
}
