// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/clock.h"

#include <errno.h>
#include <stddef.h>

__s64 clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

__s64 clock_ms(clockid_t clock)
{
	return clock_ns(clock) / 1000000;
}

double clock_seconds(void)
{
	return 1e-9 * clock_ns(CLOCK_MONOTONIC);
}

int clock_pause(__s64 ms)
{
	const struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	return ms > 0 && nanosleep(&time, NULL) ? -errno : 0;
}
