/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the fewest changes that make stored rules equal to wanted rules, in one pass over both in order. */
#ifndef XDP_CUCKOO_RULE_DIFF_H
#define XDP_CUCKOO_RULE_DIFF_H

#include "rule/rule_set.h"

/*
 * A stored rule that has ended counts as absent: if it is wanted it is added again. If not, it is deleted
 * without being counted, because compact tables still hold it. A rule with several owners keeps its comment
 * and the end that other owners want.
 */
struct rule_diff {
	__u64 owner;              /* of the wanted rules, as a bit of struct rule_owners */
	bool is_alone;            /* also delete the rules of all other owners */
	__s64 near_ms;            /* ends that differ by at most this are the same; 0 after rule_diff_begin() */
	struct rule_set *wanted;  /* sorted; rule_diff_end() leaves those to add or update */
	struct rule_set obsolete; /* to delete or give up first, in order */
	size_t next, wanting;     /* in `wanted`: the next to compare; the number of those to add */
	__u64 added, updated, kept, removed;
	__u64 left; /* given up by the owner, but still wanted by others */
};

void rule_diff_begin(struct rule_diff *diff, struct rule_set *wanted, __u64 owner, bool is_alone);

/* For store_each(): compares the next stored rule. 0; -ENOMEM. */
int rule_diff_visit(const struct rule *present, void *diff);

/* Ends the comparison. rule_diff_close() does not free `wanted`. */
void rule_diff_end(struct rule_diff *diff);
void rule_diff_close(struct rule_diff *diff);

#endif
