/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The filter of this host: how many packets it has dropped, for the host's status; whether it is another one. */
#ifndef XDP_CUCKOO_HOST_DROPS_H
#define XDP_CUCKOO_HOST_DROPS_H

#include "kernel/kernel.h"

/*
 * By rules and policies, since the filter of this name was loaded. 0: no filter runs, or it cannot be read. *filters,
 * *count: see kernel_look_again().
 */
__u64 host_drops(const char *name, struct kernel_filter **filters, size_t *count);

/* The id of the filter of this name that was loaded last: later filters have a larger id. 0: no filter runs. */
__u32 host_newest_filter(const char *name, struct kernel_filter **filters, size_t *count);

#endif
