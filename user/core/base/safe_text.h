/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Makes foreign text safe to print: no control characters, valid UTF-8. */
#ifndef XDP_CUCKOO_SAFE_TEXT_H
#define XDP_CUCKOO_SAFE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a control character starts at `c`: of ASCII, or U+0080 to U+009F, which terminals obey too. */
bool text_is_control(const char *c);

/* Whether a text ends within `room` bytes, is UTF-8 and has no control character. */
bool text_is_safe(const char *text, size_t room);

/* Replaces each byte of a control character, and of one that changes the direction of text, by '?'. */
void text_clean(char *text);

/* Appends to a text in `room` bytes, cut to fit. */
__attribute__((format(printf, 3, 4))) void text_append(char *text, size_t room, const char *format, ...);

/* The text after a byte order mark, which some editors write at the start of a file. */
const char *text_behind_mark(const char *text);

/* The length of the UTF-8 character at `c` (RFC 3629 section 4). 0: there is none. */
size_t text_character_bytes(const char *c);

/* Replaces each byte that belongs to no UTF-8 character by '?'. JSON must be UTF-8. */
void text_make_utf8(char *text);

#endif
