/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of an import share; nobody else includes it. */
#ifndef XDP_CUCKOO_IMPORT_INTERNAL_H
#define XDP_CUCKOO_IMPORT_INTERNAL_H

#include "lists/import.h"

/*
 * With --replace: fills import->diff by a comparison with the whole store; NULL is an empty one. `owner` is
 * the number of the list. -EINVAL: the import would delete too much, and --force is not given.
 */
int import_compare(struct import *import, struct store *store, unsigned int owner, struct reason *reason);

/* Checks one rule of the list. With an empty guard, it does not look for packets of this host. */
void import_warnings_check(struct import_warnings *warnings, const struct guard *guard, const struct rule *rule);

/* Prints the warnings on stderr. */
void import_warnings_print(const struct import_warnings *warnings);

/*
 * Without --replace. In the list of the import, a drop rule takes the place of the monitor rule for the same packets,
 * and a monitor rule that of the drop rule. import_find_twin(): the stored rule whose place rule number `i` takes. 0;
 * -ENOENT: there is none, or the file has both; other -errno.
 */
int import_find_twin(const struct import *import, struct store *store, unsigned int owner, size_t i, struct rule *twin);

/* Count one added rule, or one rule whose place another takes. */
void import_count_added(struct import *import, enum store_added added);
void import_count_twin(struct import *import, const struct rule *twin, unsigned int owner);

#endif
