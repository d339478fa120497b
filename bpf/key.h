/* SPDX-License-Identifier: GPL-2.0-only */
/* From a packed flow and a shape to the hash state that names the flow's buckets and tag. */
#ifndef XDP_CUCKOO_KEY_H
#define XDP_CUCKOO_KEY_H

#include "abi.h"

/* `family` is a constant at every call: the loops unroll and the key stays in registers. */
FLOW_INLINE struct siphash_state key_hash(const struct abi_config *config,
					  const struct abi_shape *shape,
					  const struct flow_key *flow, enum flow_family family)
{
	const unsigned int last = flow_key_last(family);
	__u64 word[FLOW_KEY_WORDS_MAX];

#pragma unroll
	for (unsigned int i = 0; i <= last; i++)
		word[i] = flow->word[i] & shape->mask[i];
	word[last] |= shape->tag;
	return siphash13_state(&config->key, word, flow_key_bytes(family));
}

#endif
