// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The columns of sets of ipset and nft, and what the names of sets tell about them. */
#include <stdio.h>
#include <string.h>

#include "lists/internal.h"

bool list_columns_have(const struct list_columns *columns, const char *keyword)
{
	for (size_t i = 0; i < columns->count; i++)
		if (!strcmp(columns->keyword[i], keyword))
			return true;
	return false;
}

/* The keyword in the part of a name; a number may follow it. */
static const char *keyword_of(const char *part, size_t length)
{
	static const char *const keywords[] = { "proto", "src", "sport", "dst", "dport", "type", "code" };

	while (length && part[length - 1] >= '0' && part[length - 1] <= '9')
		length--;
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		if (strlen(keywords[i]) == length && !strncmp(keywords[i], part, length))
			return keywords[i];
	return NULL;
}

void list_columns_take_name(struct list_columns *columns, const char *name, char separator)
{
	const char start[] = { 'x', 'c', separator, '\0' }, end[] = { separator, '\0' };
	struct list_columns own = {};
	const char *part = name + 3;
	char action[16];

	if (strncmp(name, start, 3))
		return;
	snprintf(action, sizeof(action), "%.*s", (int)strcspn(part, end), part);
	part += strlen(action);
	if (rule_action_parse(action, &own.action) || *part != separator)
		return;
	for (part++;; part++) {
		const size_t length = strcspn(part, end);
		const char *keyword = keyword_of(part, length);

		if (!keyword) {
			own.family = !length ? 0 : part[length - 1] == '6' ? 6 : part[length - 1] == '4' ? 4 : 0;
			break;
		}
		if (own.count == LIST_COLUMNS_MAX)
			return;
		own.keyword[own.count++] = keyword;
		part += length;
		if (!*part)
			break;
	}
	if (own.count == columns->count)
		*columns = own;
}

const char *list_columns_format(const struct list_columns *columns, char text[LIST_COLUMNS_BYTES])
{
	*text = '\0';
	for (size_t i = 0; i < columns->count; i++)
		strcat(strcat(text, columns->keyword[i]), ", ");
	return strcat(strcat(text, "action "), rule_action_name(columns->action));
}
