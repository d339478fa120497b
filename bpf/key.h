/* SPDX-License-Identifier: GPL-2.0-only */
/* From a packed flow and a shape to the hash that names the flow's buckets. */
#ifndef XDP_CUCKOO_KEY_H
#define XDP_CUCKOO_KEY_H

#include "abi.h"

/* `words` is a constant at every call: the loops unroll and the key stays in registers. */
FLOW_INLINE __u64 key_hash(const struct abi_config *config, const struct abi_shape *shape,
			   const struct flow_key *flow, unsigned int words)
{
	__u64 word[FLOW_KEY_WORDS_MAX];

	word[0] = (flow->word[0] & shape->mask[0]) | shape->tag;
#pragma unroll
	for (unsigned int i = 1; i < words; i++)
		word[i] = flow->word[i] & shape->mask[i];
	return siphash13(&config->key, word, words);
}

#endif
