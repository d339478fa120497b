// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/ini_line.h"

#include <ctype.h>
#include <string.h>

/* Cuts white space off both ends. */
static char *trimmed(char *text)
{
	size_t length;

	while (isspace((unsigned char)*text))
		text++;
	for (length = strlen(text); length && isspace((unsigned char)text[length - 1]); length--)
		text[length - 1] = '\0';
	return text;
}

/* Where a value ends: at its end, or at a comment, which starts with ; or # after white space. */
static char *end_of_value(char *text)
{
	char *c = text;

	while (*c && !(c > text && isspace((unsigned char)c[-1]) && strchr(";#", *c)))
		c++;
	return c;
}

struct ini_line ini_line_parse(char *line)
{
	char *start = line + strspn(line, " \t\r\n"), *end = strchr(start, ']'), *rest;

	if (!*start || strchr("#;", *start))
		return (struct ini_line){ .kind = INI_EMPTY };
	if (*start != '[') {
		end = start + strcspn(start, "=:");
		if (!*end || end_of_value(start) < end)
			return (struct ini_line){ .kind = INI_WRONG };
		*end++ = '\0';
		*end_of_value(end) = '\0';
		return (struct ini_line){ INI_KEY, trimmed(start), trimmed(end) };
	}
	if (!end)
		return (struct ini_line){ .kind = INI_OPEN };
	*end++ = '\0';
	rest = end + strspn(end, " \t\r\n");
	/* A comment needs white space before it. */
	if (rest > end && strchr("#;", *rest))
		*rest = '\0';
	return (struct ini_line){ INI_SECTION, trimmed(start + 1), trimmed(rest) };
}
