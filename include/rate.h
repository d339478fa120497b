/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rates: rules that drop only what exceeds so many packets or bits a second. Each such rule has one meter (a token bucket),
 * which all processors share.
 *
 * A rule's key is in the table, as that of any rule. The hash of the key leads to the meter: it is in one of two lines
 * of struct abi_rates. So an entry can move in the table while its meter stays. If a fingerprint of a compact table
 * matches by chance, the hash leads to no meter, and the packet matches no rule.
 *
 * A meter earns tokens: `refill` in each jiffy. A token is a packet or a byte. `spent` counts what packets took. Both
 * it and the earnings since boot (jiffies * refill) wrap; only their difference counts. An idle meter saves at most
 * `burst`. A packet of any size passes if the meter has any token. Later packets pay the debt, so the rate is exact in
 * the long run.
 *
 * A packet is first asked about, then paid for: abi_rate_has() takes nothing, abi_rate_pay() asks nothing. So if several
 * meters must agree, one that refuses costs the others nothing. Between the two, other processors may take the last
 * token: then a meter owes a batch or a packet for each of them.
 *
 * A processor takes tokens in batches, and pays for packets from its own credit. Once it has found the meter empty, it
 * does not ask again in the same jiffy. So under a flood the shared meter is written at most about 16 times in a
 * jiffy and once by each processor, and never more often than packets pass.
 */
#ifndef XDP_CUCKOO_RATE_H
#define XDP_CUCKOO_RATE_H

#include <linux/types.h>

#include "flow.h"
#include "verifier.h"

#define ABI_RATES_MAX 1024            /* rules with a rate */
#define ABI_RATES (2 * ABI_RATES_MAX) /* meters: while rules are exchanged, both the old and the new ones need them */
#define ABI_RATE_BITS (1ULL << 63)    /* in a rate: it is bits a second, and tokens are bytes */
#define ABI_RATE_SHIFT 20             /* tokens are fixed-point numbers with so many binary places */
#define ABI_RATE_DEBT (1ULL << 50)    /* a meter always owes less: 1 GiB, a large packet for each processor */
#define ABI_RATE_BATCHES 16           /* batches in a jiffy */
#define ABI_RATE_BURST_MS 100         /* an idle meter has the tokens of so many ms, */
#define ABI_RATE_BURST_PACKETS 5      /* but at least those of so many packets */
#define ABI_RATE_BURST_BYTES (5 * 1514) /* or so many bytes */
#define ABI_RATE_LINES 1024             /* of one table; a power of two */
#define ABI_RATE_PLACES 6               /* of one line */

/* The members before `spent` change only while no line names the meter. */
struct abi_rate {
	__u64 refill, burst, batch;   /* tokens */
	__u64 spent;                  /* tokens */
	__u64 each_byte, each_packet; /* tokens; one of the two is 0 */
	__u64 id;                     /* for the tool: a hash of the rule and its rate; 0: the meter was never used */
	__u64 used_at;                /* the jiffy in which `spent` changed last */
};

/*
 * One cache line. Two rules can have the same key: one for both families, and one for IPv4 alone. Then the key's hash
 * has two places, and the number in each has ABI_RATE_SHARED.
 */
#define ABI_RATE_SHARED 0x8000

struct abi_rate_line {
	__u64 hash[ABI_RATE_PLACES];   /* of a key; 0: the place is free */
	__u16 number[ABI_RATE_PLACES]; /* of its meter */
	__u16 reserved[2];
};

struct abi_rates {
	/* Those in use, at abi_table.first_rate_line, and idle ones, which only the tool uses. */
	struct abi_rate_line line[2 * ABI_RATE_LINES];
	struct abi_rate rate[ABI_RATES];
};

/* What a processor has of a meter: an element of a per-CPU map. */
struct abi_rate_credit {
	__u64 held;     /* tokens */
	__u64 empty_at; /* the jiffy in which the meter was found empty */
	__u64 next;     /* the number of the meter that agreed to the same packet before: see bpf/limit_rate.h */
};

/* The two lines of a hash: `which` is 0 or 1. */
FLOW_INLINE __u32 abi_rate_line_of(__u64 hash, __u32 which)
{
	return hash >> 10 * which & (ABI_RATE_LINES - 1);
}

/* Tokens for packets of so many bytes in all. No branch, so one path. */
FLOW_INLINE __u64 abi_rate_cost(const struct abi_rate *rate, __u64 bytes, __u64 packets)
{
	return bytes * rate->each_byte + packets * rate->each_packet;
}

/* Asks a processor's own credit, in the jiffy `now`. 1: it is enough; 0: the packet is above the rate; -1: ask the meter. */
FLOW_INLINE int abi_rate_ask(const struct abi_rate *rate, const struct abi_rate_credit *credit, __u64 now, __u64 cost)
{
	if (credit->empty_at == now)
		return 0;
	/* A credit of more than a batch is left from another rule that had this meter. */
	return credit->held < cost || credit->held > rate->batch ? -1 : 1;
}

/*
 * How many tokens a meter with this `spent` lacks to be full. It is empty from `burst` on. The difference to what it
 * has earned tells that only until the earnings of a pause come near to a wrap: after half of that a meter is full.
 */
FLOW_INLINE __u64 abi_rate_used(const struct abi_rate *rate, __u64 spent, __u64 now)
{
	const __u64 used = spent + rate->burst - now * rate->refill, used_at = READ_ONCE(rate->used_at);
	const __u64 pause = now > used_at ? now - used_at : 0;

	return used > rate->burst + ABI_RATE_DEBT || (pause >> 12) * (rate->refill >> 20) >> 30 ? 0 : used;
}

/* Whether the packet is within the rate. Takes no tokens. */
FLOW_INLINE int abi_rate_has(const struct abi_rate *rate, struct abi_rate_credit *credit, __u64 now, __u64 cost)
{
	const int asked = abi_rate_ask(rate, credit, now, cost);

	if (asked >= 0)
		return asked;
	if (abi_rate_used(rate, READ_ONCE(rate->spent), now) < rate->burst)
		return 1;
	credit->empty_at = now;
	return 0;
}

/* Pays for a packet. If the credit is too low, takes a batch from the meter, or what the packet needs if that is more. */
FLOW_INLINE void abi_rate_pay(struct abi_rate *rate, struct abi_rate_credit *credit, __u64 now, __u64 cost)
{
	const __u64 held = credit->held <= rate->batch ? credit->held : 0;
	__u64 spent, used, full, grant = cost - held;

	if (held >= cost) {
		credit->held = held - cost;
		return;
	}
	spent = READ_ONCE(rate->spent);
	used = abi_rate_used(rate, spent, now);
	full = now * rate->refill - rate->burst; /* `spent` of a full meter */
	if (used < rate->burst && grant < rate->batch)
		grant = rate->batch;
	/* A meter that was idle is behind `full`. One processor makes up for that, and all others add. */
	if (spent == full + used || __sync_val_compare_and_swap(&rate->spent, spent, full + grant) != spent)
		__sync_fetch_and_add(&rate->spent, grant);
	*(volatile __u64 *)&rate->used_at = now;
	credit->held = held + grant - cost;
}

_Static_assert(sizeof(struct abi_rate) == 64 && sizeof(struct abi_rate_line) == 64, "rate layout");

#endif
