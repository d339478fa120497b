/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From a timeout to the kernel's time (abi.h), by which the packet path ends rules. */
#ifndef XDP_CUCKOO_TICKS_H
#define XDP_CUCKOO_TICKS_H

#include "base/error_reason.h"

#include <linux/types.h>

/*
 * The tick at which a timeout that starts now ends; negative: when it ended. Never 0 but for timeout 0, which
 * never ends; nor does what ends after the last tick there is. 0; -errno where the kernel does not tell.
 */
int ticks_at(__s64 timeout_ms, __u32 *tick, struct reason *reason);

/* A tick that has begun: the present one, or one shortly before. */
int ticks_now(__u32 *tick, struct reason *reason);

/* The other way round: what is left until a tick. */
int ticks_left(__u32 tick, __s64 *left_ms, struct reason *reason);

#endif
