/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of an import share; nobody else includes it. */
#ifndef XDP_CUCKOO_IMPORT_INTERNAL_H
#define XDP_CUCKOO_IMPORT_INTERNAL_H

#include <time.h>

#include "host/protected_flows.h"
#include "lists/import.h"
#include "lists/import_warnings.h"
#include "lists/rule_diff.h"

struct import {
	const struct invocation *invocation;
	bool is_deletion;      /* of a list, by giving up all its rules */
	struct rule_set rules; /* of the list; sorted when it has been read */
	struct import_specials specials;
	struct guard guard;      /* in a dry run: to be warned of */
	const char *path;        /* of the list; "-": standard input */
	__u64 bad, steps, total; /* rules in the list, each once */
	struct rule_diff diff;   /* its numbers without --replace too */
	struct timespec start, storing;
};

/* The messages. Return the error. */
int import_store_unread(int error, struct reason *reason);
int import_no_such_list(const char *name, struct reason *reason);
int import_too_many_lists(struct reason *reason);

/*
 * With --replace: import->diff, of all that is stored, where there is a store. `owner`: whose rules those of the list are,
 * by number. -EINVAL: it would delete what it shall not.
 */
int import_compare(struct import *import, struct store *store, unsigned int owner, struct reason *reason);

/* A rule that was added, by what apply_add() says. */
void import_count_added(struct import *import, int error);

json_t *import_counts(const struct import *import);
int import_dry_run(struct import *import, json_t **answer, struct reason *reason);

#endif
