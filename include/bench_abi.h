/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The interface between `xdp-cuckoo bench` and its BPF program: lists of flows, and the head of a frame. For
 * every packet the program writes the next flow into the frame, then does one of the steps that bench
 * compares. The frame's head keeps the state, so that CPUs share only what the filter makes them share.
 *
 * A slice is BENCH_SLICE packets. The program reads the clock before each slice, and the clock decides what
 * the slice does. So all CPUs do the same at the same time, and a disturbance hits all steps alike. One long
 * run has many slices, because the kernel waits for a grace period at both ends of a run.
 */
#ifndef XDP_CUCKOO_BENCH_ABI_H
#define XDP_CUCKOO_BENCH_ABI_H

#include <linux/types.h>

#include "flow.h"

/* The flows of a list: a power of two, large enough that their entries do not stay in the caches. */
#define BENCH_FLOWS (1 << 18)

#define BENCH_SLICE 256        /* packets; a power of two */
#define BENCH_SLICES (1 << 14) /* the most in one run */
#define BENCH_NO_WORKER 0xffff

/* Each program does more than the one before. */
enum bench_program {
	BENCH_DROP,   /* takes the next flow, drops it */
	BENCH_PARSE,  /* parses and packs it, then counts it as OUTCOME_NOT_SET_UP */
	BENCH_FILTER, /* the filter itself */
	BENCH_PROGRAMS,
	BENCH_WARM_UP = BENCH_PROGRAMS, /* the filter, not measured: brings its table back into the caches */
};

/* A turn lasts 2^22 ns. One turn in eight drops, one parses, two warm up, and four measure the filter. */
#define BENCH_TURN_SHIFT 22
#define BENCH_TURNS 8
#define BENCH_TURNS_FILTER 6 /* with warm-up */

FLOW_INLINE enum bench_program bench_program_at(__u64 ns)
{
	const __u32 turn = (ns >> BENCH_TURN_SHIFT) % BENCH_TURNS;

	if (turn < BENCH_FILTER)
		return turn;
	return turn < BENCH_FILTER + 2 ? BENCH_WARM_UP : BENCH_FILTER;
}

/* A stamp is the time in ns at which a slice began. Its low bits say which program the slice ran. */
#define BENCH_STAMP_PROGRAM 3ULL

/* `ports`: the first four bytes after the IP header, whatever the protocol. */
struct bench_flow_ipv4 {
	__be32 src, dst;
	__u8 ports[4];
	__u8 proto;
	__u8 reserved[3];
};

struct bench_flow_ipv6 {
	union flow_addr src, dst;
	__u8 ports[4];
	__u8 proto;
	__u8 reserved[3];
};

/* Replaces the Ethernet header, whose addresses nobody reads. The ethertype chooses the list. */
struct bench_head {
	__u32 next;   /* number of the next flow; a slice starts at each multiple of BENCH_SLICE */
	__u32 slice;  /* number of the next slice */
	__u16 worker; /* whose stamps these are; BENCH_NO_WORKER: no stamps, and `program` stays */
	__u8 program; /* enum bench_program of this slice */
	__u8 reserved;
	__be16 ethertype;
} __attribute__((packed));

_Static_assert(sizeof(struct bench_flow_ipv4) == 16, "flow layout");
_Static_assert(sizeof(struct bench_flow_ipv6) == 40, "flow layout");
_Static_assert(sizeof(struct bench_head) == 14, "head layout");

#endif
