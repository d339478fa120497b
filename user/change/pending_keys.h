/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The keys of a change, until it is complete. In plain memory. */
#ifndef XDP_CUCKOO_PENDING_KEYS_H
#define XDP_CUCKOO_PENDING_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "rule/rule.h"

/*
 * A key that is in the tables, or is an added key that the same change changes again. After the commit the store says
 * whether it stays, and until when.
 */
struct touched_key {
	struct rule_key key;
	bool has_new_end; /* of a pass rule: it gets the end before any drop key enters */
	bool is_absent;   /* an added key whose rules were deleted again: it enters no table */
};

struct pending_keys {
	/* Keys that are in no table yet: 24 bytes for IPv4, 48 for IPv6. pending_keys_next() reads them. */
	struct added_words {
		__u64 *word;
		size_t used, room; /* words */
	} added[RULE_ACTIONS][FLOW_FAMILIES];
	size_t added_count;
	struct touched_key *touched; /* in the order of touching */
	size_t touched_count, touched_room;
	bool has_new_ends; /* of any touched key */
	__u32 *place;      /* open addressing: an index into `touched` + 1, or 0 */
	size_t places;     /* a power of two */
};

/* Adds a key. 0; -ENOMEM: nothing has changed. */
int pending_keys_add(struct pending_keys *keys, const struct rule_key *key, __s64 timeout_ms);

/* An added key. Zeroed, it is before the first. */
struct added_key {
	struct rule_key key;
	__s64 timeout_ms;
	enum flow_family family;
	size_t at;
};

/* Goes to the next added key of the action: IPv4 first, each family in the order of adding. False: no key is left. */
bool pending_keys_next(const struct pending_keys *keys, enum rule_action action, struct added_key *added);

/* Touches a key, or sets has_new_end of a touched one. 0; -ENOMEM. */
int pending_keys_touch(struct pending_keys *keys, const struct rule_key *key, bool has_new_end);

/* NULL: the key is not touched. The pointer is valid until the next pending_keys_touch(). */
struct touched_key *pending_keys_touched(const struct pending_keys *keys, const struct rule_key *key);

/* Frees the memory. Accepts a zeroed struct. */
void pending_keys_close(struct pending_keys *keys);

#endif
