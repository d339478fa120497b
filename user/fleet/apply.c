// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/apply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATES_MAX (ABI_RATES_MAX - 64) /* with those of other rules; as for flows of BGP */
#define DELETED (-1) /* the timeout of a rule that is to be deleted */

/* ---- the source of a list ---- */

bool apply_read_source(const struct apply *apply, const char *text, struct apply_source *source)
{
	const struct store_source from = store_source_parse(text);

	if (from.kind != STORE_SOURCE_FLEET || strcmp(from.fleet, apply->fleet))
		return false;
	strcpy(source->id, from.broker);
	source->refused = from.refused;
	return !fleet_position_parse(from.position, &source->at);
}

/* Without a store there are no lists. */
static int read_lists(struct apply *apply, struct store_lists *lists, struct reason *reason)
{
	struct store **store = &apply->session.store;
	int error = session_open_store(apply->state, apply->name, STORE_READ, store, reason);

	*lists = (struct store_lists){};
	if (error)
		return error == -ENOENT ? 0 : error;
	error = store_lists(*store, lists);
	store_pause(store);
	return store_unread_reason(error, reason);
}

int apply_look(struct apply *apply, struct reason *reason)
{
	struct store_lists lists;
	int found = 0, error = read_lists(apply, &lists, reason);

	for (size_t i = 0; i < apply->count && !error; i++) {
		const int moved = apply_check_position(apply, &lists, &apply->lists[i], reason);

		found = moved ? moved : found;
	}
	return error ? error : found;
}

int apply_open(struct apply *apply, struct reason *reason)
{
	struct store_lists lists;
	int error = read_lists(apply, &lists, reason);

	if (error)
		return error;
	for (size_t i = 0; i < apply->count; i++) {
		struct apply_list *list = &apply->lists[i];
		const unsigned int number = store_lists_find(&lists, list->name);
		struct apply_source source;

		/* apply_look() reports a list that is not from the fleet. */
		if (!number || !apply_read_source(apply, lists.list[number].source, &source))
			continue;
		list->is_stored = true;
		list->at = source.at;
		list->refused_count = source.refused;
		list->rules = lists.list[number].rules;
		strcpy(apply->id, source.id);
	}
	return 0;
}

void apply_forget(struct apply_list *list)
{
	rule_set_close(&list->changes);
	list->has_changes = list->is_whole = list->is_complete = list->is_older = list->is_over = false;
}

void apply_let_go(struct apply *apply)
{
	session_close(&apply->session);
}

void apply_close(struct apply *apply)
{
	apply_let_go(apply);
	for (size_t i = 0; i < apply->count; i++) {
		apply_forget(&apply->lists[i]);
		free(apply->lists[i].refused);
	}
	apply->count = 0;
}

/* ---- refusals ---- */

void apply_refuse(struct apply_list *list, const struct rule *rule)
{
	struct apply_refused *refused;

	list->refused_count++;
	list->refused_at = list->changes_at;
	if (!rule || list->refused_kept == APPLY_REFUSED_KEPT)
		return;
	if (!list->refused)
		list->refused = calloc(APPLY_REFUSED_KEPT, sizeof(*list->refused));
	if (!list->refused)
		return;
	refused = &list->refused[list->refused_kept++];
	*refused = (struct apply_refused){
		.rule = *rule,
		.ended_ms = rule->timeout_ms > 0 ? fleet_now_ms() + rule->timeout_ms : 0,
	};
	rule_encode(rule, refused->name);
}

/* Forgets the refusal of a rule that has come again, was applied or was deleted. */
static void forget_refused(struct apply_list *list, const struct rule *rule)
{
	__u8 name[RULE_ENCODED_BYTES] = {};

	if (list->refused_kept)
		rule_encode(rule, name);
	for (size_t i = 0; i < list->refused_kept; i++) {
		if (memcmp(list->refused[i].name, name, sizeof(name)))
			continue;
		list->refused[i--] = list->refused[--list->refused_kept];
		list->refused_count--;
	}
}

/* Whether the configuration of this host allows such a rule. */
static bool is_allowed(const struct fleet_options *options, const struct rule *rule, struct reason *why)
{
	char text[RULE_TEXT_BYTES];
	unsigned int shortest;

	if (rule->action == RULE_PASS && !options->may_pass) {
		reason_set(why, 0, "'%s': pass rules need allow-pass = yes", rule_format(rule, text));
		return false;
	}
	shortest = options->prefix_min[rule->family == FLOW_IPV6];
	/* A rule without a family has prefixes of length 0 in both. */
	if (rule->family == FLOW_NO_FAMILY && shortest < options->prefix_min[1])
		shortest = options->prefix_min[1];
	if (rule->action == RULE_PASS || !shortest)
		return true;
	if ((rule->src_len >= shortest || (!rule->src_len && rule->dst_len)) &&
	    (rule->dst_len >= shortest || (!rule->dst_len && rule->src_len)))
		return true;
	reason_set(why, 0, "'%s': its prefix is shorter than min-prefix, /%u", rule_format(rule, text), shortest);
	return false;
}

/* ---- taking lines ---- */

int apply_lines(struct apply *apply, struct apply_list *list, char *lines, size_t bytes)
{
	const __u64 most = apply->options->rules_max + FOLLOW_LINES_MORE;
	char *end = lines + bytes;
	__u64 others = 0; /* lines of the other lists that wait */
	int error = 0;

	list->has_changes = true;
	for (size_t i = 0; i < apply->count; i++)
		others += &apply->lists[i] != list ? apply->lists[i].changes.count : 0;
	/* More lines wait than all lists together may have rules. Lines of one rule count once. */
	if (!list->is_over && apply->options->rules_max && others + list->changes.count > most) {
		rule_set_sort(&list->changes);
		list->is_over = others + list->changes.count > most;
		if (list->is_over)
			rule_set_close(&list->changes);
	}
	while (lines < end && !error && !list->is_over) {
		const char *line = lines;
		char *stop = memchr(lines, '\n', end - lines);
		struct reason why;
		struct rule rule;
		bool is_added;

		stop = stop ? stop : end;
		*stop = '\0';
		lines = stop + 1;
		if (!*line)
			continue;
		if (log_line_parse(line, fleet_now_ms() + apply->offset_ms, &rule, &is_added, &why)) {
			list->why = why;
			apply_refuse(list, NULL);
			continue;
		}
		forget_refused(list, &rule);
		if (is_added && rule.timeout_ms >= 0 && !is_allowed(apply->options, &rule, &list->why)) {
			apply_refuse(list, &rule);
			/* If the store has an older form of the rule, it must go. */
			is_added = false;
		}
		if (!is_added || rule.timeout_ms < 0)
			rule.timeout_ms = DELETED;
		error = rule_set_add(&list->changes, &rule);
	}
	return error;
}

void apply_begin(struct apply_list *list)
{
	apply_forget(list);
	list->refused_kept = list->refused_count = 0;
	list->has_changes = list->is_whole = true;
}

/* ---- the session ---- */

/* After this, leave_session() must be called, even after an error. */
static int open_session(struct apply *apply, struct guard *guard, struct reason *reason)
{
	struct session *session = &apply->session;
	int error = guard_open(guard, apply->state, reason);

	if (error)
		return error;
	error = session_resume(session, apply->state, apply->name, reason);
	session->guard = guard;
	session->rates_max = RATES_MAX;
	if (session->undone.error)
		apply->undone = session->undone.reason;
	else if (session->undone.is_done)
		reason_set(&apply->undone, 0, "undid a change of %llu rule%s that was not confirmed in time",
			   (unsigned long long)session->undone.rules, session->undone.rules == 1 ? "" : "s");
	return error;
}

/* After an error everything is opened anew for the next change. */
static void leave_session(struct apply *apply, struct guard *guard, bool is_sound)
{
	if (is_sound)
		session_pause(&apply->session);
	else
		session_close(&apply->session);
	guard_close(guard);
}

int apply_commit(struct apply *apply, __u64 *failed, struct reason *reason)
{
	struct guard guard;
	size_t wanted = 0;
	int opened, error = 0;

	*failed = 0;
	for (size_t i = 0; i < apply->count; i++) {
		struct apply_list *list = &apply->lists[i];

		if (list->is_whole && !list->is_complete)
			apply_forget(list);
		wanted += list->has_changes;
	}
	if (!wanted)
		return 0;
	opened = open_session(apply, &guard, reason);
	for (size_t i = 0; i < apply->count; i++) {
		struct apply_list *list = &apply->lists[i];
		int failure = list->has_changes ? opened : 0;
		struct reason why;

		if (list->has_changes && !opened) {
			failure = apply_change_list(apply, &apply->session, list, &why);
			*reason = failure ? why : *reason;
		}
		if (failure) {
			*failed |= 1ULL << i;
			error = failure;
		}
		apply_forget(list);
	}
	leave_session(apply, &guard, !error);
	return error;
}

/* Tries the refused rules of a list again. What stays refused is noted anew. */
static int retry_list(struct apply *apply, struct apply_list *list, struct reason *reason)
{
	const struct apply_list before = *list;
	struct rule_set again = {};
	int error = 0;

	list->refused = NULL;
	list->refused_count -= list->refused_kept;
	list->refused_kept = 0;
	for (size_t i = 0; i < before.refused_kept && !error; i++) {
		struct rule rule = before.refused[i].rule;
		struct reason ignored;

		if (before.refused[i].ended_ms)
			rule.timeout_ms = before.refused[i].ended_ms - fleet_now_ms();
		if (before.refused[i].ended_ms && rule.timeout_ms <= 0)
			continue;
		if (rule.timeout_ms >= 0 && !is_allowed(apply->options, &rule, &ignored))
			apply_refuse(list, &rule);
		else if (rule_set_add(&again, &rule))
			error = reason_set(reason, -ENOMEM, "not enough memory");
	}
	if (!error && again.count)
		error = apply_rules(apply, &apply->session, list, &again, true, reason);
	rule_set_close(&again);
	list->refused_at = before.refused_at;
	if (error) {
		free(list->refused);
		list->refused = before.refused;
		list->refused_kept = before.refused_kept;
		list->refused_count = before.refused_count;
	} else {
		free(before.refused);
	}
	return error;
}

int apply_retry_refused(struct apply *apply, struct reason *reason)
{
	struct store_lists lists;
	struct guard guard;
	size_t kept = 0;
	int error, found = 0;

	for (size_t i = 0; i < apply->count; i++)
		kept += apply->lists[i].refused_kept;
	if (!kept)
		return 0;
	error = open_session(apply, &guard, reason);
	if (!error)
		error = store_unread_reason(store_lists(apply->session.store, &lists), reason);
	for (size_t i = 0; i < apply->count && !error; i++) {
		struct apply_list *list = &apply->lists[i];
		const int moved = apply_check_position(apply, &lists, list, reason);

		/* A list that another command has changed must be read again as a whole. */
		found = moved ? moved : found;
		if (!moved && list->refused_kept)
			error = retry_list(apply, list, reason);
	}
	leave_session(apply, &guard, !error);
	return error ? error : found;
}
