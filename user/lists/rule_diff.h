/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What makes rules that are there equal to those that are wanted, by the fewest changes. One pass
 * over both, in order.
 */
#ifndef XDP_CUCKOO_RULE_DIFF_H
#define XDP_CUCKOO_RULE_DIFF_H

#include "lists/rule_set.h"

/*
 * Rules that have ended are not there: they are added again where they are wanted. Else they are deleted like
 * others, since compact tables still have them, and not counted. One that the owner shares keeps its comment, and
 * what others want of its time.
 */
struct rule_diff {
	__u64 owner;              /* of `wanted`, as a bit of struct rule_owners */
	bool is_alone;            /* rules of others alone are to go too */
	struct rule_set *wanted;  /* sorted; after rule_diff_end() only what is to be added, or timed anew */
	struct rule_set obsolete; /* to be deleted, or given up, before that, in order */
	size_t next, wanting;     /* of `wanted`: compared from here on; to be added up to here */
	__u64 added, updated, kept, removed;
	__u64 left; /* to others: given up by the owner, and still there */
};

void rule_diff_begin(struct rule_diff *diff, struct rule_set *wanted, __u64 owner, bool is_alone);

/* For store_each(): the next rule that is there. 0; -ENOMEM. */
int rule_diff_visit(const struct rule *present, void *diff);

/* There are no more. rule_diff_close() leaves `wanted` alone. */
void rule_diff_end(struct rule_diff *diff);
void rule_diff_close(struct rule_diff *diff);

#endif
