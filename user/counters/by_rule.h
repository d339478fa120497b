/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads what the running filters of a name have counted for each rule. */
#ifndef XDP_CUCKOO_RULE_COUNTS_H
#define XDP_CUCKOO_RULE_COUNTS_H

#include "kernel/kernel.h"
#include "rule/shapes.h"
#include "table/table.h"

struct rule_counts {
	struct kernel_filter *filters;
	struct table *tables; /* for each filter; zeroed if it does not count by rule */
	size_t count;
	struct shape_list shapes; /* of the store; the caller fills this in */
};

/*
 * 0; -ENOENT: no filter of the name runs; -EOPNOTSUPP: none counts by rule; these two set no reason. Other
 * -errno. rule_counts_close() also accepts a zeroed struct, and one that failed to open.
 */
int rule_counts_open(struct rule_counts *counts, const char *name, struct reason *reason);
void rule_counts_close(struct rule_counts *counts);

/* The packets that matched a rule. A packet may count for several rules if their prefixes overlap. */
struct abi_counter rule_counts_of(const struct rule_counts *counts, const struct rule *rule);

#endif
