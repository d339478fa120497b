/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Holds many rules in little memory, sorted in the order of the store. An IPv4 address or prefix takes 16 bytes, an
 * IPv6 address 27, a rule with all fields up to 52. A timeout and a rate add 8 each, a comment its length.
 */
#ifndef XDP_CUCKOO_RULE_SET_H
#define XDP_CUCKOO_RULE_SET_H

#include "rule/rule.h"

struct rule_set_entry {
	__u64 first_word; /* the first 8 bytes of the encoded rule, in big-endian order */
	__u64 at;         /* 2 * offset in `bytes`, + 1 if there is a rest; grows with each rule */
};

struct rule_set {
	struct rule_set_entry *entries;
	size_t count, room;
	__u8 *bytes;
	size_t bytes_used, bytes_room;
	bool is_unsorted; /* rule_set_add() saw a rule that is not greater than the last */
};

/* A zeroed set is empty. 0; -ENOMEM: the set is unchanged. */
int rule_set_add(struct rule_set *set, const struct rule *rule);
void rule_set_close(struct rule_set *set);

/* Frees memory that is not used now. A set has at first room for thousands of rules. */
void rule_set_fit(struct rule_set *set);

/*
 * Sorts by the encoded rule. Of rules that differ only in timeout and comment, the one added last stays.
 * Works in place.
 */
void rule_set_sort(struct rule_set *set);

/* Rule number `i`, 0 to count - 1, with timeout and comment. */
void rule_set_get(const struct rule_set *set, size_t i, struct rule *rule);

/* Compares rule number `i` with `rule`, without rate, timeout and comment: negative, 0 or positive, as strcmp(). */
int rule_set_compare(const struct rule_set *set, size_t i, const struct rule *rule);

/* The number of the rule in a sorted set; set->count: it is not there. */
size_t rule_set_find(const struct rule_set *set, const struct rule *rule);

#endif
