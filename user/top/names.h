/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the rules of keys in a running table. This reads the whole store, which takes seconds for millions of
 * rules. So a child process does it while the caller continues.
 */
#ifndef XDP_CUCKOO_TOP_NAMES_H
#define XDP_CUCKOO_TOP_NAMES_H

#include <sys/types.h>

#include "counters/hottest_keys.h"
#include "kernel/kernel.h"
#include "rule/rule.h"

#define TOP_NAMES (4 * HITS_BEST) /* names that are remembered */

struct top_name {
	__u64 tag;           /* of a key: see struct hit */
	__u8 action;         /* enum rule_action */
	unsigned int search; /* the number of the search that found it */
	char rule[RULE_TEXT_BYTES];
};

struct top_names {
	struct top_name name[TOP_NAMES];
	size_t count, next; /* next: index for the next new name */
	unsigned int searches;
	__u64 generation;          /* of the table when the names were found */
	pid_t child;               /* 0: no search runs */
	int answers;               /* its pipe */
	__u64 asked_of;            /* the generation that the running search looks at */
	double started, pause_end; /* by the caller's clock; no search starts before pause_end */
};

/*
 * Starts a search for the keys of `hits`, which are in the table of `filter`, in the store at `dir`. Does nothing if
 * a search runs or has just ended, or if all names are known and the store has not changed since.
 */
void top_names_ask(struct top_names *names, const char *dir, const struct kernel_filter *filter, const struct hit *hits,
		   size_t count, double second);

/* Takes the names that the search has found so far. After a change of the store, forgets all others at its end. */
void top_names_collect(struct top_names *names, double second);

/* NULL: not known yet. */
const struct top_name *top_names_find(const struct top_names *names, __u64 tag);

/* Ends a search and forgets all names. `names` starts zeroed. */
void top_names_close(struct top_names *names);

#endif
