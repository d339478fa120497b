/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads, each on a CPU of its own, that run slices at the same time, and the times of the slices. */
#ifndef XDP_CUCKOO_BENCH_CREW_H
#define XDP_CUCKOO_BENCH_CREW_H

#include <sched.h>

#include "kernel/bench_program.h"

#define BENCH_FRAME_BYTES_MAX 64
#define BENCH_SERIES_ROOM (1 << 20)

/* The times of slices, in ns per packet; a random sample if there are too many. */
struct bench_series {
	float *ns;    /* BENCH_SERIES_ROOM */
	__u64 slices; /* all slices, also those not in the sample */
};

/* A frame to start with, and how many packets each thread runs: whole slices, BENCH_SLICES at most. */
struct bench_shift {
	const struct kernel_bench *bench;
	__u8 frame[BENCH_FRAME_BYTES_MAX];
	size_t frame_bytes;
	__u32 packets;
};

/*
 * Runs a thread on each of `cpus`. Adds to `series`, by program, the slices that ran while all threads were
 * at work. Adds all packets to packets[program], those of the warm-up too. -errno.
 */
int bench_crew_run(const struct bench_shift *shift, const cpu_set_t *cpus, struct bench_series series[BENCH_PROGRAMS],
		   __u64 packets[BENCH_PROGRAMS + 1], struct reason *reason);

#endif
