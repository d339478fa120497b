/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the operator should know of a list before it blocks: rules that are seldom meant, counted by kind. */
#ifndef XDP_CUCKOO_IMPORT_SPECIAL_H
#define XDP_CUCKOO_IMPORT_SPECIAL_H

#include "host/protected_flows.h"

#define IMPORT_SPECIALS_MAX 16

struct import_special {
	const char *what;
	__u64 count;
	char first[RULE_TEXT_BYTES];
};

struct import_specials {
	struct import_special kinds[IMPORT_SPECIALS_MAX]; /* that guard_special() has a word for */
	struct import_special blocking;                   /* of this host's own packets */
};

/* A rule of the list. An empty guard knows nothing of this host. */
void import_specials_look(struct import_specials *specials, const struct guard *guard, const struct rule *rule);

/* Says on stderr what they were. */
void import_specials_note(const struct import_specials *specials);

#endif
