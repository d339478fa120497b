/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which rules the keys of a running table belong to. That takes a walk through the whole store, which for millions
 * of rules takes seconds: a process of its own does it, seldom, and whoever asks goes on meanwhile.
 */
#ifndef XDP_CUCKOO_TOP_NAMES_H
#define XDP_CUCKOO_TOP_NAMES_H

#include <sys/types.h>

#include "counters/hottest_keys.h"
#include "kernel/kernel.h"
#include "rule/rule.h"

#define TOP_NAMES (4 * HITS_BEST) /* that are remembered */

struct top_name {
	__u64 tag;           /* of a key: see struct hit */
	__u8 action;         /* enum rule_action */
	unsigned int search; /* that has found it */
	char rule[RULE_TEXT_BYTES];
};

struct top_names {
	struct top_name name[TOP_NAMES];
	size_t count, next; /* next: where the next new one goes */
	unsigned int searches;
	__u64 generation;          /* of the table that they were looked up in */
	pid_t child;               /* 0: nobody is looking */
	int answers;               /* its pipe */
	__u64 asked_of;            /* the generation of what it looks at */
	double started, pause_end; /* seconds of the caller's clock: no search starts before the latter */
};

/*
 * Looks these keys up in the store of the directory, unless a search is under way or was a moment ago, or all are
 * known. `filter` is the one in whose table they are; what they are known by from before another
 * change of the store is forgotten once the search has ended.
 */
void top_names_ask(struct top_names *names, const char *dir, const struct kernel_filter *filter, const struct hit *hits,
		   size_t count, double second);

/* Takes what the search has found so far. */
void top_names_collect(struct top_names *names, double second);

/* NULL: not known yet. */
const struct top_name *top_names_find(const struct top_names *names, __u64 tag);

/* Ends a search; forgets all. `names` starts zeroed. */
void top_names_close(struct top_names *names);

#endif
