/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What `bench` and its BPF program agree on: lists of flows, and a frame into which the program writes the
 * next flow for every packet, before it does one of the things that are timed against each other. Where it
 * stands is kept in the frame itself: so CPUs share nothing but what the filter makes them share.
 *
 * A slice is BENCH_SLICE packets, and the clock is read before each. What a slice does follows from that
 * clock: so all CPUs do the same at the same time, and what disturbs one of the things disturbs all. One long
 * run has many slices, since the kernel waits for a grace period at both ends of each run.
 */
#ifndef XDP_CUCKOO_BENCH_ABI_H
#define XDP_CUCKOO_BENCH_ABI_H

#include <linux/types.h>

#include "flow.h"

/* Of a list; so many that their entries of a large table do not stay in the caches. A power of two. */
#define BENCH_FLOWS (1 << 18)

#define BENCH_SLICE 256        /* packets; a power of two */
#define BENCH_SLICES (1 << 14) /* of one run, at most */
#define BENCH_NO_WORKER 0xffff

/* Each does what the one before does, and more. */
enum bench_program {
	BENCH_DROP,   /* takes the next flow, drops it */
	BENCH_PARSE,  /* parses and packs it, counts it as OUTCOME_NOT_SET_UP */
	BENCH_FILTER, /* the filter itself */
	BENCH_PROGRAMS,
	BENCH_WARM_UP = BENCH_PROGRAMS, /* it too, until its table is back in the caches: not a measurement */
};

/* In turns of 2^22 ns: one of each of the others, then the filter, two to warm up and four that count. */
#define BENCH_TURN_SHIFT 22
#define BENCH_TURNS 8
#define BENCH_TURNS_FILTER 6

FLOW_INLINE enum bench_program bench_program_at(__u64 ns)
{
	const __u32 turn = (ns >> BENCH_TURN_SHIFT) % BENCH_TURNS;

	if (turn < BENCH_FILTER)
		return turn;
	return turn < BENCH_FILTER + 2 ? BENCH_WARM_UP : BENCH_FILTER;
}

/* A stamp: when a slice began, in ns, but for the low bits, which say what it did. */
#define BENCH_STAMP_PROGRAM 3ULL

/* `ports`: the first four bytes behind the IP header, whatever the protocol. */
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

/* An Ethernet header: nobody looks at the addresses. The ethertype tells which list is meant. */
struct bench_head {
	__u32 next;   /* flow; counts on, and starts a slice wherever it is a multiple of BENCH_SLICE */
	__u32 slice;  /* to come */
	__u16 worker; /* whose stamps they are; BENCH_NO_WORKER: none, and the program stays what it is */
	__u8 program; /* enum bench_program, of the present slice */
	__u8 reserved;
	__be16 ethertype;
} __attribute__((packed));

_Static_assert(sizeof(struct bench_flow_ipv4) == 16, "flow layout");
_Static_assert(sizeof(struct bench_flow_ipv6) == 40, "flow layout");
_Static_assert(sizeof(struct bench_head) == 14, "head layout");

#endif
