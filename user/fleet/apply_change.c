// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Applies what has come for one list: rules, and the position in the log, as one change. Rules that would lock this host out,
 * or find no room, are left out and refused.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fleet/apply.h"

#define SHRINK_MS 3600000
#define ENDS_NEAR_MS 1000 /* ends that differ by less are the same: clocks are measured to a few ms */

/* ---- one change ---- */

/* Makes the list the owner of the change, and notes the position. */
static int open_list(struct apply *apply, struct session *session, struct apply_list *list, struct fleet_position at,
		     struct reason *reason)
{
	struct store_source from = { .kind = STORE_SOURCE_FLEET, .refused = list->refused_count };
	char source[STORE_SOURCE_BYTES];
	__s64 stale_s = apply->stale_s;
	struct store_lists before;
	struct reason why;
	int error;

	/* `follow --once` leaves it as it is: the service may be feeding the list, too. */
	if (!stale_s && !store_lists(session->store, &before))
		stale_s = before.list[store_lists_find(&before, list->name)].stale_s;
	strncpy(from.fleet, apply->fleet, sizeof(from.fleet) - 1);
	strcpy(from.broker, apply->id);
	fleet_position_format(at, from.position);
	store_source_format(&from, source);
	error = change_open_list(session, list->name, source, &why);
	if (error)
		return reason_set(reason, error, "list '%s': %.400s", list->name, why.text);
	store_list_expect(session->store, session->owner, stale_s);
	return 0;
}

static int say_over_limit(const struct apply *apply, const struct apply_list *list, struct reason *reason)
{
	return reason_set(reason, -EDQUOT,
			  "list '%s': with it, the fleet's lists would have over %llu rules, the max-rules of "
			  "this host",
			  list->name, (unsigned long long)apply->options->rules_max);
}

static bool is_accepted(const struct apply *apply, const struct apply_list *list)
{
	return apply->is_accepted || list->accepted_ms > fleet_now_ms() + apply->offset_ms;
}

/*
 * Checks the limits by the rules that the list has after the open change, so lines that renew rules do not count. A list
 * that does not grow may have any size. max-shrink limits what the log deletes within an hour. It does not hold for
 * staged lists, and rules that ended do not count.
 */
static int check_changed(const struct apply *apply, struct session *session, struct apply_list *list,
			 struct reason *reason)
{
	struct store_lists lists;
	int error = store_lists(session->store, &lists);
	__u64 rules, all;

	if (error)
		return store_unread_reason(error, reason);
	rules = all = lists.list[store_lists_find(&lists, list->name)].rules;
	if (!list->is_whole) {
		__s64 shrunk;

		if (!list->shrunk_ms || fleet_now_ms() - list->shrunk_ms >= SHRINK_MS || is_accepted(apply, list)) {
			list->shrunk_ms = fleet_now_ms();
			list->shrunk_of = list->rules;
			list->shrunk = 0;
		}
		/* The limit is a share of the most rules in this hour: a list that began empty may become empty again. */
		if ((__s64)list->rules > list->shrunk_of)
			list->shrunk_of = list->rules;
		shrunk = list->shrunk + (__s64)list->rules - (__s64)rules;
		if (shrunk > FOLLOW_SHRINK_MIN && shrunk * 100 > list->shrunk_of * apply->options->shrink_max &&
		    !fleet_is_staged(list->name) && !is_accepted(apply, list))
			return reason_set(reason, -EBADE,
					  "list '%s': the changes of an hour would drop %lld of %lld rules; the list stays as "
					  "it is, with %llu rules; if that is meant: xdp-cuckoo%s publish accept %s",
					  list->name, (long long)shrunk, (long long)list->shrunk_of,
					  (unsigned long long)list->rules, session_name_option(apply->fleet), list->name);
	}
	for (size_t i = 0; i < apply->count; i++)
		all += &apply->lists[i] != list ? apply->lists[i].rules : 0;
	if (apply->options->rules_max && rules > list->rules && all > apply->options->rules_max)
		return say_over_limit(apply, list, reason);
	return 0;
}

/* ---- applying ---- */

static void leave_out(void *context, const struct rule *rule, const struct reason *why)
{
	struct apply_list *list = context;

	list->why = *why;
	apply_refuse(list, rule);
}

/* A stage is empty after its release: a host that missed the release in the log must not keep the rules there. */
static int check_whole(const struct apply *apply, const struct apply_list *list, const struct rule_diff *diff,
		       struct reason *reason)
{
	const char *option = session_name_option(apply->fleet);
	const __u64 dropped = diff->removed + diff->left;

	if (is_accepted(apply, list) ||
	    !((list->is_older && dropped) ||
	      (dropped * 100 > list->rules * apply->options->shrink_max && !fleet_is_staged(list->name))))
		return 0;
	return reason_set(reason, -EBADE,
			  "list '%s': the broker's state%s would drop %llu of %llu rules; the list stays as it is; "
			  "if that is meant: xdp-cuckoo%s follow --once --accept, or for all hosts: "
			  "xdp-cuckoo%s publish accept %s",
			  list->name,
			  list->is_older ? ", older than this host's as after the restore of a backup," : "",
			  (unsigned long long)dropped, (unsigned long long)list->rules, option, option, list->name);
}

int apply_rules(struct apply *apply, struct session *session, struct apply_list *list, struct rule_set *rules,
		bool is_again, struct reason *reason)
{
	const struct fleet_position at = is_again ? list->at : list->changes_at;
	struct change_equal equal = { .wanted = rules,
				      .is_entries = is_again || !list->is_whole,
				      .leaves_blockers = true,
				      .leaves_roomless = true,
				      .near_ms = ENDS_NEAR_MS,
				      .leave = leave_out,
				      .context = list };
	const struct rule_diff *diff = &equal.diff;
	__u64 changed;
	int error = change_begin(session, reason);

	if (error)
		return error;
	error = open_list(apply, session, list, at, reason);
	if (!error)
		error = change_make_equal(session, &equal, reason);
	/* The source says how many are refused. */
	if (!error && (equal.left_out.count || is_again))
		error = open_list(apply, session, list, at, reason);
	if (!error && !is_again && list->is_whole)
		error = check_whole(apply, list, diff, reason);
	if (!error && !is_again)
		error = check_changed(apply, session, list, reason);
	changed = diff->added + diff->updated + diff->removed + diff->left;
	/* The time of the list is that of its last change, so nothing is stored. */
	if (!error && is_again && !changed)
		change_abort(session);
	else
		error = change_end(session, error, reason);
	apply->changed += error ? 0 : changed;
	change_equal_close(&equal);
	return error;
}

int apply_check_position(const struct apply *apply, const struct store_lists *lists, struct apply_list *list,
			 struct reason *reason)
{
	const struct fleet_position believed = list->at;
	const unsigned int number = store_lists_find(lists, list->name);
	const char *from = lists->list[number].source;
	const bool was_taken = list->is_taken;
	struct apply_source source = {};

	/* `up` makes a list that was never fed. */
	list->is_taken = number && (*from || lists->list[number].rules) && !apply_read_source(apply, from, &source);
	if (list->is_taken) {
		reason_set(&list->why, 0,
			   "list '%s' of this host comes from %s, not from the fleet; it stays as it is; to follow the "
			   "fleet's, end what feeds it, and delete it",
			   list->name, *from ? from : "commands");
		*reason = list->why;
		return -EEXIST;
	}
	/* Somebody has changed the list by hand: it follows from no position. */
	if (lists->list[number].is_edited)
		source = (struct apply_source){};
	list->at = source.at;
	if (!was_taken && !fleet_position_compare(list->at, believed))
		return 0;
	/* Stays set until the reader begins anew: a second look would find no move, because list->at is new now. */
	list->is_moved = true;
	return reason_set(reason, -ESTALE, "another command has changed the list '%s'; reads it again", list->name);
}

int apply_change_list(struct apply *apply, struct session *session, struct apply_list *list, struct reason *reason)
{
	struct rule_set *changes = &list->changes;
	struct store_lists lists;
	size_t kept = 0;
	__u64 before;
	int error = store_lists(session->store, &lists);

	if (error)
		return store_unread_reason(error, reason);
	error = apply_check_position(apply, &lists, list, reason);
	if (error)
		return error;
	before = list->rules = lists.list[store_lists_find(&lists, list->name)].rules;
	if (list->is_over)
		return say_over_limit(apply, list, reason);
	/* Of a rule that came and went, only the last word counts. A whole state names what stays, and nothing that is to be deleted. */
	rule_set_sort(changes);
	for (size_t i = 0; list->is_whole && i < changes->count; i++) {
		struct rule rule;

		rule_set_get(changes, i, &rule);
		if (rule.timeout_ms >= 0)
			changes->entries[kept++] = changes->entries[i];
	}
	if (list->is_whole)
		changes->count = kept;
	error = apply_rules(apply, session, list, changes, false, reason);
	list->is_held = error == -EBADE;
	if (list->is_held)
		list->why = *reason;
	if (!error)
		list->at = list->changes_at;
	if (!store_lists(session->store, &lists))
		list->rules = lists.list[store_lists_find(&lists, list->name)].rules;
	if (!list->is_whole)
		list->shrunk += (__s64)before - (__s64)list->rules;
	if (list->shrunk < 0)
		list->shrunk = 0;
	return error;
}
