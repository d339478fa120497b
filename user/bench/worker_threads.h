/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs the program of bench on several CPUs at the same time, and collects the times of its slices. */
#ifndef XDP_CUCKOO_BENCH_WORKER_THREADS_H
#define XDP_CUCKOO_BENCH_WORKER_THREADS_H

#include <sched.h>

#include "kernel/bench_program.h"

#define BENCH_FRAME_BYTES_MAX 64
#define BENCH_SERIES_ROOM (1 << 20)

/* The times of slices, in ns per packet; a random sample if there are too many. */
struct bench_series {
	float *ns;    /* BENCH_SERIES_ROOM */
	__u64 slices; /* of all, in the sample or not */
};

struct bench_run {
	const struct kernel_bench *bench;
	__u8 frame[BENCH_FRAME_BYTES_MAX]; /* to start with */
	size_t frame_bytes;
	__u32 packets; /* of each thread: at most BENCH_SLICES whole slices */
};

/*
 * Runs a thread on each of `cpus`. Adds the slices that ran while all threads were at work to series[program], and
 * the number of all packets, also of the warm-up, to packets[program]. 0 or -errno.
 */
int bench_run_on(const cpu_set_t *cpus, const struct bench_run *run, struct bench_series series[BENCH_PROGRAMS],
		 __u64 packets[BENCH_PROGRAMS + 1], struct reason *reason);

#endif
