// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel/ticks.h"

#include <stdbool.h>
#include <time.h>

#include "kernel/kernel.h"

/*
 * Each thread asks the kernel once. After that CLOCK_MONOTONIC tells the tick, because jiffies run with it.
 */
static _Thread_local struct {
	bool is_known;
	__u32 tick;
	double per_second, second; /* second: CLOCK_MONOTONIC just before the tick was read */
} base;

static double monotonic_second(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + 1e-9 * time.tv_nsec;
}

/* The present tick, with its fraction. */
static int now(double *tick, struct reason *reason)
{
	int error = 0;

	/* The clock first, then the tick: any delay between them makes rules end later, not earlier. */
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
 * Adds two ticks, because both the present tick and the last one may be nearly over. So a rule ends less
 * than two ticks late, but never early.
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
