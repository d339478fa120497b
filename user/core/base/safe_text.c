// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/safe_text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Whether a control character of two bytes starts at `c`: U+0080 to U+009F in UTF-8. */
static bool is_two_bytes(const unsigned char *c)
{
	return c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0;
}

bool text_is_control(const char *c)
{
	return iscntrl((unsigned char)*c) || is_two_bytes((const unsigned char *)c);
}

/*
 * The bytes of a control character, or of a character that ends a line or changes the direction of text: U+061C,
 * U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069. 0: another character.
 */
static size_t harmful_bytes(const unsigned char *c)
{
	if (is_two_bytes(c) || (c[0] == 0xd8 && c[1] == 0x9c))
		return 2;
	if (c[0] == 0xe2 && c[1] == 0x80 && (c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae)))
		return 3;
	if (c[0] == 0xe2 && c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9)
		return 3;
	return iscntrl(c[0]) ? 1 : 0;
}

void text_clean(char *text)
{
	while (*text) {
		const size_t bytes = harmful_bytes((const unsigned char *)text);

		memset(text, '?', bytes);
		text += bytes ? bytes : 1;
	}
}

void text_append(char *text, size_t room, const char *format, ...)
{
	const size_t used = strlen(text);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text + used, room - used, format, arguments);
	va_end(arguments);
}

const char *text_behind_mark(const char *text)
{
	static const char mark[] = "\xef\xbb\xbf";
	const size_t length = sizeof(mark) - 1;

	return strncmp(text, mark, length) ? text : text + length;
}

size_t text_character_bytes(const char *text)
{
	const unsigned char *c = (const unsigned char *)text;
	size_t bytes = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;

	if (c[0] > 0xf4 || (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
	    (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f))
		return 0;
	for (size_t i = 1; i < bytes; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	return bytes;
}

bool text_is_safe(const char *text, size_t room)
{
	size_t bytes = 1;

	if (!memchr(text, '\0', room))
		return false;
	for (; *text && bytes && !text_is_control(text); text += bytes)
		bytes = text_character_bytes(text);
	return !*text;
}

void text_make_utf8(char *text)
{
	while (*text) {
		const size_t bytes = text_character_bytes(text);

		if (!bytes)
			*text = '?';
		text += bytes ? bytes : 1;
	}
}
