// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Applies what has come for one list. Rules that could lock this host out become changes of their own; all others, and the
 * position in the log, are one change.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/advice.h"
#include "fleet/apply.h"

#define SHRINK_MS 3600000
#define RATES_MAX (ABI_RATES_MAX - 64) /* with those of other rules; as for flows of BGP */
#define ENDS_NEAR_MS 1000 /* ends that differ by less are the same: clocks are measured to a few ms */

/* ---- one change ---- */

/* The last rates are for other rules, so that no publisher takes all. -E2BIG. */
static int check_rate(struct session *session, const struct rule *rule, struct reason *reason)
{
	char text[RULE_TEXT_BYTES];
	struct rule present = *rule;
	size_t rates = 0;
	int error;

	if (!(rule->fields & RULE_RATE) || !store_get(session->store, &present))
		return 0;
	error = store_rates(session->store, RATES_MAX - 1, &rates);
	if (error)
		return store_unread_reason(error, reason);
	return rates < RATES_MAX ? 0 :
				   reason_set(reason, -E2BIG,
					      "'%s': %zu rules have a rate, and the fleet leaves room for others",
					      rule_format(rule, text), rates);
}

/*
 * change_add() cannot give a permanent rule a timeout or another comment, nor take a comment away. So the list first
 * gives up the old rule. It always does while a change is pending, because the rule that the undo brings back may differ
 * from the present one.
 */
static int add_rule(struct session *session, const struct rule *rule, __u64 *changed, struct reason *reason)
{
	enum store_added added = STORE_UNCHANGED;
	struct rule present = *rule;
	enum store_deleted deleted;
	int error = check_rate(session, rule, reason);

	if (error)
		return error;
	if (!store_has_earlier_pending(session->store)) {
		bool is_same_comment;

		error = change_add(session, rule, &added, reason);
		/* store_get() reads the rule as it is now into `present`. */
		is_same_comment = error || added == STORE_ADDED || added == STORE_NEW_OWNER ||
				  store_get(session->store, &present) || !strcmp(rule->comment, present.comment);
		if (!error && added == STORE_UNCHANGED && is_same_comment && !rule->timeout_ms &&
		    rule->rate >= present.rate)
			return 0;
		if (error || (added != STORE_UNCHANGED && is_same_comment)) {
			++*changed;
			return error;
		}
	}
	++*changed;
	error = change_give_up(session, rule, &deleted, reason);
	return error ? error : change_add(session, rule, &added, reason);
}

/* Makes the list the owner of the change, and notes the position. */
static int open_list(struct apply *apply, struct session *session, struct apply_list *list, struct fleet_position at,
		     struct reason *reason)
{
	struct store_source from = { .kind = STORE_SOURCE_FLEET, .refused = list->refused_count };
	char source[STORE_SOURCE_BYTES];
	__s64 stale_s = apply->stale_s;
	struct store_lists before;
	int error;

	/* `follow --once` leaves it as it is: the service may be feeding the list, too. */
	if (!stale_s && !store_lists(session->store, &before))
		stale_s = before.list[store_lists_find(&before, list->name)].stale_s;
	strncpy(from.fleet, apply->fleet, sizeof(from.fleet) - 1);
	strcpy(from.broker, apply->id);
	fleet_position_format(at, from.position);
	store_source_format(&from, source);
	error = store_list_open(session->store, list->name, source, &session->owner);
	if (error == -EUSERS)
		return reason_set(reason, error,
				  "list '%s': there are %d lists already; delete one that nothing feeds: "
				  ADVICE_DELETE_LIST,
				  list->name, STORE_LISTS_MAX, session_name_option(apply->name), "NAME");
	if (!error)
		store_list_expect(session->store, session->owner, stale_s);
	return error ? reason_set(reason, error, "cannot write to the store: %s", reason_of_write(error)) : 0;
}

/* A rule for which no shape and no rate is left is refused, and the others are not. */
static int change_rules(struct apply_list *list, struct session *session, const struct rule_set *rules, __u64 *changed,
			struct reason *reason)
{
	int error = 0;

	for (size_t i = 0; i < rules->count && !error; i++) {
		enum store_deleted deleted;
		struct rule rule;

		rule_set_get(rules, i, &rule);
		if (rule.timeout_ms >= 0) {
			error = change_check_kinds(session, &rule, 1, reason);
			if (!error)
				error = add_rule(session, &rule, changed, reason);
			if (error == -E2BIG) {
				list->why = *reason;
				apply_refuse(list, &rule);
				error = 0;
			}
			continue;
		}
		rule.timeout_ms = 0;
		error = change_give_up(session, &rule, &deleted, reason);
		*changed += !error && deleted != STORE_NO_SUCH_RULE;
	}
	return error;
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

/* ---- rules that could lock this host out ---- */

/* If the rule is refused, no other rule is. The position stays: to apply the rule twice does no harm. */
int apply_try_alone(struct apply *apply, struct session *session, struct apply_list *list, const struct rule *rule,
		    struct reason *reason)
{
	const bool is_deletion = rule->timeout_ms < 0;
	struct rule deleted = *rule;
	enum store_deleted what;
	__u64 changed = is_deletion;
	int error = change_begin(session, reason);

	if (error)
		return error;
	deleted.timeout_ms = 0;
	error = open_list(apply, session, list, list->at, reason);
	if (!error)
		error = is_deletion ? change_give_up(session, &deleted, &what, reason) :
				      add_rule(session, rule, &changed, reason);
	error = change_end(session, error, reason);
	apply->changed += error ? 0 : changed;
	return error;
}

/* For find_lost_pass(): the pass rules that a whole state deletes. */
struct lost_passes {
	const struct apply_list *list;
	const struct guard *guard;
	__u64 owner;
	size_t next; /* in list->changes */
	struct rule_set found;
};

static int find_lost_pass(const struct rule *present, void *context)
{
	struct lost_passes *lost = context;
	const struct rule_set *wanted = &lost->list->changes;
	struct rule rule = *present;

	if (rule.action != RULE_PASS || !((rule.owners.permanent | rule.owners.timed) & lost->owner) ||
	    !guard_concerns(lost->guard, &rule))
		return 0;
	while (lost->next < wanted->count && rule_set_compare(wanted, lost->next, &rule) < 0)
		lost->next++;
	if (lost->next < wanted->count && !rule_set_compare(wanted, lost->next, &rule))
		return 0;
	rule.timeout_ms = -1;
	return rule_set_add(&lost->found, &rule);
}

static int add_rules(struct rule_set *set, const struct rule_set *more)
{
	int error = 0;

	for (size_t i = 0; i < more->count && !error; i++) {
		struct rule rule;

		rule_set_get(more, i, &rule);
		error = rule_set_add(set, &rule);
	}
	return error;
}

/* Adds to a whole state a rule that it lacks and this host needs, as this list has the rule now. */
static int keep_rule(struct session *session, unsigned int number, struct rule *rule, struct rule_set *kept)
{
	const __u64 owner = 1ULL << number;
	int error = store_get(session->store, rule);

	if (error)
		return error;
	if ((rule->owners.permanent | rule->owners.timed) != owner)
		rule->timeout_ms = rule->owners.permanent & owner ? 0 : rule->owners.timed_ms;
	return rule_set_add(kept, rule);
}

/*
 * Each rule that adds a drop or deletes a pass, and that concerns the guard, becomes a change of its own. Takes the
 * refused ones out of `changes`. `number`: of the list in the store. 0; -errno.
 */
static int try_dangerous(struct apply *apply, struct session *session, struct apply_list *list, unsigned int number,
			 struct reason *reason)
{
	struct rule_set *changes = &list->changes, needed = {};
	struct lost_passes lost = { .list = list, .guard = session->guard, .owner = 1ULL << number };
	size_t kept = 0;
	int error = 0;

	if (list->is_whole) {
		error = number ? store_each(session->store, find_lost_pass, &lost) : 0;
		if (!error)
			error = add_rules(changes, &lost.found);
		rule_set_close(&lost.found);
		rule_set_sort(changes);
		error = store_unread_reason(error, reason);
	}
	for (size_t i = 0; i < changes->count; i++) {
		struct rule rule;
		bool is_deletion;

		rule_set_get(changes, i, &rule);
		is_deletion = rule.timeout_ms < 0;
		if (error || is_deletion != (rule.action == RULE_PASS) || !guard_concerns(session->guard, &rule)) {
			changes->entries[kept++] = changes->entries[i];
			continue;
		}
		error = apply_try_alone(apply, session, list, &rule, reason);
		if (error == -ECANCELED || error == -E2BIG) {
			list->why = *reason;
			apply_refuse(list, &rule);
			error = list->is_whole && is_deletion ? keep_rule(session, number, &rule, &needed) : 0;
			error = store_unread_reason(error, reason);
		}
		/* What is applied stays in `changes`: a whole state must name it. */
		else if (!error && !(list->is_whole && is_deletion))
			changes->entries[kept++] = changes->entries[i];
	}
	changes->count = kept;
	if (!error)
		error = store_unread_reason(add_rules(changes, &needed), reason);
	rule_set_close(&needed);
	rule_set_sort(changes);
	return error;
}

/* ---- applying ---- */

/* One change, of the whole state or by entries of the log. */
static int apply_changes(struct apply *apply, struct session *session, struct apply_list *list, struct reason *reason)
{
	const char *option = session_name_option(apply->fleet);
	const unsigned int most = apply->options->shrink_max;
	struct rule_diff diff = {};
	struct rule_set nothing = {};
	__u64 dropped, changed = 0;
	int error = change_begin(session, reason);

	if (error)
		return error;
	error = open_list(apply, session, list, list->changes_at, reason);
	if (!error && list->is_whole) {
		rule_diff_begin(&diff, &list->changes, 1ULL << session->owner, false);
		diff.near_ms = ENDS_NEAR_MS;
		error = change_compare(session, &diff, reason);
		dropped = diff.removed + diff.left;
		/* A stage is empty after its release: a host that missed the release in the log must not keep the rules there. */
		if (!error && !is_accepted(apply, list) &&
		    ((list->is_older && dropped) ||
		     (dropped * 100 > list->rules * most && !fleet_is_staged(list->name))))
			error = reason_set(
				reason, -EBADE,
				"list '%s': the broker's state%s would drop %llu of %llu rules; the list stays as it is; "
				"if that is meant: xdp-cuckoo%s follow --once --accept, or for all hosts: xdp-cuckoo%s publish accept %s",
				list->name,
				list->is_older ? ", older than this host's as after the restore of a backup," : "",
				(unsigned long long)dropped, (unsigned long long)list->rules, option, option,
				list->name);
		if (!error && diff.obsolete.count + list->changes.count > 1000)
			change_at_once(session);
		/* Only deletes: change_rules() adds, because it leaves out single rules that are refused. */
		diff.wanted = &nothing;
		if (!error)
			error = change_replace(session, &diff, NULL, NULL, reason);
		diff.wanted = &list->changes;
	}
	if (!error)
		error = change_rules(list, session, &list->changes, &changed, reason);
	if (!error)
		error = check_changed(apply, session, list, reason);
	error = change_end(session, error, reason);
	if (!error)
		apply->changed += list->is_whole ? diff.obsolete.count + list->changes.count : changed;
	rule_diff_close(&diff);
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
	rule_set_sort(changes);
	/* A whole state names what stays, and nothing that is to be deleted. */
	for (size_t i = 0; list->is_whole && i < changes->count; i++) {
		struct rule rule;

		rule_set_get(changes, i, &rule);
		if (rule.timeout_ms >= 0)
			changes->entries[kept++] = changes->entries[i];
	}
	if (list->is_whole)
		changes->count = kept;
	error = try_dangerous(apply, session, list, store_lists_find(&lists, list->name), reason);
	if (!error)
		error = apply_changes(apply, session, list, reason);
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
