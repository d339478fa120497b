/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of an import share; nobody else includes it. */
#ifndef XDP_CUCKOO_IMPORT_INTERNAL_H
#define XDP_CUCKOO_IMPORT_INTERNAL_H

#include "lists/import.h"

/*
 * With --replace: fills import->diff by a comparison with the whole store; NULL is an empty one. `owner` is
 * the number of the list. `session` is in a change; NULL: nothing is to be changed. -EINVAL: the import would delete too much, and --force is not given.
 */
int import_compare(struct import *import, struct session *session, struct store *store, unsigned int owner,
		   struct reason *reason);

/* Checks one rule of the list. With an empty guard, it does not look for packets of this host. */
void import_warnings_check(struct import_warnings *warnings, const struct guard *guard, const struct rule *rule);

/* Prints the warnings on stderr. */
void import_warnings_print(const struct import_warnings *warnings);

/*
 * Without --replace. In the list of the import, a drop rule takes the place of the monitor rule for the same packets,
 * and a monitor rule that of the drop rule. import_has_twin(): the rule whose place rule number `i` takes; false: the
 * files have both, or a pass rule. import_count_twin(): counts it if it is stored and the owner's; 0; -errno.
 */
bool import_has_twin(const struct import *import, size_t i, struct rule *twin);
int import_count_twin(struct import *import, struct store *store, const struct rule *twin, unsigned int owner);

/* Counts one added rule. */
void import_count_added(struct import *import, enum store_added added);

#endif
