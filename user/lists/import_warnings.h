/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Warns of rules in a list that are rarely meant, before they block anything. Counts them by kind. */
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
	struct import_special kinds[IMPORT_SPECIALS_MAX]; /* for each kind that guard_special() names */
	struct import_special blocking;                   /* those that would block this host's own packets */
};

/* Checks one rule of the list. With an empty guard, it does not look for packets of this host. */
void import_specials_look(struct import_specials *specials, const struct guard *guard, const struct rule *rule);

/* Prints the warnings on stderr. */
void import_specials_note(const struct import_specials *specials);

#endif
