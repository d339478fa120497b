/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What makes rules that are there equal to those that are wanted, by the fewest changes. One pass
 * over both, in order.
 */
#ifndef XDP_CUCKOO_RULE_DIFF_H
#define XDP_CUCKOO_RULE_DIFF_H

#include "rule_set.h"

/*
 * Rules that have ended are not there: they are added again where they are wanted. Else they are deleted like
 * others, since compact tables still have them, and not counted.
 */
struct rule_diff {
	struct rule_set *wanted;  /* sorted; after rule_diff_end() only what is to be added, or timed anew */
	struct rule_set obsolete; /* to be deleted before that, in order */
	size_t next, left;	  /* of `wanted`: compared from here on; to be added up to here */
	__u64 added, updated, kept, removed;
};

void rule_diff_begin(struct rule_diff *diff, struct rule_set *wanted);

/* For store_each(): the next rule that is there. 0; -ENOMEM. */
int rule_diff_visit(const struct rule *present, void *diff);

/* There are no more. rule_diff_close() leaves `wanted` alone. */
void rule_diff_end(struct rule_diff *diff);
void rule_diff_close(struct rule_diff *diff);

#endif
