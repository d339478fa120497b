// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "io/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool terminal_is_able(FILE *stream)
{
	const char *kind = secure_getenv("TERM");

	return kind && *kind && strcmp(kind, "dumb") && isatty(fileno(stream));
}

int terminal_columns(FILE *stream)
{
	struct winsize size;

	return ioctl(fileno(stream), TIOCGWINSZ, &size) ? 0 : size.ws_col;
}

void terminal_put(FILE *stream, enum terminal_style style, const char *text)
{
	static const char *const codes[] = {
		[TERMINAL_BOLD] = "\033[1m",
		[TERMINAL_GREEN] = "\033[32m",
		[TERMINAL_YELLOW] = "\033[33m",
		[TERMINAL_RED] = "\033[31m",
	};
	const char *refused = secure_getenv("NO_COLOR");
	const bool is_styled = style != TERMINAL_PLAIN && !(refused && *refused) && terminal_is_able(stream);

	fprintf(stream, "%s%s%s", is_styled ? codes[style] : "", text, is_styled ? "\033[0m" : "");
}
