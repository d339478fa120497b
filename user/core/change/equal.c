// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Makes what an owner has equal to a set of rules: compares, gives up, adds, and leaves out what must not be. Lists from
 * files, by URL, of CrowdSec, of a fleet and of the library come through here.
 *
 * Nobody searches for the rule at fault. A rule without room is known before it is added. For each flow that would be
 * blocked, the guard names the rule that blocks it (lockout.c). So a bad rule costs a few look-ups, and all is one change.
 */
#include <errno.h>

#include "change/internal.h"

#define IN_PLACE_MAX 1000 /* to make so many changes, key by key, is cheaper than a new table */

/* ---- compare ---- */

/* The undo first: the comparison takes the rules that are there already out of `wanted`. */
static int compare_all(struct session *session, struct rule_diff *diff, struct reason *reason)
{
	int error = store_replace_undone(session->store, session->owner, diff->is_alone, diff->wanted);

	if (error)
		return change_unwritten_reason(error, reason);
	error = store_each(session->store, rule_diff_visit, diff);
	rule_diff_end(diff);
	return store_unread_reason(error, reason);
}

static int compare_entries(struct session *session, struct rule_diff *diff, struct reason *reason)
{
	const bool is_renewed = store_has_earlier_pending(session->store);
	int error = 0;

	while (diff->next < diff->wanted->count && (!error || error == -ENOENT)) {
		struct rule present;

		rule_set_get(diff->wanted, diff->next, &present);
		error = store_get(session->store, &present);
		if (!error || error == -ENOENT)
			error = rule_diff_entry(diff, error ? NULL : &present, is_renewed);
	}
	rule_diff_end(diff);
	return store_unread_reason(error, reason);
}

/* ---- change ---- */

/* The last rates are for the rules of others. -E2BIG. */
static int check_rates(struct session *session, const struct change_equal *equal, const struct rule *rule,
		       struct reason *reason)
{
	const struct rule_set *before = &equal->diff.before;
	char text[RULE_TEXT_BYTES];
	struct rule present = *rule;
	size_t rates = 0;
	int error;

	/* A rule that gets another rate was given up first. */
	if (!equal->rates_max || !(rule->fields & RULE_RATE) || !store_get(session->store, &present) ||
	    rule_set_find(before, rule) < before->count)
		return 0;
	error = store_rates(session->store, equal->rates_max - 1, &rates);
	if (error || rates < equal->rates_max)
		return store_unread_reason(error, reason);
	return reason_set(reason, -E2BIG, "'%s': %zu rules have a rate, and %s leaves room for others",
			  rule_format(rule, text), rates, equal->from);
}

static int add(struct session *session, struct change_equal *equal, const struct rule *rule, struct reason *reason)
{
	enum store_deleted deleted;
	enum store_added added;
	int error = check_rates(session, equal, rule, reason);

	if (!error && equal->leaves_roomless)
		error = change_check_kinds(session, rule, 1, reason);
	if (!error)
		return change_add(session, rule, &added, reason);
	if (error != -E2BIG || !equal->leaves_roomless)
		return error;
	change_leave_out(equal, *rule, &equal->diff.added, reason);
	/* The undo of a pending change shall not bring it. */
	return change_give_up(session, rule, &deleted, reason);
}

static int replace(struct session *session, struct change_equal *equal, struct reason *reason)
{
	const struct rule_set *obsolete = &equal->diff.obsolete, *wanted = equal->wanted;
	const size_t total = obsolete->count + wanted->count;
	enum store_deleted deleted;
	struct rule rule;
	int error = 0;

	for (size_t i = 0; i < total && !error; i++) {
		const bool is_added = i >= obsolete->count;

		error = equal->go_on ? equal->go_on(i, total, equal->context, reason) : 0;
		if (error)
			return error;
		rule_set_get(is_added ? wanted : obsolete, is_added ? i - obsolete->count : i, &rule);
		error = is_added        ? add(session, equal, &rule, reason) :
			equal->is_alone ? change_del(session, &rule, &deleted, reason) :
					  change_give_up(session, &rule, &deleted, reason);
	}
	return error;
}

int change_make_equal(struct session *session, struct change_equal *equal, struct reason *reason)
{
	struct rule_diff *diff = &equal->diff;
	int error;

	rule_set_sort(equal->wanted);
	rule_diff_begin(diff, equal->wanted, 1ULL << session->owner, equal->is_alone);
	diff->near_ms = equal->near_ms;
	diff->keeps_before = equal->leaves_blockers;
	error = equal->is_entries ? compare_entries(session, diff, reason) : compare_all(session, diff, reason);
	if (error)
		return error;
	if (equal->is_at_once || (!equal->is_entries && diff->obsolete.count + diff->wanted->count > IN_PLACE_MAX))
		change_at_once(session);
	error = replace(session, equal, reason);
	return !error && equal->leaves_blockers ? change_leave_out_blockers(session, equal, reason) : error;
}

void change_equal_close(struct change_equal *equal)
{
	rule_diff_close(&equal->diff);
	rule_set_close(&equal->back);
}
