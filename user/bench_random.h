/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers to draw a sample by: fast, even, no secret. */
#ifndef XDP_CUCKOO_BENCH_RANDOM_H
#define XDP_CUCKOO_BENCH_RANDOM_H

#include <linux/types.h>

/* splitmix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014. */
static inline __u64 bench_random(__u64 *state)
{
	__u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* 0 to bound - 1. */
static inline __u64 bench_random_below(__u64 *state, __u64 bound)
{
	return (__u64)((unsigned __int128)bench_random(state) * bound >> 64);
}

#endif
