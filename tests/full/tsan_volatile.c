// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What volatile accesses are to ThreadSanitizer: the packet path reads by them what the writer changes meanwhile, as
 * BPF programs do, each a whole word at once. Counted as relaxed atomic loads, they do not race with atomic stores, and
 * do with plain ones. For --param=tsan-distinguish-volatile=1, which leaves these functions to others.
 */
#include <stdint.h>

/* The runtime's. What it loads goes nowhere: the compiler's own load follows. */
uint8_t __tsan_atomic8_load(const volatile uint8_t *at, int order);
uint16_t __tsan_atomic16_load(const volatile uint16_t *at, int order);
uint32_t __tsan_atomic32_load(const volatile uint32_t *at, int order);
uint64_t __tsan_atomic64_load(const volatile uint64_t *at, int order);

/* Stores stay plain ones: none is part of the protocol. */
#define VOLATILE(bytes, bits) \
	void __tsan_write##bytes(volatile void *at); \
	void __tsan_volatile_read##bytes(const volatile void *at); \
	void __tsan_volatile_write##bytes(volatile void *at); \
	void __tsan_volatile_read##bytes(const volatile void *at) \
	{ \
		__tsan_atomic##bits##_load(at, __ATOMIC_RELAXED); \
	} \
	void __tsan_volatile_write##bytes(volatile void *at) \
	{ \
		__tsan_write##bytes(at); \
	}

VOLATILE(1, 8)
VOLATILE(2, 16)
VOLATILE(4, 32)
VOLATILE(8, 64)
