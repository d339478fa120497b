/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Text that others have written, such that it moves no cursor and is UTF-8. */
#ifndef XDP_CUCKOO_TEXT_H
#define XDP_CUCKOO_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a control character starts there: of ASCII, or of U+0080 to U+009F, which terminals obey as well. */
bool text_is_control(const char *c);

/* Puts '?' in the place of each byte of these. */
void text_clean(char *text);

/* The text behind a byte order mark, which some editors put in front of a file. */
const char *text_behind_mark(const char *text);

/* Bytes of the UTF-8 character at `c` (RFC 3629 section 4), 0 where there is none. */
size_t text_character_bytes(const char *c);

/* Puts '?' in the place of each byte that is of no character: JSON takes nothing else than UTF-8. */
void text_make_utf8(char *text);

#endif
