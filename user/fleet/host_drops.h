/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How many packets the filter of this host has dropped, for the host's status. */
#ifndef XDP_CUCKOO_HOST_DROPS_H
#define XDP_CUCKOO_HOST_DROPS_H

#include <linux/types.h>

/* By rules and policies, since the filter of this name was loaded. 0: no filter runs, or it cannot be read. */
__u64 host_drops(const char *name);

#endif
