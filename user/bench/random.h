/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reproducible random numbers from a seed, for samples and tests: fast and uniform, but no secret. */
#ifndef XDP_CUCKOO_RANDOM_H
#define XDP_CUCKOO_RANDOM_H

#include <stdint.h>

#define RANDOM_STEP 0x9e3779b97f4a7c15ULL /* step of the state */

/* splitmix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014. */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += RANDOM_STEP;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* 0 to bound - 1. */
static inline uint64_t random_below(uint64_t *state, uint64_t bound)
{
	return (uint64_t)((unsigned __int128)random_next(state) * bound >> 64);
}

#endif
