// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Preloaded into a program: it sees the wall clock set by CLOCK_SHIFT_S seconds, and the time since boot by
 * BOOT_SHIFT_S. So a test needs not touch the machine's clocks. Who sleeps until a moment since boot sleeps until there
 * is a number in the file CLOCK_FILE, and then sees the time since boot ahead by so many seconds.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static time_t shift_s(const char *name)
{
	const char *text = getenv(name);

	return text ? atol(text) : 0;
}

static time_t file_s(void)
{
	const char *path = getenv("CLOCK_FILE");
	FILE *file = path ? fopen(path, "r") : NULL;
	long ahead_s = 0;

	if (file && fscanf(file, "%ld", &ahead_s) != 1)
		ahead_s = 0;
	if (file)
		fclose(file);
	return ahead_s;
}

/* libc's own, not syscall(): that, tests/fault/runtime.c may let fail, and reading a clock does not. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	int (*const libc)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
	int status = libc(clock, now);

	if (clock == CLOCK_REALTIME)
		now->tv_sec += shift_s("CLOCK_SHIFT_S");
	if (clock == CLOCK_BOOTTIME)
		now->tv_sec += shift_s("BOOT_SHIFT_S") + file_s();
	return status;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
	int (*const libc)(clockid_t, int, const struct timespec *, struct timespec *) =
		dlsym(RTLD_NEXT, "clock_nanosleep");
	const struct timespec pause = { .tv_nsec = 20000000 };

	if (clock != CLOCK_BOOTTIME || !getenv("CLOCK_FILE"))
		return libc(clock, flags, time, left);
	while (!file_s())
		libc(CLOCK_MONOTONIC, 0, &pause, NULL);
	return 0;
}

int gettimeofday(struct timeval *now, void *zone)
{
	int (*const libc)(struct timeval *, void *) = dlsym(RTLD_NEXT, "gettimeofday");
	int status = libc(now, zone);

	now->tv_sec += shift_s("CLOCK_SHIFT_S");
	return status;
}

time_t time(time_t *copy)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (copy)
		*copy = now.tv_sec;
	return now.tv_sec;
}
