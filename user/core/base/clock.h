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

#endif
