/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs sample, so that a flood does not make it expensive: dropped packets, for a listener, and
 * the counting of packets by rule.
 */
#ifndef XDP_CUCKOO_SAMPLE_H
#define XDP_CUCKOO_SAMPLE_H

#include <linux/types.h>

/*
 * A listener (`xdp-cuckoo monitor`) gets samples of the packets that are dropped or would be. While its lease
 * lasts, one in `sample_every` of them goes into the ring, and at most sample_credit / ABI_SAMPLE_PRICE a
 * jiffy on each CPU.
 *
 * The lease is one word, abi_config.listener. The low half is the tick at which the lease ends. The high half
 * identifies the listener, which chose the number at random. The listener extends its lease again and again.
 * If it dies, the first packet dropped after that tick clears the word.
 */
#define ABI_SAMPLE_BYTES 256           /* the most bytes of a frame in a sample */
#define ABI_SAMPLES_BYTES (256 * 1024) /* of the ring */
#define ABI_SAMPLE_PRICE 65536
#define ABI_SAMPLE_BURST 256 /* a CPU saves credit for this many jiffies, and always for one sample */
#define ABI_LISTENER_SHIFT 32

/* An element of the ring. */
struct abi_sample {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 ifindex;
	__u32 bytes;    /* of the frame */
	__u16 captured; /* how many bytes of the frame are in the sample */
	__u8 outcome;   /* enum abi_outcome */
	__u8 verdict;   /* VERDICT_DROP or VERDICT_WOULD_DROP */
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
#define ABI_PACE_RATE 256         /* credit a jiffy: 64,000 packets a second at 250 jiffies a second */
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
	__u64 seen;             /* packets that were dropped, or would be, during a lease */
	__u64 limited;          /* of these, chosen for a sample without enough credit */
	__u64 lost;             /* of these, chosen for a sample when the ring was full */
	__u64 credit, refilled; /* `refilled`: the jiffy in which `credit` was computed */
};

_Static_assert(sizeof(struct abi_sample) == 24 + ABI_SAMPLE_BYTES, "sample layout");
_Static_assert(sizeof(struct abi_sampling) == 72, "sampling layout");

#endif
