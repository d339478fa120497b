/* SPDX-License-Identifier: GPL-2.0-only */
/* Counts packets by rule, at a pace that a flood cannot raise: see struct abi_pace. */
#ifndef XDP_CUCKOO_COUNT_BY_RULE_H
#define XDP_CUCKOO_COUNT_BY_RULE_H

#include "lookup_key.h"
#include "maps.h"

#define COUNT_SHIFT_MAX 16
/* Knuth's MMIX generator: TAOCP 3.3.4. Only its upper bits are random enough. */
#define COUNT_RANDOM_MULTIPLIER 6364136223846793005ULL
#define COUNT_RANDOM_STEP 1442695040888963407ULL

/* Starts a new jiffy: pays for the packets of the last jiffy and chooses the shift for the next packets. */
RARE_FUNCTION int count_begin(struct abi_pace *pace, __u64 jiffy)
{
	__u64 elapsed, counted, credit, expected;
	__u32 shift = 0;

	if (!pace)
		return 0;
	elapsed = jiffy - pace->jiffy;
	counted = pace->packets >> (pace->shift & 31);
	credit = elapsed < ABI_PACE_BURST ? pace->credit + elapsed * ABI_PACE_RATE : ABI_PACE_BURST;
	if (credit > ABI_PACE_BURST)
		credit = ABI_PACE_BURST;
	credit -= counted < credit ? counted : credit;
	/* Expect as many packets as in the last jiffy. If `pace` is older, the last jiffy had no packets. */
	expected = elapsed == 1 ? pace->packets : 0;
	if (expected > credit)
		for (; shift < COUNT_SHIFT_MAX && expected > ABI_PACE_RATE; shift++)
			expected >>= 1;
	pace->jiffy = jiffy;
	pace->packets = 0;
	pace->credit = credit;
	pace->shift = shift;
	return 0;
}

/* How many packets this packet counts as; 0: it is not counted. */
static __always_inline __u32 count_weight(struct abi_pace *pace)
{
	__u64 jiffy = bpf_jiffies64();
	__u32 shift;

	if (jiffy != pace->jiffy)
		count_begin(pace, jiffy);
	pace->packets++;
	shift = pace->shift & 31;
	if (!shift)
		return 1;
	pace->random = pace->random * COUNT_RANDOM_MULTIPLIER + COUNT_RANDOM_STEP;
	return pace->random >> (64 - shift) ? 0 : 1U << shift;
}

/*
 * Draws before the look-up whether the packet will be counted: LOOKUP_DRAWN, or LOOKUP_NO_SLOT if not. After the
 * look-up, the caller ors this into the slot for count_rule().
 */
static __always_inline __u32 count_draw(void)
{
	struct abi_sampling *sampling = maps_sampling();

	return sampling && count_weight(&sampling->pace) ? LOOKUP_DRAWN : LOOKUP_NO_SLOT;
}

/*
 * Counts a packet for the key in `slot`, or several that the kernel handles as one. Other CPUs may count for the same
 * key at the same time.
 */
static __always_inline void count_rule(__u32 slot, __u32 packets, __u64 bytes)
{
	struct abi_sampling *sampling = maps_sampling();
	struct abi_counter *counter;
	__u64 weight;

	if (!sampling)
		return;
	weight = slot & LOOKUP_DRAWN ? 1U << (sampling->pace.shift & 31) : count_weight(&sampling->pace);
	if (!weight)
		return;
	counter = maps_count_of(slot & ~LOOKUP_DRAWN);
	if (!counter)
		return;
	__sync_fetch_and_add(&counter->packets, weight * packets);
	__sync_fetch_and_add(&counter->bytes, weight * bytes);
}

#endif
