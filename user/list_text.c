// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Our own text, which is also FireHOL's: a rule, an address, a prefix or a range a line. */
#include "list_internal.h"

int list_read_text(struct list *list)
{
	int got;

	while ((got = list_next(list, reader_next)) > 0) {
		struct list_row row;
		struct reason reason;
		int error;

		row.is_permanent = false;
		error = rule_split(list->reader.line, row.words, &row.count, &reason);
		error = error ? list_refuse(list, "%s", reason.text) : list_take(list, &row);
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
