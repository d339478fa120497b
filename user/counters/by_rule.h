/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads how many packets of each rule the running filters of a name have counted. */
#ifndef XDP_CUCKOO_BY_RULE_H
#define XDP_CUCKOO_BY_RULE_H

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
 * 0; -ENOENT: no filter of the name runs, -EOPNOTSUPP: none counts by rule, both without a reason; other -errno.
 * rule_counts_close() accepts a zeroed struct, and a struct that failed to open.
 */
int rule_counts_open(struct rule_counts *counts, const char *name, struct reason *reason);
void rule_counts_close(struct rule_counts *counts);

/* The packets that matched a rule. If prefixes of rules overlap, a packet may count for several rules. */
struct abi_counter rule_counts_of(const struct rule_counts *counts, const struct rule *rule);

#endif
