/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a packet exceeds the rate of the rule that it matches: see include/rate.h. What most packets need is inline,
 * because a call returns slowly on processors with mitigations for returns. The rest is a global function, because the
 * verifier checks that once.
 */
#ifndef XDP_CUCKOO_LIMIT_RATE_H
#define XDP_CUCKOO_LIMIT_RATE_H

#include "maps.h"
#include "packet.h"
#include "rate.h"

FLOW_INLINE const struct abi_rate_line *rate_line(const struct abi_rates *rates, __u32 first_line, __u64 hash,
						  __u32 which)
{
	return &rates->line[(first_line + abi_rate_line_of(hash, which)) & (2 * ABI_RATE_LINES - 1)];
}

struct rate_search {
	__u64 hash, bytes, packets;
	__u32 first_line;
	int is_exceeded;
};

/* Place `i` of the 2 * ABI_RATE_PLACES of a hash. If the hash is there, its bucket pays. Returns not 0 if there are no rates. */
FLOW_INLINE long rate_place(__u32 i, struct rate_search *search)
{
	struct abi_rates *rates = maps_rates();
	const struct abi_rate_line *line;
	struct abi_rate_credit *credit;
	const __u64 now = bpf_jiffies64();
	__u32 place = i % ABI_RATE_PLACES, number;
	int paid = 1;

	barrier_var(place); /* the verifier does not know what a remainder can be */
	if (!rates || place >= ABI_RATE_PLACES)
		return 1;
	line = rate_line(rates, search->first_line, search->hash, i / ABI_RATE_PLACES);
	if (READ_ONCE(line->hash[place]) != search->hash)
		return 0;
	number = READ_ONCE(line->number[place]) & (ABI_RATES - 1);
	credit = maps_rate_credit(number);
	if (credit)
		paid = abi_rate_pay(&rates->rate[number], credit, now, search->bytes, search->packets);
	if (paid < 0)
		paid = abi_rate_borrow(&rates->rate[number], credit, now, search->bytes, search->packets);
	if (!paid)
		search->is_exceeded = 1;
	return 0;
}

/* Pays from every bucket of the hash, wherever its place is. Returns not 0 if one of them is empty. */
__attribute__((noinline)) int rate_search(__u32 first_line, __u64 hash, __u64 bytes, __u64 packets)
{
	struct rate_search search = { hash, bytes, packets, first_line, 0 };
	/* Both lines can be the same one. A packet pays there once. */
	const __u32 places = abi_rate_line_of(hash, 0) == abi_rate_line_of(hash, 1) ? ABI_RATE_PLACES :
										      2 * ABI_RATE_PLACES;

	bpf_loop(places, rate_place, &search, 0);
	return search.is_exceeded;
}

/*
 * `first_line`: of the table that has the key. Returns 0 for a key without a bucket. Few paths are inline, because the
 * verifier follows each of them through all further shapes.
 */
static __always_inline int rate_is_exceeded(packet_context *ctx, int kind, __u32 first_line, __u64 hash)
{
	const __u64 bytes = packet_bytes(ctx, kind), packets = packet_count(ctx), now = bpf_jiffies64();
	const struct abi_rates *rates = maps_rates();

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
