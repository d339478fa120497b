/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A compact list of keys with their timeouts: 24 bytes for IPv4, 48 for IPv6. In plain memory. */
#ifndef XDP_CUCKOO_KEY_LIST_H
#define XDP_CUCKOO_KEY_LIST_H

#include <stddef.h>

#include "rule/rule.h"

struct key_list {
	struct key_list_words {
		__u64 *word;
		size_t used, room; /* words */
	} of[FLOW_FAMILIES];
	size_t count; /* keys */
};

/* 0; -ENOMEM: the list is unchanged. key_list_close() accepts a zeroed list. */
int key_list_add(struct key_list *list, const struct rule_key *key, __s64 timeout_ms);
void key_list_close(struct key_list *list);

/*
 * Visits all keys, IPv4 first, each family in the order of adding. Stops when `visit` returns non-zero.
 * Returns that, or 0.
 */
int key_list_each(const struct key_list *list,
		  int (*visit)(const struct rule_key *key, __s64 timeout_ms, void *context), void *context);

#endif
