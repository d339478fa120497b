// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Preloaded: after each BPF_PROG_TEST_RUN, by which the tool reads the kernel's clock, the process is held up for
 * SLOW_TICK_S seconds, as on a machine that has other work.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/bpf.h>

#include "next_syscall.h"

long syscall(long number, ...)
{
	const char *seconds = getenv("SLOW_TICK_S");
	long argument[SYSCALL_ARGUMENTS], result;
	va_list arguments;

	va_start(arguments, number);
	result = next_syscall(number, arguments, argument);
	va_end(arguments);
	if (number == SYS_bpf && argument[0] == BPF_PROG_TEST_RUN && seconds)
		sleep((unsigned int)atoi(seconds));
	return result;
}
