/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads the clocks of clock_gettime(), and waits. */
#ifndef XDP_CUCKOO_CLOCK_H
#define XDP_CUCKOO_CLOCK_H

#include <time.h>

#include <linux/types.h>

__s64 clock_ns(clockid_t clock);
__s64 clock_ms(clockid_t clock);

/* CLOCK_MONOTONIC, for durations. */
double clock_seconds(void);

/* Waits. 0; -EINTR: a signal ended the wait. */
int clock_pause(__s64 ms);

/* The pause before the next try: twice the last one, or `first` if that was 0, but at most `most`. In any unit. */
static inline __s64 pause_longer(__s64 last, __s64 first, __s64 most)
{
	const __s64 next = last ? 2 * last : first;

	return next < most ? next : most;
}

/* A random part of the second half of a pause is left out, so that hosts do not come back all at once. */
static inline __s64 pause_spread(__s64 pause, __u64 random)
{
	return pause / 2 + random % (pause / 2 + 1);
}

#endif
