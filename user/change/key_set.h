/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A set of keys in the order of adding. In plain memory. */
#ifndef XDP_CUCKOO_KEY_SET_H
#define XDP_CUCKOO_KEY_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "rule/rule.h"

struct key_set {
	struct rule_key *key; /* `count` of them */
	size_t count, room;
	__u32 *place;  /* open addressing: an index into `key` + 1, or 0 */
	size_t places; /* a power of two */
};

/* 0, also if the set has the key already; -ENOMEM. */
int key_set_add(struct key_set *set, const struct rule_key *key);
bool key_set_has(const struct key_set *set, const struct rule_key *key);

/* Removes all keys. key_set_close() also frees the memory, and accepts a zeroed set. */
void key_set_clear(struct key_set *set);
void key_set_close(struct key_set *set);

#endif
