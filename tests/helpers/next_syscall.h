/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For preloaded objects that have a syscall() of their own: calls the C library's one. */
#ifndef XDP_CUCKOO_NEXT_SYSCALL_H
#define XDP_CUCKOO_NEXT_SYSCALL_H

#include <dlfcn.h>
#include <stdarg.h>

#define SYSCALL_ARGUMENTS 6

/* Fills in `argument`, for callers that look at it. */
static long next_syscall(long number, va_list arguments, long argument[SYSCALL_ARGUMENTS])
{
	static long (*next)(long, ...);

	if (!next)
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	for (int i = 0; i < SYSCALL_ARGUMENTS; i++)
		argument[i] = va_arg(arguments, long);
	return next(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}

#endif
