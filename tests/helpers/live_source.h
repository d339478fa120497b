/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the program that sends live traffic is told before it is loaded. */
#ifndef XDP_CUCKOO_TESTS_LIVE_SOURCE_H
#define XDP_CUCKOO_TESTS_LIVE_SOURCE_H

#include <linux/types.h>

struct live_source {
	__u32 first, count; /* IPv4 sources, in host order, which take turns */
};

#endif
