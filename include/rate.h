/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rates: rules that drop only what exceeds so many packets or bits a second. Each such rule has one token bucket, which
 * all processors share. In this file a bucket is always a token bucket.
 *
 * A rule's key is in the table, as that of any rule. The hash of the key leads to the bucket: it is in one of two lines
 * of struct abi_rates. So an entry can move in the table while its bucket stays. If a fingerprint of a compact table
 * matches by chance, the hash leads to no bucket, and the packet matches no rule.
 *
 * A bucket earns tokens: `refill` in each jiffy. A token is a packet or a byte. `spent` counts what packets took. Both
 * it and the earnings since boot (jiffies * refill) wrap; only their difference counts. An idle bucket saves at most
 * `burst`. A packet of any size passes if the bucket has any token. Later packets pay the debt, so the rate is exact in
 * the long run.
 *
 * A processor takes tokens in batches, and pays for packets from its own credit. Once it has found the bucket empty, it
 * does not ask again in the same jiffy. So under a flood the shared bucket is written at most about 16 times in a
 * jiffy, and never more often than packets pass. A processor that loses a race for a batch looks again, so a bucket
 * never owes more than one batch or packet.
 */
#ifndef XDP_CUCKOO_RATE_H
#define XDP_CUCKOO_RATE_H

#include <linux/types.h>

#include "flow.h"

#define ABI_RATES_MAX 1024            /* rules with a rate */
#define ABI_RATES (2 * ABI_RATES_MAX) /* buckets: while rules are exchanged, both the old and the new ones need them */
#define ABI_RATE_BITS (1ULL << 63)    /* in a rate: it is bits a second, and tokens are bytes */
#define ABI_RATE_SHIFT 20             /* tokens are fixed-point numbers with so many binary places */
#define ABI_RATE_DEBT (1ULL << 44)    /* a bucket always owes less than a batch and this */
#define ABI_RATE_TRIES 8              /* to take a batch while other processors do */
#define ABI_RATE_BATCHES 16           /* batches in a jiffy */
#define ABI_RATE_BURST_MS 100         /* an idle bucket has the tokens of so many ms, */
#define ABI_RATE_BURST_PACKETS 5      /* but at least those of so many packets */
#define ABI_RATE_BURST_BYTES (5 * 1514) /* or so many bytes */
#define ABI_RATE_LINES 1024             /* of one table; a power of two */
#define ABI_RATE_PLACES 6               /* of one line */

/* The members before `spent` change only while no line names the bucket. */
struct abi_rate {
	__u64 refill, burst, batch;   /* tokens */
	__u64 spent;                  /* tokens */
	__u64 each_byte, each_packet; /* tokens; one of the two is 0 */
	__u64 id;                     /* for the tool: a hash of the rule and its rate; 0: the bucket was never used */
	__u64 reserved;
};

/*
 * One cache line. Two rules can have the same key: one for both families, and one for IPv4 alone. Then the key's hash
 * has two places, and the number in each has ABI_RATE_SHARED.
 */
#define ABI_RATE_SHARED 0x8000

struct abi_rate_line {
	__u64 hash[ABI_RATE_PLACES];   /* of a key; 0: the place is free */
	__u16 number[ABI_RATE_PLACES]; /* of its bucket */
	__u16 reserved[2];
};

struct abi_rates {
	struct abi_rate_line line[2 * ABI_RATE_LINES]; /* of both tables: abi_table.first_rate_line */
	struct abi_rate rate[ABI_RATES];
};

/* What a processor has of a bucket: an element of a per-CPU map. */
struct abi_rate_credit {
	__u64 held;     /* tokens */
	__u64 empty_at; /* the jiffy in which the bucket was found empty */
};

/* The two lines of a hash: `which` is 0 or 1. */
FLOW_INLINE __u32 abi_rate_line_of(__u64 hash, __u32 which)
{
	return hash >> 10 * which & (ABI_RATE_LINES - 1);
}

/* Tokens for packets of so many bytes in all. No branch: a path less for the verifier. */
FLOW_INLINE __u64 abi_rate_cost(const struct abi_rate *rate, __u64 bytes, __u64 packets)
{
	return bytes * rate->each_byte + packets * rate->each_packet;
}

/* Pays from a processor's own credit, in the jiffy `now`. 1: paid; 0: the packet is above the rate; -1: borrow. */
FLOW_INLINE int abi_rate_pay(const struct abi_rate *rate, struct abi_rate_credit *credit, __u64 now, __u64 bytes,
			     __u64 packets)
{
	const __u64 held = credit->held, cost = abi_rate_cost(rate, bytes, packets);

	if (credit->empty_at == now)
		return 0;
	/* A credit of more than a batch is left from another rule that had this bucket. */
	if (held < cost || held > rate->batch)
		return -1;
	credit->held = held - cost;
	return 1;
}

/*
 * Takes a batch of tokens, or what one packet needs if that is more, and pays. 0: the bucket is empty, or too many
 * processors take from it.
 */
FLOW_INLINE int abi_rate_borrow(struct abi_rate *rate, struct abi_rate_credit *credit, __u64 now, __u64 bytes,
				__u64 packets)
{
	const __u64 batch = rate->batch, burst = rate->burst, cost = abi_rate_cost(rate, bytes, packets);
	const __u64 held = credit->held <= batch ? credit->held : 0;
	const __u64 idle = now * rate->refill - burst; /* `spent` of a full bucket */
	const __u64 grant = cost - held > batch ? cost - held : batch;

#ifdef __bpf__
#pragma clang loop unroll(disable)
#endif
	for (int i = 0; i < ABI_RATE_TRIES; i++) {
		const __u64 spent = *(volatile __u64 *)&rate->spent;
		/* A bucket that was idle for long is behind `idle`, so the difference wraps: the bucket is full. */
		const __u64 used = spent - idle > burst + batch + ABI_RATE_DEBT ? 0 : spent - idle;

		if (used >= burst) {
			credit->empty_at = now;
			return 0;
		}
		if (__sync_val_compare_and_swap(&rate->spent, spent, idle + used + grant) == spent) {
			credit->held = held + grant - cost;
			return 1;
		}
	}
	return 0;
}

_Static_assert(sizeof(struct abi_rate) == 64 && sizeof(struct abi_rate_line) == 64, "rate layout");

#endif
