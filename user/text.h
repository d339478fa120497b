/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Text that others have written, such that it moves no cursor. */
#ifndef XDP_CUCKOO_TEXT_H
#define XDP_CUCKOO_TEXT_H

#include <stdbool.h>

/* Whether a control character starts there: of ASCII, or of U+0080 to U+009F, which terminals obey as well. */
bool text_is_control(const char *c);

/* Puts '?' in the place of each byte of these. */
void text_clean(char *text);

#endif
