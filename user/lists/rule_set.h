/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Many rules in little memory, to be sorted as the store sorts them: 16 bytes for an IPv4 address
 * or prefix, 27 for an IPv6 address, up to 52 for a rule of all fields, and what timeout (8) and
 * comment take. Knows rules, not where they come from.
 */
#ifndef XDP_CUCKOO_RULE_SET_H
#define XDP_CUCKOO_RULE_SET_H

#include "rule/rule.h"

struct rule_set_entry {
	__u64 head; /* the first 8 bytes of the encoded rule, as a number that sorts as they do */
	__u64 at;   /* twice the place of the rest in `bytes`, plus 1 if there is any: grows */
};

struct rule_set {
	struct rule_set_entry *entries;
	size_t count, room;
	__u8 *bytes;
	size_t bytes_used, bytes_room;
	bool is_unsorted; /* as far as rule_set_add() could see */
};

/* A zeroed set is empty. 0; -ENOMEM, then the set is as before. */
int rule_set_add(struct rule_set *set, const struct rule *rule);
void rule_set_close(struct rule_set *set);

/*
 * Sorts by encoded rule, and drops all but the last added of those that differ only in timeout and
 * comment. Needs next to no memory.
 */
void rule_set_sort(struct rule_set *set);

/* Rule number `i`, 0 to count - 1, with timeout and comment. */
void rule_set_get(const struct rule_set *set, size_t i, struct rule *rule);

/*
 * Whether rule number `i` comes before `rule` (negative), is it but for timeout and comment (0), or
 * behind.
 */
int rule_set_compare(const struct rule_set *set, size_t i, const struct rule *rule);

#endif
