// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What an import would change, by what is stored: found out, counted, and refused. */
#include <errno.h>
#include <string.h>

#include "lists/import_internal.h"

/* ---- refusals ---- */

int import_store_unread(int error, struct reason *reason)
{
	return reason_set(reason, error, "cannot read the store: %s", strerror(-error));
}

int import_no_such_list(const char *name, struct reason *reason)
{
	return reason_set(reason, -ESRCH, "no list '%s'; see xdp-cuckoo lists", name);
}

int import_too_many_lists(struct reason *reason)
{
	return reason_set(reason, -EUSERS, "there are %d lists already; delete one: xdp-cuckoo lists delete NAME",
			  STORE_LISTS_MAX);
}

/* Rules of lists do not go by the way. */
static int check_replace_all(const struct import *import, const struct store_lists *lists, struct reason *reason)
{
	if (import->invocation->list_name || import->invocation->is_forced)
		return 0;
	for (size_t i = 1; i <= STORE_LISTS_MAX; i++)
		if (lists->list[i].rules)
			return reason_set(reason, -EINVAL,
					  "--replace would also delete the rules of lists, as of '%s'; "
					  "nothing was changed; say --list NAME to replace one list, or --force",
					  lists->list[i].name);
	return 0;
}

/* Nor do all, by a file that has come to nothing. */
static int check_emptying(const struct import *import, struct reason *reason)
{
	const struct invocation *invocation = import->invocation;

	if (import->is_deletion || invocation->is_forced || import->total ||
	    !(import->bad || import->diff.obsolete.count))
		return 0;
	if (invocation->list_name)
		return reason_set(reason, -EINVAL,
				  "the file holds no rule, and --replace would delete all of the list "
				  "'%s'; nothing was changed; say --force, or lists delete",
				  invocation->list_name);
	return reason_set(reason, -EINVAL,
			  "the list holds no rule, and --replace would delete all; "
			  "nothing was changed; say --force, or flush");
}

/* ---- with --replace ---- */

int import_compare(struct import *import, struct store *store, unsigned int owner, struct reason *reason)
{
	struct store_lists lists = {};
	int error = store ? store_lists(store, &lists) : 0;

	if (error)
		return import_store_unread(error, reason);
	error = check_replace_all(import, &lists, reason);
	if (error)
		return error;
	rule_diff_begin(&import->diff, &import->rules, 1ULL << owner, !import->invocation->list_name);
	error = store ? store_each(store, rule_diff_visit, &import->diff) : 0;
	rule_diff_end(&import->diff);
	return error ? import_store_unread(error, reason) : check_emptying(import, reason);
}

/* ---- without ---- */

void import_count_added(struct import *import, int error)
{
	import->diff.added += !error;
	import->diff.updated += error == -EALREADY || error == -EUSERS;
	import->diff.kept += error == -EEXIST;
}

static int compare_one(struct import *import, struct store *store, unsigned int owner, size_t i)
{
	struct rule rule, present;
	int error;

	rule_set_get(&import->rules, i, &rule);
	present = rule;
	error = store ? store_get(store, &present) : -ENOENT;
	if (error && error != -ENOENT)
		return error;
	if (!error)
		error = present.owners.for_good & 1ULL << owner ? -EEXIST : -EALREADY;
	import_count_added(import, error == -ENOENT ? 0 : error);
	return 0;
}

static int compare_each(struct import *import, struct store *store, unsigned int owner, struct reason *reason)
{
	int error = 0;

	for (size_t i = 0; i < import->rules.count && !error; i++)
		error = compare_one(import, store, owner, i);
	return error ? import_store_unread(error, reason) : 0;
}

/* As whose rules they would be imported: those of a list that is not there yet have a number that nobody has. */
static int find_owner(const struct import *import, struct store *store, unsigned int *owner, struct reason *reason)
{
	const char *name = import->invocation->list_name;
	struct store_lists lists = {};
	int error = name && store ? store_lists(store, &lists) : 0;

	if (error)
		return import_store_unread(error, reason);
	*owner = name ? store_lists_find(&lists, name) : STORE_BY_HAND;
	if (*owner || !name)
		return 0;
	if (import->is_deletion)
		return import_no_such_list(name, reason);
	for (*owner = 1; *owner <= STORE_LISTS_MAX && lists.list[*owner].name[0];)
		++*owner;
	return *owner > STORE_LISTS_MAX ? import_too_many_lists(reason) : 0;
}

json_t *import_counts(const struct import *import)
{
	const struct rule_diff *diff = &import->diff;

	json_t *answer = json_pack("{s:I, s:I, s:I, s:I}", "added", (json_int_t)diff->added, "updated",
				   (json_int_t)diff->updated, "kept", (json_int_t)diff->kept, "removed",
				   (json_int_t)diff->removed);

	if (import->invocation->list_name)
		json_object_set_new(answer, "left_to_others", json_integer(diff->left));
	json_object_set_new(answer, "bad_lines", json_integer(import->bad));
	return answer;
}

int import_dry_run(struct import *import, json_t **answer, struct reason *reason)
{
	struct store *store;
	unsigned int owner = STORE_BY_HAND;
	int error = command_open_store(import->invocation, &store, reason);

	if (error)
		return error;
	error = find_owner(import, store, &owner, reason);
	if (!error)
		error = import->invocation->is_replace ? import_compare(import, store, owner, reason) :
							 compare_each(import, store, owner, reason);
	store_close(store);
	if (error)
		return error;
	*answer = import_counts(import);
	json_object_set_new(*answer, "dry_run", json_true());
	return 0;
}
