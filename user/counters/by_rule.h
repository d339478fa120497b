/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the running filters of a name have counted for a rule. Reads, and changes nothing. */
#ifndef XDP_CUCKOO_RULE_COUNTS_H
#define XDP_CUCKOO_RULE_COUNTS_H

#include "kernel/kernel.h"
#include "rule/shapes.h"
#include "table/table.h"

struct rule_counts {
	struct kernel_filter *filters;
	struct table *tables; /* of those that count; the others' are zeroed */
	size_t count;
	struct shape_list shapes; /* of the store whose rules are counted: the caller's to fill in */
};

/*
 * Without a reason -ENOENT: no filter of the name runs; -EOPNOTSUPP: none of them counts by rule. Other -errno.
 * rule_counts_close() accepts what failed, or is zeroed.
 */
int rule_counts_open(struct rule_counts *counts, const char *name, struct reason *reason);
void rule_counts_close(struct rule_counts *counts);

/* Where prefixes of rules overlap, a packet may count for each. */
struct abi_counter rule_counts_of(const struct rule_counts *counts, const struct rule *rule);

#endif
