// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "text.h"

#include <ctype.h>

/* In UTF-8, 0xc2 and the number itself. */
static bool is_two_bytes(const unsigned char *c)
{
	return c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0;
}

bool text_is_control(const char *c)
{
	return iscntrl((unsigned char)*c) || is_two_bytes((const unsigned char *)c);
}

void text_clean(char *text)
{
	for (char *c = text; *c; c++) {
		if (!text_is_control(c))
			continue;
		if (is_two_bytes((const unsigned char *)c))
			*c++ = '?';
		*c = '?';
	}
}
