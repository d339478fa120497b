// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Preloaded into a program: it sees the wall clock set by CLOCK_SHIFT_S seconds, and the time since boot by
 * BOOT_SHIFT_S. So a test needs not touch the machine's clocks.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static time_t shift_s(const char *name)
{
	const char *text = getenv(name);

	return text ? atol(text) : 0;
}

/* libc's own, not syscall(): that, tests/fault/runtime.c may let fail, and reading a clock does not. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	int (*const libc)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
	int status = libc(clock, now);

	if (clock == CLOCK_REALTIME)
		now->tv_sec += shift_s("CLOCK_SHIFT_S");
	if (clock == CLOCK_BOOTTIME)
		now->tv_sec += shift_s("BOOT_SHIFT_S");
	return status;
}

int gettimeofday(struct timeval *now, void *zone)
{
	int (*const libc)(struct timeval *, void *) = dlsym(RTLD_NEXT, "gettimeofday");
	int status = libc(now, zone);

	now->tv_sec += shift_s("CLOCK_SHIFT_S");
	return status;
}
