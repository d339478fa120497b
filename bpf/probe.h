/* SPDX-License-Identifier: GPL-2.0-only */
/* One look-up: two buckets, both read before either is tested, so that their cache misses overlap. */
#ifndef XDP_CUCKOO_PROBE_H
#define XDP_CUCKOO_PROBE_H

#include "maps.h"

#define PROBE_READ_ONCE(x) (*(const volatile typeof(x) *)&(x))

enum probe_result { PROBE_MISS, PROBE_HIT, PROBE_UNSETTLED };

/*
 * The writer moves an entry by copying it, incrementing the sequence, then overwriting the source.
 * So a reader that saw neither copy sees the sequence changed, and looks again. Relies on loads
 * staying in order, as on x86; elsewhere the writer waits a grace period before it overwrites.
 *
 * One try: PROBE_UNSETTLED where an entry moved meanwhile.
 */
static __always_inline enum probe_result probe_once(const struct abi_config *config, __u64 hash)
{
	struct bucket_pair pair = bucket_pair(hash, config->bucket_mask, config->step_shift);
	__u32 first = pair.first, second = pair.second;
	const __u64 *a = bpf_map_lookup_elem(&xc_buckets, &first);
	const __u64 *b = bpf_map_lookup_elem(&xc_buckets, &second);
	__u64 sequence, bucket_a, bucket_b;

	if (!a || !b)
		return PROBE_MISS;
	sequence = PROBE_READ_ONCE(config->sequence);
	bucket_a = PROBE_READ_ONCE(*a);
	bucket_b = PROBE_READ_ONCE(*b);
	if (bucket_match(bucket_a, pair.fingerprint) | bucket_match(bucket_b, pair.fingerprint))
		return PROBE_HIT;
	return PROBE_READ_ONCE(config->sequence) == sequence ? PROBE_MISS : PROBE_UNSETTLED;
}

/* The tries after the first. A global function: rare, and the verifier checks it only once. */
__noinline int probe_again(const struct abi_config *config, __u64 hash)
{
	if (!config)
		return PROBE_MISS;
	for (int i = 1; i < ABI_SEQUENCE_TRIES; i++) {
		enum probe_result result = probe_once(config, hash);

		if (result != PROBE_UNSETTLED)
			return result;
	}
	return PROBE_UNSETTLED;
}

static __always_inline enum probe_result probe(const struct abi_config *config, __u64 hash)
{
	enum probe_result result = probe_once(config, hash);

	return result == PROBE_UNSETTLED ? (enum probe_result)probe_again(config, hash) : result;
}

#endif
