/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the rules that the keys of a running table belong to. That takes a walk through the whole store:
 * seconds for millions of rules. A child process does it now and then, while the caller continues.
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
 * Starts a search for these keys in the store at `dir`, unless one runs or ended a moment ago, or all names
 * are known. `filter` has the keys in its table. After a change of the store, the search also makes older
 * names be forgotten.
 */
void top_names_ask(struct top_names *names, const char *dir, const struct kernel_filter *filter, const struct hit *hits,
		   size_t count, double second);

/* Takes the names that the search has found so far. */
void top_names_collect(struct top_names *names, double second);

/* NULL: not known yet. */
const struct top_name *top_names_find(const struct top_names *names, __u64 tag);

/* Ends a search and forgets all names. `names` starts zeroed. */
void top_names_close(struct top_names *names);

#endif
