/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lets a test set the clocks and the boot that a store sees. A program that includes this file has its own
 * clock_gettime() and open() in place of those of the C library.
 */
#ifndef XDP_CUCKOO_TEST_CLOCK_FIXTURE_H
#define XDP_CUCKOO_TEST_CLOCK_FIXTURE_H

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/types.h>

#include "unit/store_fixture.h"

#define CLOCK_BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"
#define CLOCK_SECOND 1000LL
#define CLOCK_HOUR (3600 * CLOCK_SECOND)
#define CLOCK_DAY (24 * CLOCK_HOUR)

struct fake_clock {
	__s64 boot_ms, wall_ms;
	unsigned int boot; /* 0: it cannot be read */
};

static const struct fake_clock clock_start = { .boot_ms = 90 * CLOCK_SECOND,
					       .wall_ms = 1700000000 * CLOCK_SECOND,
					       .boot = 1 };
static struct fake_clock fake_clock;

int clock_gettime(clockid_t clock, struct timespec *time)
{
	const __s64 ms = clock == CLOCK_BOOTTIME ? fake_clock.boot_ms : fake_clock.wall_ms;

	if (clock != CLOCK_BOOTTIME && clock != CLOCK_REALTIME)
		return syscall(SYS_clock_gettime, clock, time);
	*time = (struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
	return 0;
}

static int open_boot_id(void)
{
	int fd = memfd_create("boot_id", MFD_CLOEXEC);

	if (dprintf(fd, "%08x-0000-4000-8000-000000000000\n", fake_clock.boot) < 0)
		return -1;
	lseek(fd, 0, SEEK_SET);
	return fd;
}

int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list arguments;

	va_start(arguments, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = va_arg(arguments, mode_t);
	va_end(arguments);
	if (!strcmp(path, CLOCK_BOOT_ID_PATH) && fake_clock.boot)
		return open_boot_id();
	if (!strcmp(path, CLOCK_BOOT_ID_PATH))
		path = "";
	return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* For store_each_expired() where no rule has ended. */
static inline int never(const struct rule *rule, void *context)
{
	(void)rule, (void)context;
	fail_msg("a rule that has not ended");
	return 0;
}

/* A writer that changes nothing still notes the time. */
static inline void commit_nothing(struct fixture *f)
{
	begin(f);
	end(f);
}

/* Time passes. */
static inline void clock_advance(__s64 ms)
{
	fake_clock.boot_ms += ms;
	fake_clock.wall_ms += ms;
}

/* Somebody sets the wall clock. */
static inline void clock_step(__s64 ms)
{
	fake_clock.wall_ms += ms;
}

/* The host was off for this time. */
static inline void clock_reboot(__s64 ms)
{
	fake_clock.boot_ms = 10 * CLOCK_SECOND;
	fake_clock.wall_ms += ms;
	fake_clock.boot++;
}

static inline int setup_clock(void **state)
{
	fake_clock = clock_start;
	return setup_store(state);
}

#define TIME_TEST(name) TEST_WITH(name, struct fixture *f, setup_clock, teardown)

/* For store_each_expired(). */
static inline int del_ended(const struct rule *rule, void *context)
{
	enum store_deleted ignored;

	return store_give_up(context, rule, 0, &ignored);
}

#endif
