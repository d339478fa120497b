// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Preloaded: a process writes at its end to the file $WAITS how often it waited for a grace period, by membarrier(2). */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned int waits;

long syscall(long number, ...)
{
	static long (*next)(long, ...);
	long argument[6];
	va_list arguments;

	if (!next)
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	va_start(arguments, number);
	for (int i = 0; i < 6; i++)
		argument[i] = va_arg(arguments, long);
	va_end(arguments);
	if (number == SYS_membarrier)
		__atomic_fetch_add(&waits, 1, __ATOMIC_RELAXED);
	return next(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
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
