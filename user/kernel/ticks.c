// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel/ticks.h"

#include <stdbool.h>
#include <time.h>

#include "kernel/kernel.h"

/* The kernel is asked once by each thread; jiffies follow CLOCK_MONOTONIC. */
static _Thread_local struct {
	bool is_known;
	__u32 tick;
	double per_second, second; /* of CLOCK_MONOTONIC, before the tick was read */
} base;

static double monotonic_second(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + 1e-9 * time.tv_nsec;
}

/* The present tick with its fraction. */
static int now(double *tick, struct reason *reason)
{
	int error = 0;

	/* Before the tick: the time that passes between makes rules end late, not early. */
	if (!base.is_known) {
		base.second = monotonic_second();
		error = kernel_tick(&base.tick, &base.per_second, reason);
	}
	if (error)
		return error;
	base.is_known = true;
	*tick = base.tick + (monotonic_second() - base.second) * base.per_second;
	return 0;
}

/*
 * The present tick may be nearly over, and so may the one where it ends: two more, so that a rule ends late rather
 * than early, by less than two ticks.
 */
int ticks_at(__s64 timeout_ms, __u32 *tick, struct reason *reason)
{
	double at;
	int error;

	*tick = 0;
	if (!timeout_ms)
		return 0;
	error = now(&at, reason);
	if (error)
		return error;
	at += timeout_ms / 1000. * base.per_second + 2;
	if (at < 0xffffffff)
		*tick = at < 1 ? 1 : (__u32)at;
	return 0;
}

int ticks_now(__u32 *tick, struct reason *reason)
{
	double at;
	const int error = now(&at, reason);

	*tick = !error && at > 2 ? (__u32)(at - 2) : 0;
	return error;
}

int ticks_left(__u32 tick, __s64 *left_ms, struct reason *reason)
{
	double at;
	int error = now(&at, reason);

	if (!error)
		*left_ms = (tick - at) / base.per_second * 1000;
	return error;
}
