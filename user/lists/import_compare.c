// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Compares an import with the store: counts what it changes, and refuses to replace the rules of all lists. */
#include <errno.h>
#include <string.h>

#include "lists/import_internal.h"

/* ---- refusals ---- */

/* --replace without --list must not delete the rules of lists as a side effect. */
static int check_replace_all(const struct import *import, const struct store_lists *lists, struct reason *reason)
{
	if (import->options->list_name || import->options->is_forced)
		return 0;
	for (size_t i = 1; i <= STORE_LISTS_MAX; i++)
		if (lists->list[i].rules)
			return reason_set(reason, -EINVAL,
					  "--replace would also delete the rules of lists, as of '%s'; "
					  "nothing was changed; say --list NAME to replace one list, or --force",
					  lists->list[i].name);
	return 0;
}

/* ---- with --replace ---- */

int import_compare(struct import *import, struct session *session, struct store *store, unsigned int owner,
		   struct reason *reason)
{
	struct store_lists lists = {};
	int error = store ? store_lists(store, &lists) : 0;

	if (error)
		return store_say_unread(error, reason);
	error = check_replace_all(import, &lists, reason);
	if (error)
		return error;
	rule_diff_begin(&import->diff, &import->rules, 1ULL << owner, !import->options->list_name);
	if (session) {
		change_at_once(session);
		return change_compare(session, &import->diff, reason);
	}
	error = store ? store_each(store, rule_diff_visit, &import->diff) : 0;
	rule_diff_end(&import->diff);
	return error ? store_say_unread(error, reason) : 0;
}

/* ---- without ---- */

bool import_has_twin(const struct import *import, size_t i, struct rule *twin)
{
	const struct rule_set *rules = &import->rules;

	rule_set_get(rules, i, twin);
	if (twin->action == RULE_PASS)
		return false;
	twin->action = twin->action == RULE_DROP ? RULE_MONITOR : RULE_DROP;
	/* Rules that differ only in their action are neighbours. */
	for (size_t j = i > 2 ? i - 2 : 0; j <= i + 2 && j < rules->count; j++)
		if (!rule_set_compare(rules, j, twin))
			return false;
	return true;
}

int import_count_twin(struct import *import, struct store *store, const struct rule *twin, unsigned int owner)
{
	struct rule present = *twin;
	int error = store_get(store, &present);
	bool is_others;

	if (error || !((present.owners.permanent | present.owners.timed) & 1ULL << owner))
		return error == -ENOENT ? 0 : error;
	is_others = rule_owners_now(&present) & ~(1ULL << owner);
	import->diff.removed += present.timeout_ms >= 0 && !is_others;
	import->diff.left += is_others;
	return 0;
}

void import_count_added(struct import *import, enum store_added added)
{
	import->diff.added += added == STORE_ADDED;
	import->diff.updated += added == STORE_NEW_END || added == STORE_NEW_OWNER;
	import->diff.kept += added == STORE_UNCHANGED;
}

static int compare_each(struct import *import, struct store *store, unsigned int owner, struct reason *reason)
{
	for (size_t i = 0; i < import->rules.count; i++) {
		struct rule present;
		int error = 0;

		if (store && import_has_twin(import, i, &present))
			error = import_count_twin(import, store, &present, owner);
		rule_set_get(&import->rules, i, &present);
		if (!error)
			error = store ? store_get(store, &present) : -ENOENT;
		if (error && error != -ENOENT)
			return store_say_unread(error, reason);
		import_count_added(import, error                                    ? STORE_ADDED :
					   present.owners.permanent & 1ULL << owner ? STORE_UNCHANGED :
										      STORE_NEW_END);
	}
	return 0;
}

/* The owner that the rules would get. A list that does not exist yet gets a free number. */
static int find_owner(const struct import *import, struct store *store, unsigned int *owner, struct reason *reason)
{
	const char *name = import->options->list_name;
	struct store_lists lists = {};
	int error = name && store ? store_lists(store, &lists) : 0;

	if (error)
		return store_say_unread(error, reason);
	*owner = name ? store_lists_find(&lists, name) : STORE_BY_HAND;
	if (*owner || !name)
		return 0;
	if (!import->paths_count)
		return change_say_no_list(name, reason);
	for (*owner = 1; *owner <= STORE_LISTS_MAX && lists.list[*owner].name[0];)
		++*owner;
	return *owner > STORE_LISTS_MAX ? change_say_too_many_lists(reason) : 0;
}

int import_dry_run(struct import *import, struct store *store, struct reason *reason)
{
	unsigned int owner = STORE_BY_HAND;
	int error = find_owner(import, store, &owner, reason);

	if (error)
		return error;
	return import->options->is_replace ? import_compare(import, NULL, store, owner, reason) :
					     compare_each(import, store, owner, reason);
}
