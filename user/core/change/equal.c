// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Makes what an owner has equal to a set of rules: compares, gives up, sets, and leaves out what must not be. Lists from
 * files, by URL, of CrowdSec, of a fleet and of the library come through here.
 *
 * Nobody searches for the rule at fault. A rule without room is known before it is added. For each flow that would be
 * blocked, the guard names the rule that blocks it (lockout.c). So a bad rule costs a few look-ups, and all is one change.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "change/internal.h"

#define IN_PLACE_MAX 1000 /* to make so many changes, key by key, is cheaper than a new table */

/* ---- compare ---- */

struct comparing {
	struct change_equal *equal;
	__u64 owner;          /* as a bit */
	bool sets_all;        /* of entries, also what is as wanted: what the undo brings back may differ */
	size_t next, wanting; /* in `wanted`: the next to compare; the number of those to set */
};

static void keep_wanted(struct comparing *comparing)
{
	struct rule_set *wanted = comparing->equal->wanted;

	wanted->entries[comparing->wanting++] = wanted->entries[comparing->next++];
}

static __u64 all_owners(const struct rule *present)
{
	return present->owners.permanent | present->owners.timed;
}

/* Notes a pass rule of the owner that goes or ends: the guard may want it back. */
static int note_pass(const struct comparing *comparing, const struct rule *present)
{
	struct change_equal *equal = comparing->equal;

	return !equal->leaves_blockers || present->action != RULE_PASS ||
			       !(rule_owners_now(present) & comparing->owner) ?
		       0 :
		       rule_set_add(&equal->diff.passes, present);
}

/* 0 is no end. */
static bool is_same_end(const struct change_equal *equal, __s64 a_ms, __s64 b_ms)
{
	return a_ms == b_ms || (a_ms > 0 && b_ms > 0 && llabs(a_ms - b_ms) <= equal->near_ms);
}

/* Whether the owner has the stored rule as it is wanted. */
static bool is_same(const struct comparing *comparing, const struct rule *present, const struct rule *wanted)
{
	const struct change_equal *equal = comparing->equal;
	const struct rule_owners *owners = &present->owners;

	if (!((equal->is_alone ? all_owners(present) : rule_owners_now(present)) & ~comparing->owner))
		return is_same_end(equal, present->timeout_ms, wanted->timeout_ms) && wanted->rate == present->rate &&
		       !strcmp(wanted->comment, present->comment);
	/* Of several owners' rates the lowest stays, and packets and bits are not compared: see store_put(). */
	if (equal->is_alone || (wanted->rate < present->rate && !((wanted->rate ^ present->rate) & RULE_RATE_BITS)))
		return false;
	if (!wanted->timeout_ms)
		return owners->permanent & comparing->owner;
	return owners->timed & comparing->owner && is_same_end(equal, owners->timed_ms, wanted->timeout_ms);
}

/* The stored rule is not wanted. */
static int take_obsolete(const struct comparing *comparing, const struct rule *present)
{
	const bool is_alone = comparing->equal->is_alone;
	const __u64 others = rule_owners_now(present) & ~comparing->owner;
	struct rule_diff *diff = &comparing->equal->diff;
	int error = 0;

	if (is_alone || all_owners(present) & comparing->owner) {
		diff->removed += present->timeout_ms >= 0 && (is_alone || !others);
		diff->left += !is_alone && others;
		error = note_pass(comparing, present);
	} else if (!comparing->sets_all) {
		return 0;
	}
	return error ? error : rule_set_add(&diff->obsolete, present);
}

/* The next wanted rule is stored as `present`; NULL: it is not stored. */
static int take_next(struct comparing *comparing, const struct rule *present)
{
	struct rule_diff *diff = &comparing->equal->diff;
	struct rule wanted;

	rule_set_get(comparing->equal->wanted, comparing->next, &wanted);
	if (wanted.timeout_ms < 0) {
		comparing->next++;
		return present             ? take_obsolete(comparing, present) :
		       comparing->sets_all ? rule_set_add(&diff->obsolete, &wanted) :
					     0;
	}
	if (present && !comparing->sets_all && is_same(comparing, present, &wanted)) {
		diff->kept++;
		comparing->next++;
		return 0;
	}
	++*(present && present->timeout_ms >= 0 ? &diff->updated : &diff->added);
	keep_wanted(comparing);
	return present && wanted.timeout_ms ? note_pass(comparing, present) : 0;
}

/* Takes the wanted rules before `present` (NULL: all), which are not stored. Returns whether `present` comes next. */
static bool take_absent(struct comparing *comparing, const struct rule *present)
{
	const struct rule_set *wanted = comparing->equal->wanted;
	int order = 1;

	while (comparing->next < wanted->count) {
		order = present ? rule_set_compare(wanted, comparing->next, present) : -1;
		if (order >= 0)
			break;
		comparing->equal->diff.added++;
		keep_wanted(comparing);
	}
	return !order;
}

static int take_present(const struct rule *present, void *comparing)
{
	return take_absent(comparing, present) ? take_next(comparing, present) : take_obsolete(comparing, present);
}

static int compare(struct session *session, struct change_equal *equal, struct reason *reason)
{
	const bool is_pending = store_has_earlier_pending(session->store);
	struct comparing comparing = { equal, 1ULL << session->owner, equal->is_entries && is_pending, 0, 0 };
	struct rule_set *wanted = equal->wanted;
	int error = 0;

	if (!equal->is_entries) {
		/* The undo first: the comparison takes the rules that are there already out of `wanted`. */
		error = store_replace_undone(session->store, session->owner, equal->is_alone, wanted);
		if (error)
			return change_unwritten_reason(error, reason);
		error = store_each(session->store, take_present, &comparing);
		take_absent(&comparing, NULL);
	}
	while (comparing.next < wanted->count && !error) {
		struct rule present;

		rule_set_get(wanted, comparing.next, &present);
		if (equal->is_added && present.timeout_ms >= 0) {
			keep_wanted(&comparing);
			continue;
		}
		error = store_get(session->store, &present);
		if (!error || error == -ENOENT)
			error = take_next(&comparing, error ? NULL : &present);
	}
	wanted->count = comparing.wanting;
	rule_set_fit(wanted); /* frees memory before a new table is made */
	equal->is_compared = !error;
	return store_unread_reason(error, reason);
}

/* ---- change ---- */

static int set(struct session *session, struct change_equal *equal, const struct rule *rule, struct reason *reason)
{
	struct rule_diff *diff = &equal->diff;
	enum store_deleted deleted;
	enum store_added added;
	int error = equal->is_added ? change_add(session, rule, &added, reason) :
				      change_set(session, rule, equal->is_alone, reason);

	if (!error && equal->is_added)
		++*(added == STORE_ADDED ? &diff->added : added == STORE_UNCHANGED ? &diff->kept : &diff->updated);
	if (error != -E2BIG || !equal->leaves_roomless)
		return error;
	change_leave_out(equal, *rule, &diff->added, reason);
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
		const bool is_set = i >= obsolete->count;

		error = equal->go_on ? equal->go_on(i, total, equal->context, reason) : 0;
		if (error)
			return error;
		rule_set_get(is_set ? wanted : obsolete, is_set ? i - obsolete->count : i, &rule);
		error = is_set          ? set(session, equal, &rule, reason) :
			equal->is_alone ? change_del(session, &rule, &deleted, reason) :
					  change_give_up(session, &rule, &deleted, reason);
	}
	return error;
}

/*
 * First a trial: only the rules that others want, or that stay, decide which pass rules must stay. Beside these, a rule that
 * the trial took back may do no harm.
 */
static int leave_out_blockers(struct session *session, struct change_equal *equal, struct reason *reason)
{
	const struct rule_set *wanted = equal->wanted;
	struct rule rule;
	int error = 0;

	equal->is_back = calloc(wanted->count + 1, sizeof(*equal->is_back));
	if (!equal->is_back)
		return reason_set(reason, -ENOMEM, "not enough memory");
	if (equal->diff.passes.count)
		error = change_leave_out_blockers(session, equal, true, reason);
	for (size_t i = 0; i < wanted->count && !error; i++) {
		if (!equal->is_back[i])
			continue;
		equal->is_back[i] = false;
		rule_set_get(wanted, i, &rule);
		error = set(session, equal, &rule, reason);
	}
	return error ? error : change_leave_out_blockers(session, equal, false, reason);
}

int change_make_equal(struct session *session, struct change_equal *equal, struct reason *reason)
{
	int error;

	rule_set_sort(equal->wanted);
	error = compare(session, equal, reason);
	if (error)
		return error;
	if (equal->is_at_once ||
	    (!equal->is_entries && equal->diff.obsolete.count + equal->wanted->count > IN_PLACE_MAX))
		change_at_once(session);
	error = replace(session, equal, reason);
	return !error && equal->leaves_blockers ? leave_out_blockers(session, equal, reason) : error;
}

void change_equal_close(struct change_equal *equal)
{
	rule_set_close(&equal->diff.obsolete);
	rule_set_close(&equal->diff.passes);
	free(equal->is_back);
}
