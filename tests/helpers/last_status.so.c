// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* To be preloaded: when the process ends, what /proc says of it goes to the file that $LAST_STATUS names. */
#include <stdio.h>
#include <stdlib.h>

__attribute__((destructor)) static void keep_status(void)
{
	FILE *from = fopen("/proc/self/status", "re"), *to = fopen(getenv("LAST_STATUS"), "we");
	int c;

	while (from && to && (c = getc(from)) != EOF)
		putc(c, to);
	if (to)
		fclose(to);
	if (from)
		fclose(from);
}
