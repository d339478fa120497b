/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a packet exceeds the rate of the rule that it matches: see include/rate.h. What most packets need is inline,
 * because a call returns slowly on processors with mitigations for returns. The rest is a global function, because the
 * verifier checks that once. It takes no pointers, because old kernels refuse them.
 */
#ifndef XDP_CUCKOO_LIMIT_RATE_H
#define XDP_CUCKOO_LIMIT_RATE_H

#include "kernel_has.h"
#include "maps.h"
#include "packet.h"
#include "rate.h"

FLOW_INLINE const struct abi_rate_line *rate_line(const struct abi_rates *rates, __u32 first_line, __u64 hash,
						  __u32 which)
{
	return &rates->line[(first_line + abi_rate_line_of(hash, which)) & (2 * ABI_RATE_LINES - 1)];
}

/* Pays from every bucket of the hash, wherever its place is. Returns not 0 if one of them is empty. */
__attribute__((noinline)) int rate_search(__u32 first_line, __u64 hash, __u64 bytes, __u64 packets)
{
	struct abi_rates *rates = maps_rates();
	int is_exceeded = 0;

	if (!rates)
		return 0;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < 2 * ABI_RATE_PLACES; i++) {
		const struct abi_rate_line *line = rate_line(rates, first_line, hash, i / ABI_RATE_PLACES);
		const __u32 place = i % ABI_RATE_PLACES, number = READ_ONCE(line->number[place]) & (ABI_RATES - 1);
		const struct abi_rate *rate = &rates->rate[number];
		struct abi_rate_credit *credit;
		int paid;

		if (READ_ONCE(line->hash[place]) != hash)
			continue;
		credit = maps_rate_credit(number);
		paid = credit ? abi_rate_pay(rate, credit, bpf_jiffies64(), bytes, packets) : 1;
		if (paid < 0)
			paid = abi_rate_borrow(&rates->rate[number], credit, bpf_jiffies64(), bytes, packets);
		if (!paid)
			is_exceeded = 1;
	}
	return is_exceeded;
}

/*
 * `first_line`: of the table that has the key. Returns 0 for a key without a bucket. Few paths are inline, because the
 * verifier follows each of them through all further shapes. For Linux 5.10 there is none.
 */
static __always_inline int rate_is_exceeded(packet_context *ctx, int kind, __u32 first_line, __u64 hash)
{
	const __u64 bytes = packet_bytes(ctx, kind), packets = packet_count(ctx), now = bpf_jiffies64();
	const struct abi_rates *rates = KERNEL_HAS_FRAGS ? maps_rates() : NULL;

	if (rates) {
		const struct abi_rate_line *line = rate_line(rates, first_line, hash, 0);
		const __u32 number = READ_ONCE(line->number[0]);

		if (READ_ONCE(line->hash[0]) == hash && !(number & ABI_RATE_SHARED)) {
			struct abi_rate_credit *credit = maps_rate_credit(number);
			const int paid = credit ? abi_rate_pay(&rates->rate[number & (ABI_RATES - 1)], credit, now,
							       bytes, packets) :
						  -1;

			if (paid >= 0)
				return !paid;
		}
	}
	return rate_search(first_line, hash, bytes, packets);
}

#endif
