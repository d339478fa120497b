/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel has, for which the programs are compiled. The Makefile compiles each object twice: for Linux 5.18
 * and newer, and with LINUX_5_10 for Linux 5.10 to 5.17. user/kernel/ loads the object that the kernel accepts.
 */
#ifndef XDP_CUCKOO_KERNEL_HAS_H
#define XDP_CUCKOO_KERNEL_HAS_H

#ifdef LINUX_5_10
#define KERNEL_HAS_FRAGS 0             /* frames in several buffers, bpf_xdp_load_bytes(): Linux 5.18 */
#define KERNEL_HAS_LOOPS 0             /* bpf_loop(): Linux 5.17 */
#define KERNEL_HAS_COMPARE_AND_SWAP 0  /* Linux 5.12 */
#define KERNEL_HAS_POINTER_ARGUMENTS 0 /* of global functions: Linux 5.12 */
#else
#define KERNEL_HAS_FRAGS 1
#define KERNEL_HAS_LOOPS 1
#define KERNEL_HAS_COMPARE_AND_SWAP 1
#define KERNEL_HAS_POINTER_ARGUMENTS 1
#endif

/*
 * Begins a function with a pointer as argument that is rarely called. It is a global function if the kernel allows
 * that, because the verifier checks a global function only once. Behind libxdp's dispatcher Linux 5.10 allows not even
 * the context as such an argument.
 */
#if KERNEL_HAS_POINTER_ARGUMENTS
#define RARE_FUNCTION __attribute__((noinline))
#else
#define RARE_FUNCTION static __attribute__((noinline))
#endif

#endif
