/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What sent.c and sent.bpf.c share. */
#ifndef XDP_CUCKOO_BENCH_SENT_H
#define XDP_CUCKOO_BENCH_SENT_H

#include <linux/types.h>

#define SENT_FLOWS (1 << 18) /* their entries do not stay in the caches */

struct sent_flow {
	__be32 destination, reserved;
};

#endif
