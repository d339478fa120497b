/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The text of an error. Lower layers never print: they return the text to the command, which prints it. The text is
 * one line without a full stop. It quotes the wrong word and says what to do.
 */
#ifndef XDP_CUCKOO_ERROR_REASON_H
#define XDP_CUCKOO_ERROR_REASON_H

#include <stdarg.h>

#define REASON_BYTES 2048

struct reason {
	char text[REASON_BYTES];
};

/* Sets the text, cut to fit. Control characters become '?': the quoted words may come from a list or another program. */
__attribute__((format(printf, 2, 3))) void reason_write(struct reason *reason, const char *format, ...);

/* The same, and returns `error` (0 or -errno). It is a macro so that static checkers know which value it returns. */
#define reason_set(reason, error, ...) \
	({ \
		const int reason_error __attribute__((unused)) = (error); /* first: it may be -errno */ \
		reason_write(reason, __VA_ARGS__); \
		reason_error; \
	})

/* What to do about -EBADMSG of a store. */
#define REASON_DAMAGED \
	"the store's data.mdb is damaged or has been cut short, or the disk fails; put a copy in its place, or move " \
	"it away and load the rules again"

/*
 * strerror() for a failed write, or for an error of a store. If a limit of file sizes stopped a write, or a store is
 * damaged, says what to do. `error` is -errno.
 */
const char *reason_of_write(int error);

__attribute__((format(printf, 2, 0))) void reason_print(struct reason *reason, const char *format, va_list arguments);

#endif
