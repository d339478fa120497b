/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What live_sender and its BPF program agree on, and with both whoever wants to know the sources. */
#ifndef XDP_CUCKOO_TESTS_LIVE_SENDER_H
#define XDP_CUCKOO_TESTS_LIVE_SENDER_H

#include <linux/types.h>

#define LIVE_SPACE (1U << 30) /* addresses from `first` on, of which the listed ones are some */
#define LIVE_STEP 663608941U  /* odd, near LIVE_SPACE / 1.618: any first few are spread evenly */
#define LIVE_MARK 1           /* in the identification of packets whose source is listed */

struct live_plan {
	__u32 first, count; /* the listed sources: live_address(first, 0 ... count - 1) */
	__u32 innocent_percent;
	__u32 header_sum;    /* of the IPv4 header, without identification, source and checksum */
	__u64 begin, finish; /* the packets, by their number, whose sending begins and ends the time */
};

/* Written by the program; `random` at first by who runs it, anything but 0. */
struct live_progress {
	__u64 random, sent, innocent, begin_ns, finish_ns;
};

/* The nth source, in host order: another one for each n below LIVE_SPACE, all over the space. */
static inline __u32 live_address(__u32 first, __u32 n)
{
	return first + (n * LIVE_STEP & (LIVE_SPACE - 1));
}

#endif
