// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Preloaded: after each BPF_PROG_TEST_RUN, by which the tool reads the kernel's clock, the process is held up for
 * SLOW_TICK_S seconds, as on a machine that has other work.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/bpf.h>

long syscall(long number, ...)
{
	static long (*next)(long, ...);
	const char *seconds = getenv("SLOW_TICK_S");
	long argument[6], result;
	va_list arguments;

	if (!next)
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	va_start(arguments, number);
	for (int i = 0; i < 6; i++)
		argument[i] = va_arg(arguments, long);
	va_end(arguments);
	result = next(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
	if (number == SYS_bpf && argument[0] == BPF_PROG_TEST_RUN && seconds)
		sleep((unsigned int)atoi(seconds));
	return result;
}
