/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the look-up benchmark and its BPF programs agree on. */
#ifndef XDP_CUCKOO_BENCH_LOOKUP_H
#define XDP_CUCKOO_BENCH_LOOKUP_H

#include <linux/types.h>

#define LOOKUP_KEY_WORDS 2 /* of an IPv4 flow */

/* The flows that packets are made of: sources base ... base + flows - 1, in host order. */
struct lookup_parameters {
	__u32 flows, base;
};

#endif
