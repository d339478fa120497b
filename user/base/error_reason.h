/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why a function failed, in words, for the command to print: lower layers never print. The text is
 * one line without a final stop, names the offending word, and says what to do where that helps.
 */
#ifndef XDP_CUCKOO_REASON_H
#define XDP_CUCKOO_REASON_H

#include <stdarg.h>

#define REASON_BYTES 512

struct reason {
	char text[REASON_BYTES];
};

/*
 * Sets the text, cut to fit; returns `error` (0 or -errno) so that `return reason_set(...)` reads well. What a
 * list or a feeder has put into the words it quotes moves no cursor: control characters become '?'.
 */
__attribute__((format(printf, 3, 4))) int reason_set(struct reason *reason, int error, const char *format, ...);

/* What strerror() says of a write that failed with `error` (-errno), and what to do where a limit of sizes stopped it. */
const char *reason_of_write(int error);

__attribute__((format(printf, 2, 0))) void reason_print(struct reason *reason, const char *format, va_list arguments);

#endif
