/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Converts timeouts to the kernel's ticks (abi.h), by which the packet path ends rules, and back. */
#ifndef XDP_CUCKOO_TICKS_H
#define XDP_CUCKOO_TICKS_H

#include "base/error_reason.h"

#include <linux/types.h>

/*
 * The tick at which a timeout that starts now ends; a negative timeout ended in the past. *tick is 0
 * (never) for timeout 0 and for timeouts that end after the last tick; else it is not 0. 0; -errno: the
 * kernel does not tell the tick.
 */
int ticks_at(__s64 timeout_ms, __u32 *tick, struct reason *reason);

/* The present tick, or a tick shortly before it: a tick that has certainly begun. */
int ticks_now(__u32 *tick, struct reason *reason);

/* The time that is left until a tick. */
int ticks_left(__u32 tick, __s64 *left_ms, struct reason *reason);

#endif
