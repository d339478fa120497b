/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the filters that ours is compared with have in common: memory, and fields of a few bits in it.
 *
 * Each filter X is a struct with X_open() (0, -ENOMEM), X_close() (accepts a zeroed one), X_insert()
 * (0, -ENOSPC), X_contains() and, where it can, X_delete() (0, -ENOENT; only of what was inserted).
 * They take 64-bit hashes, equal for equal keys, and know nothing of keys. One thread at a time.
 */
#ifndef BASELINE_MEMORY_H
#define BASELINE_MEMORY_H

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <linux/types.h>

#define BASELINE_LINE_BYTES 64
#define BASELINE_MULTIPLIER 0x9e3779b97f4a7c15ULL

/* Zeroed, at the start of a cache line, and touched, so that no page fault is measured. */
static inline void *baseline_allocate(size_t bytes)
{
	const size_t lines = (bytes + BASELINE_LINE_BYTES - 1) / BASELINE_LINE_BYTES;
	void *memory = aligned_alloc(BASELINE_LINE_BYTES, lines * BASELINE_LINE_BYTES);

	return memory ? memset(memory, 0, lines * BASELINE_LINE_BYTES) : NULL;
}

/* A number below `count`, by the high bits of the hash. */
static inline __u64 baseline_reduce(__u64 hash, __u64 count)
{
	return (unsigned __int128)hash * count >> 64;
}

/* Fields of at most 57 bits; the memory ends 8 bytes behind the last. */
static inline __u64 baseline_get(const unsigned char *memory, __u64 bit, unsigned int width)
{
	__u64 word;

	memcpy(&word, memory + bit / 8, sizeof(word));
	return word >> bit % 8 & ((1ULL << width) - 1);
}

static inline void baseline_set(unsigned char *memory, __u64 bit, unsigned int width, __u64 value)
{
	const __u64 mask = ((1ULL << width) - 1) << bit % 8;
	__u64 word;

	memcpy(&word, memory + bit / 8, sizeof(word));
	word = (word & ~mask) | value << bit % 8;
	memcpy(memory + bit / 8, &word, sizeof(word));
}

#endif
