// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Preloaded: a process writes at its end to the file $WAITS how often it waited for a grace period, by membarrier(2). */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "next_syscall.h"

static unsigned int waits;

long syscall(long number, ...)
{
	long argument[SYSCALL_ARGUMENTS], result;
	va_list arguments;

	va_start(arguments, number);
	result = next_syscall(number, arguments, argument);
	va_end(arguments);
	if (number == SYS_membarrier)
		__atomic_fetch_add(&waits, 1, __ATOMIC_RELAXED);
	return result;
}

__attribute__((destructor)) static void write_waits(void)
{
	const char *path = getenv("WAITS");
	FILE *file = path ? fopen(path, "w") : NULL;

	if (!file)
		return;
	fprintf(file, "%u\n", waits);
	fclose(file);
}
