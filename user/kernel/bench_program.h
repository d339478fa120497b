/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loads and runs the program of bpf/bench.bpf.c over the maps of a filter that no packet meets. Does not
 * know what the flows and the time stamps mean.
 */
#ifndef XDP_CUCKOO_BENCH_PROGRAM_H
#define XDP_CUCKOO_BENCH_PROGRAM_H

#include "bench_abi.h"
#include "kernel/kernel.h"

struct bpf_object;

struct kernel_bench {
	struct bpf_object *object;
	/* Shared with the program. The caller fills in BENCH_FLOWS flows; a frame's ethertype chooses. */
	struct bench_flow_ipv4 *ipv4;
	struct bench_flow_ipv6 *ipv6;
	__u64 *stamps; /* BENCH_SLICES for each worker */
};

/* Bytes of kernel memory that kernel_bench_open() takes. */
__u64 kernel_bench_bytes(unsigned int workers);

/* `filter` must not be running: its counters change. On failure *bench is zeroed. 0 or -errno. */
int kernel_bench_open(const struct kernel_filter *filter, unsigned int workers, struct kernel_bench *bench,
		      struct reason *reason);
void kernel_bench_close(struct kernel_bench *bench);

/*
 * Runs the program `packets` times on `frame`. The frame starts with a struct bench_head and keeps what the
 * last run wrote. *ns (may be NULL): time per packet, rounded down. Threads may call this at the same time,
 * each with its own frame and its own worker number. 0; -EPROTO: the program did not find its flows;
 * other -errno.
 */
int kernel_bench_run(const struct kernel_bench *bench, void *frame, size_t bytes, __u32 packets, __u32 *ns,
		     struct reason *reason);

#endif
