/* SPDX-License-Identifier: GPL-2.0-only */
/* From a packed flow and a shape to what is hashed. */
#ifndef XDP_CUCKOO_KEY_H
#define XDP_CUCKOO_KEY_H

#include "abi.h"

/* The key stays where flow and mask are: hash_of() reads it from there, word by word. */
FLOW_INLINE struct hash_input key_input(const struct abi_table *table, const struct abi_shape *shape,
					const struct flow_key *flow, enum flow_family family)
{
	return (struct hash_input){
		.secret = &table->secret, .word = flow->word, .mask = shape->mask, .last = shape->tag, .family = family
	};
}

#endif
