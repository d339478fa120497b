/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the benchmarks of the packet path and their BPF programs agree on. */
#ifndef XDP_CUCKOO_BENCH_LOOKUP_H
#define XDP_CUCKOO_BENCH_LOOKUP_H

#include <linux/types.h>

#define LOOKUP_KEY_WORDS 2 /* of an IPv4 flow */

#define LOOKUP_SOURCES (1 << 18) /* that a list of them holds */
#define LOOKUP_SOURCES_A_LINE 16

/*
 * The sources of the packets, in host order: any of base ... base + flows - 1, or where there are no
 * `flows`, those listed, one after the other.
 */
struct lookup_parameters {
	__u32 flows, base;
};

/* A line of the cache, so that reading the list costs next to nothing. */
struct lookup_sources {
	__be32 source[LOOKUP_SOURCES_A_LINE];
};

/* The key of the LPM trie. */
struct lookup_lpm_key {
	__u32 length;
	__be32 source;
};

#endif
