/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Samples of dropped packets for a listener, and of packets to count by rule. So a flood costs little. */
#ifndef XDP_CUCKOO_SAMPLE_H
#define XDP_CUCKOO_SAMPLE_H

#include <linux/types.h>

/*
 * A listener (`xdp-cuckoo monitor`) gets samples of packets that are dropped, or would be without monitor-only.
 * While its lease lasts, one in `sample_every` of these packets goes into the ring, but at most sample_credit /
 * ABI_SAMPLE_PRICE per jiffy and CPU.
 *
 * The lease is one word, abi_config.listener. The low half is the tick at which the lease ends. The high half is the
 * random number of the listener. The listener extends its lease again and again. If it dies, the first packet that
 * is dropped after the end of the lease clears the word.
 */
#define ABI_SAMPLE_BYTES 256           /* the most bytes of a frame in a sample */
#define ABI_SAMPLES_BYTES (256 * 1024) /* of the ring */
#define ABI_SAMPLE_PRICE 65536
#define ABI_SAMPLE_BURST 256 /* a CPU saves the credit of this many jiffies, but at least for one sample */
#define ABI_LISTENER_SHIFT 32

/* Marks of a sample's verdict. */
#define ABI_SAMPLE_SENT (1U << 7) /* this host sent the packet */
#define ABI_SAMPLE_IP (1U << 6)   /* it had no Ethernet header; the sample has one of zeroes */
#define ABI_SAMPLE_VERDICT (ABI_SAMPLE_IP - 1)

/* An element of the ring. */
struct abi_sample {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 ifindex;
	__u32 bytes;    /* of the frame */
	__u16 captured; /* how many bytes of the frame are in the sample */
	__u8 outcome;   /* enum abi_outcome */
	__u8 verdict;   /* VERDICT_DROP or VERDICT_WOULD_DROP, with marks */
	__u8 reserved[2];
	__u8 frame[ABI_SAMPLE_BYTES]; /* at an offset that aligns IP headers, as drivers do */
	__u8 reserved2[2];
};

/*
 * The pace at which a CPU counts packets by rule. A counted packet costs credit. While a CPU has credit for
 * as many packets as in the last jiffy, it counts every packet. Otherwise it picks one in 2^shift packets at
 * random and counts it as 2^shift packets, so that the counts are right on average.
 *
 * Without this, a flood that matches one rule would make all CPUs write to the same cache line. A flood that
 * matches many rules would make every packet write to another cache line.
 */
#define ABI_PACE_RATE 256         /* credit per jiffy: 64,000 packets per second at 250 jiffies per second */
#define ABI_PACE_BURST (1U << 14) /* the most credit that a CPU saves */

struct abi_pace {
	__u64 jiffy; /* the present one */
	__u64 random;
	__u32 packets; /* that matched a rule in this jiffy */
	__u32 credit;
	__u32 shift;
	__u32 reserved;
};

/* The only element of the per-CPU map of sampling. */
struct abi_sampling {
	struct abi_pace pace;
	__u64 seen;             /* packets that were dropped during a lease, or would have been */
	__u64 limited;          /* of these, those whose sample was not sent for lack of credit */
	__u64 lost;             /* of these, those whose sample was not sent because the ring was full */
	__u64 credit, refilled; /* `refilled`: the jiffy in which `credit` was computed */
};

_Static_assert(sizeof(struct abi_sample) == 24 + ABI_SAMPLE_BYTES, "sample layout");
_Static_assert(sizeof(struct abi_sampling) == 72, "sampling layout");

#endif
