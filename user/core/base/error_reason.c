// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/error_reason.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/safe_text.h"

void reason_print(struct reason *reason, const char *format, va_list arguments)
{
	/* cppcheck-suppress ctuuninitvar ; it is written here */
	vsnprintf(reason->text, sizeof(reason->text), format, arguments);
	text_clean(reason->text);
}

const char *reason_of_write(int error)
{
	return error == -EFBIG ? "the limit of file sizes is reached; raise it (ulimit -f, LimitFSIZE= of a service)" :
	       error == -EBADMSG ? REASON_DAMAGED :
				   strerror(-error);
}

void reason_write(struct reason *reason, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	reason_print(reason, format, arguments);
	va_end(arguments);
}
