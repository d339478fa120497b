/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How many packets the filter of this host has dropped, for the host's status. */
#ifndef XDP_CUCKOO_HOST_DROPS_H
#define XDP_CUCKOO_HOST_DROPS_H

#include "kernel/kernel.h"

/*
 * By rules and policies, since the filter of this name was loaded. 0: no filter runs, or it cannot be read. *filters,
 * *count: see kernel_look_again().
 */
__u64 host_drops(const char *name, struct kernel_filter **filters, size_t *count);

#endif
