// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Preloaded: before each BPF_PROG_ATTACH, by which the tool adds its program at tc, the process waits as long as the file
 * $HELD_WHILE exists. Meanwhile the file $HELD_WHILE.now exists.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/bpf.h>

#include "next_syscall.h"

long syscall(long number, ...)
{
	const char *hold = getenv("HELD_WHILE");
	long argument[SYSCALL_ARGUMENTS], result;
	char now[PATH_MAX];
	va_list arguments;

	va_start(arguments, number);
	if (number == SYS_bpf && hold && va_arg(arguments, long) == BPF_PROG_ATTACH) {
		snprintf(now, sizeof(now), "%s.now", hold);
		close(open(now, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
		while (!access(hold, F_OK))
			usleep(10000);
		unlink(now);
	}
	va_end(arguments);
	va_start(arguments, number);
	result = next_syscall(number, arguments, argument);
	va_end(arguments);
	return result;
}
