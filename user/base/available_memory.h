/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether there is memory for what is about to be asked for. */
#ifndef XDP_CUCKOO_AVAILABLE_MEMORY_H
#define XDP_CUCKOO_AVAILABLE_MEMORY_H

#include <linux/types.h>

#include "base/error_reason.h"

/* MemAvailable of this moment; 0 where the kernel does not say. */
__u64 memory_available_kib(void);

/*
 * Asked before the kernel is: an allocation of gigabytes that fails is slow and may kill others. 0; -ENOMEM,
 * with `what` needs so much, and `advice`.
 */
int memory_check(__u64 bytes, const char *what, const char *advice, struct reason *reason);

#endif
