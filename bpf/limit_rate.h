/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a packet is within the rates of the rules that it matches: see include/rate.h. What most packets need is
 * inline, because a call returns slowly on processors with mitigations for returns.
 */
#ifndef XDP_CUCKOO_LIMIT_RATE_H
#define XDP_CUCKOO_LIMIT_RATE_H

#include "lookup_key.h"
#include "maps.h"
#include "packet.h"
#include "rate.h"

FLOW_INLINE const struct abi_rate_line *rate_line(const struct abi_rates *rates, __u32 first_line, __u64 hash,
						  __u32 which)
{
	return &rates->line[(first_line + abi_rate_line_of(hash, which)) & (2 * ABI_RATE_LINES - 1)];
}

/*
 * Meters that agree to a packet, and that it has not paid yet. The lower half of this word is the number of the last
 * one; its credit names the one before. Then come a byte with the number of meters, and one with how many of them are
 * those of monitor rules, which come last. A packet pays if all meters agree, so what one drops costs no other one.
 */
#define RATE_COUNT_SHIFT 16
#define RATE_TRIALS_SHIFT 24
#define RATE_EXCEEDED (~0U) /* a meter does not agree */

static __always_inline __u32 rate_agreed(__u32 meters, __u32 number, struct abi_rate_credit *credit)
{
	credit->next = meters;
	return ((meters >> RATE_COUNT_SHIFT) + 1) << RATE_COUNT_SHIFT | (number & (ABI_RATES - 1));
}

struct rate_search {
	__u64 hash, bytes, packets;
	__u32 first_line, meters;
};

/* The number in a place that has the hash, or -1. Nobody changes lines that packets read. */
static __always_inline __s32 rate_number(const struct abi_rate_line *line, __u32 place, __u64 hash)
{
	if (READ_ONCE(line->hash[place]) != hash)
		return -1;
	return READ_ONCE(line->number[place]);
}

/* Place `i` of the 2 * ABI_RATE_PLACES of a hash. If the hash is there, asks its meter. Returns not 0 if all is known. */
FLOW_INLINE long rate_place(__u32 i, struct rate_search *search)
{
	const struct abi_rates *rates = maps_rates();
	const struct abi_rate *rate;
	struct abi_rate_credit *credit;
	__u32 place = i % ABI_RATE_PLACES;
	__s32 number;

	hide_from_compiler(place);
	if (!rates || place >= ABI_RATE_PLACES)
		return 1;
	number = rate_number(rate_line(rates, search->first_line, search->hash, i / ABI_RATE_PLACES), place,
			     search->hash);
	if (number < 0)
		return 0;
	number &= ABI_RATES - 1;
	rate = &rates->rate[number];
	credit = maps_rate_credit(number);
	if (!credit)
		return 1;
	if (!abi_rate_has(rate, credit, bpf_jiffies64(), abi_rate_cost(rate, search->bytes, search->packets))) {
		search->meters = RATE_EXCEEDED;
		return 1;
	}
	search->meters = rate_agreed(search->meters, number, credit);
	return 0;
}

/* Asks every meter of the hash, wherever its place is. Returns `meters` with these, or RATE_EXCEEDED. */
RARE_FUNCTION __u32 rate_search(__u32 first_line, __u64 hash, __u64 bytes, __u64 packets, __u32 meters)
{
	struct rate_search search = { hash, bytes, packets, first_line, meters };
	/* Both lines can be the same one. A meter is asked there once. */
	const __u32 places = abi_rate_line_of(hash, 0) == abi_rate_line_of(hash, 1) ? ABI_RATE_PLACES :
										      2 * ABI_RATE_PLACES;

	bpf_loop(places, rate_place, &search, 0);
	return search.meters;
}

/* The usual place of a meter: the first one of the first line. Returns -1 if it is not there, or has to be asked itself. */
static __always_inline __s64 rate_ask_first(__u32 first_line, __u64 hash, __u64 bytes, __u64 packets, __u32 meters)
{
	const struct abi_rates *rates = maps_rates();
	const struct abi_rate *rate;
	struct abi_rate_credit *credit;
	__s32 number;
	int asked;

	if (!rates)
		return -1;
	number = rate_number(rate_line(rates, first_line, hash, 0), 0, hash);
	if (number < 0 || number & ABI_RATE_SHARED)
		return -1;
	credit = maps_rate_credit(number);
	if (!credit)
		return -1;
	rate = &rates->rate[number & (ABI_RATES - 1)];
	asked = abi_rate_ask(rate, credit, bpf_jiffies64(), abi_rate_cost(rate, bytes, packets));
	if (asked < 0)
		return -1;
	if (!asked)
		return RATE_EXCEEDED;
	return rate_agreed(meters, number, credit);
}

/*
 * `first_line`: of the table that has the key. For a key without a meter returns `meters`. `is_often`: a constant; the
 * usual place is looked at without a call.
 */
static __always_inline __u32 rate_ask(packet_context *ctx, int kind, __u32 first_line, __u64 hash, __u32 meters,
				      int is_often)
{
	const __u64 bytes = packet_bytes(ctx, kind), packets = packet_count(ctx);
	const __s64 first = is_often ? rate_ask_first(first_line, hash, bytes, packets, meters) : -1;

	return first >= 0 ? (__u32)first : rate_search(first_line, hash, bytes, packets, meters);
}

struct rate_bill {
	__u64 bytes, packets;
	__u32 number, trials;
};

/* Pays the next meter, unless it is one of the trials. */
FLOW_INLINE long rate_pay_next(__u32 i, struct rate_bill *bill)
{
	const __u32 number = bill->number & (ABI_RATES - 1);
	struct abi_rate_credit *credit = maps_rate_credit(number);
	struct abi_rates *rates = maps_rates();

	if (!credit || !rates)
		return 1;
	if (i >= bill->trials)
		abi_rate_pay(&rates->rate[number], credit, bpf_jiffies64(),
			     abi_rate_cost(&rates->rate[number], bill->bytes, bill->packets));
	bill->number = credit->next;
	return 0;
}

/* Pays all meters that have agreed, but not as many of the last ones as the upper byte says. */
RARE_FUNCTION int rate_pay(packet_context *ctx, int kind, __u32 meters)
{
	struct rate_bill bill = { packet_bytes(ctx, kind), packet_count(ctx), meters, meters >> RATE_TRIALS_SHIFT };

	bpf_loop(meters >> RATE_COUNT_SHIFT & 0xff, rate_pay_next, &bill, 0);
	return 0;
}

#endif
