/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counts of a store and of its lists, for a process that must survive a bad store. A child process reads the store, and only
 * the child dies or hangs if the file is cut short or the disk fails.
 */
#ifndef XDP_CUCKOO_STORE_SUMMARY_H
#define XDP_CUCKOO_STORE_SUMMARY_H

#include "counters/counters.h"
#include "lists/flow_report.h"
#include "store/store.h"

/* With more rules, what they counted is not summed: that would take too long for a scrape. */
#define STORE_SUMMARY_RULES_MAX 500000

struct store_summary {
	struct store_info info;
	struct store_lists lists;
	struct store_feeds feeds;
	struct flow_report flows[1 + STORE_LISTS_MAX]; /* of each list; see flow_report.second */
	bool has_counts; /* the filters of the name count by rule, and there are not too many rules */
	struct list_counts counts;
};

/* `name` is that of the running filters. 0; -ENOENT: there is no store; other -errno. */
int store_summary_read(const char *dir, const char *name, struct store_summary *summary, struct reason *reason);

#endif
