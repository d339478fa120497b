// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "lists/set_name.h"

#include <string.h>

static const char *const keywords[] = { "proto", "src", "sport", "dst", "dport", "type", "code" };

/* A column is a keyword, and perhaps a number. */
static const char *column_of(const char *part, size_t length)
{
	while (length && part[length - 1] >= '0' && part[length - 1] <= '9')
		length--;
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		if (strlen(keywords[i]) == length && !strncmp(keywords[i], part, length))
			return keywords[i];
	return NULL;
}

/* Moves *at behind its separator. Returns the length of the part there; 0 at the end. */
static size_t next_part(const char **at, char separator)
{
	const char end[] = { separator, '\0' };

	if (**at != separator)
		return 0;
	return strcspn(++*at, end);
}

bool list_set_name_parse(const char *name, char separator, struct list_set_name *own)
{
	const char *at = name + 2;
	size_t length;

	*own = (struct list_set_name){};
	if (strncmp(name, "xc", 2))
		return false;
	length = next_part(&at, separator);
	own->is_pass = length == 4 && !strncmp(at, "pass", 4);
	if (!own->is_pass && !(length == 4 && !strncmp(at, "drop", 4)))
		return false;
	for (at += length; (length = next_part(&at, separator)); at += length) {
		const char *column = column_of(at, length);

		if (!column)
			break;
		if (own->count == LIST_SET_COLUMNS_MAX)
			return false;
		own->columns[own->count++] = column;
	}
	if (length)
		own->family = at[length - 1] == '6' ? 6 : at[length - 1] == '4' ? 4 : 0;
	return own->count > 0;
}
