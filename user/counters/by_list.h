/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sums what the rules of each list have counted: see by_rule.h. */
#ifndef XDP_CUCKOO_BY_LIST_H
#define XDP_CUCKOO_BY_LIST_H

#include "counters/by_rule.h"
#include "store/store.h"

struct list_count {
	__u64 rules; /* that have not ended */
	struct abi_counter count;
};

/* By owner and action: the number of a list, or STORE_BY_HAND. A rule counts for each of its owners. */
struct list_counts {
	struct list_count of[1 + STORE_LISTS_MAX][RULE_ACTIONS];
};

/* Looks up every rule of the store: about a microsecond for each. 0; -errno. */
int list_counts_read(struct store *store, struct rule_counts *counts, struct list_counts *sums);

#endif
