/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Checks whether there is enough memory before a large allocation. */
#ifndef XDP_CUCKOO_AVAILABLE_MEMORY_H
#define XDP_CUCKOO_AVAILABLE_MEMORY_H

#include <linux/types.h>

#include "base/error_reason.h"

/* MemAvailable of /proc/meminfo; 0 if the kernel does not report it. */
__u64 memory_available_kib(void);

/*
 * Call this before a large allocation, because the kernel is slow to refuse it and may kill other processes. 0;
 * -ENOMEM with the reason "`what` needs ...; `advice`".
 */
int memory_check(__u64 bytes, const char *what, const char *advice, struct reason *reason);

#endif
