/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All that is done for verifiers and compilers alone: README.md tells how the verifier thinks. The headers of include/
 * use this file, so it compiles for the host too.
 */
#ifndef XDP_CUCKOO_VERIFIER_H
#define XDP_CUCKOO_VERIFIER_H

#include <linux/types.h>

/* Reads memory once, here: a compiler does not read it again, or not at all, or in parts. */
#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))

/* From here on the compiler does not know what a variable holds, so it computes nothing from that earlier or again. */
#define hide_from_compiler(x) __asm__ volatile("" : "+r"(x))

/* A struct stays in memory: in registers, each path to here would write all its members again. */
#define keep_in_memory(x) __asm__ volatile("" : : "r"(&(x)) : "memory")

/* Returns the value, which the verifier does not know any more. `zero` is 0, read from a map. */
static inline __attribute__((always_inline)) __u64 hide_from_verifier(__u64 zero, __u64 value)
{
	return value ^ zero;
}

/* The same where no map is at hand: verifiers cannot follow the detour over any number that they do not know. */
static inline __attribute__((always_inline)) __u32 hide_behind(__u32 unknown, __u32 value)
{
	__u32 rest = unknown - value;

	hide_from_compiler(rest);
	return unknown - rest;
}

#ifdef __bpf__
/* Begins a function that is rarely called: the verifier checks it once, and callers keep their registers. */
#define RARE_FUNCTION __attribute__((noinline))
/* Before a loop that stays one: unrolled, it would be too many instructions. */
#define KEEP_LOOP _Pragma("clang loop unroll(disable)")
/* Before a loop of a constant number of turns that becomes none. */
#define NO_LOOP _Pragma("unroll")
#else
#define RARE_FUNCTION static inline __attribute__((always_inline))
#define KEEP_LOOP
#define NO_LOOP
#endif

#endif
