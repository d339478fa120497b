/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The program of bpf/bench.bpf.c: loaded over the maps of a filter that no packet meets, and run. Knows
 * neither what is in the flows nor what the stamps mean.
 */
#ifndef XDP_CUCKOO_KERNEL_BENCH_H
#define XDP_CUCKOO_KERNEL_BENCH_H

#include "bench_abi.h"
#include "kernel/kernel.h"

struct bench; /* the generated skeleton */

struct kernel_bench {
	struct bench *program;
	/* Memory that the program shares. BENCH_FLOWS flows to be filled in; a frame's ethertype chooses. */
	struct bench_flow_ipv4 *ipv4;
	struct bench_flow_ipv6 *ipv6;
	__u64 *stamps; /* BENCH_SLICES for each worker */
};

/* Bytes of kernel memory that it takes. */
__u64 kernel_bench_bytes(unsigned int workers);

/* `filter` must not be one that runs: its counters would count. On failure *bench is zeroed. -errno. */
int kernel_bench_open(const struct kernel_filter *filter, unsigned int workers, struct kernel_bench *bench,
		      struct reason *reason);
void kernel_bench_close(struct kernel_bench *bench);

/*
 * Runs the program that often on `frame`, which starts with a struct bench_head and is left as the last run
 * left it. *ns: a packet's, rounded down (may be NULL). By any number of threads at a time, each with a frame
 * and a worker's number of its own. 0; -EPROTO: the program did not find its flows; other -errno.
 */
int kernel_bench_run(const struct kernel_bench *bench, void *frame, size_t bytes, __u32 packets, __u32 *ns,
		     struct reason *reason);

#endif
