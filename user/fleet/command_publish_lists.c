// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* publish import, release, abort, delete-list: change many rules of a list, as it is at the broker. */
#include "fleet/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fleet/publisher.h"
#include "fleet/fleet.h"
#include "fleet/snapshot.h"
#include "io/output.h"
#include "lists/import.h"
#include "rule/rule_set.h"

#define REPLACE_TRIES 5 /* of a replacement; each fails if others change the list meanwhile */

/* ---- the list at the broker ---- */

/* Collects the rules of a list at the broker. A deleted or ended rule gets a negative timeout. */
struct state_reader {
	struct rule_set rules;
	__s64 now_ms;
	struct reason bad;
};

static int take_state(char *line, size_t length, void *context)
{
	struct state_reader *state = context;
	struct rule rule;
	bool is_added;

	(void)length;
	/* A rule that this version cannot read stays as it is: see read_stage(). */
	if (log_line_parse(line, state->now_ms, &rule, &is_added, &state->bad))
		return 0;
	if (!is_added)
		rule.timeout_ms = -1;
	return rule_set_add(&state->rules, &rule);
}

static int read_state(struct publisher *publisher, const char *list, struct state_reader *state,
		      struct fleet_position *at, struct reason *reason)
{
	int error = -ESTALE;

	for (int i = 0; i < REPLACE_TRIES && error == -ESTALE; i++) {
		rule_set_close(&state->rules);
		*state = (struct state_reader){ .now_ms = broker_now_ms(&publisher->broker) };
		error = snapshot_read(&publisher->broker, publisher->fleet, list, take_state, NULL, state, at, reason);
	}
	rule_set_sort(&state->rules);
	return error;
}

/* What makes the rules of a list at the broker, `present`, equal to `wanted`, or adds these to it. */
struct difference {
	__u64 added, updated, kept, removed;
};

/* Finds the rule in a sorted set, from *at on. Returns false, and a rule that has ended, if it is not there. */
static bool find_next(const struct rule_set *set, size_t *at, const struct rule *rule, struct rule *found)
{
	*found = (struct rule){ .timeout_ms = -1 };
	while (*at < set->count && rule_set_compare(set, *at, rule) < 0)
		++*at;
	if (*at == set->count || rule_set_compare(set, *at, rule))
		return false;
	rule_set_get(set, *at, found);
	return true;
}

/* Queues all rules of a set. An ended rule is only deleted. */
static int put_all(struct publisher *publisher, const struct rule_set *set, bool is_added,
		   struct reason *reason)
{
	struct rule rule;
	int error = 0;

	for (size_t i = 0; i < set->count && !error; i++) {
		rule_set_get(set, i, &rule);
		if (rule.timeout_ms >= 0 || !is_added)
			error = publisher_put(publisher, &rule, is_added, reason);
	}
	return error;
}

/* Queues the changes; `publisher` NULL: only counts them. Adds come first: what stays is never unblocked. */
static int put_difference(struct publisher *publisher, const struct rule_set *present, const struct rule_set *wanted,
			  struct difference *difference, struct reason *reason)
{
	struct rule rule, other;
	size_t at = 0;
	int error = 0;

	*difference = (struct difference){};
	for (size_t i = 0; i < wanted->count && !error; i++) {
		rule_set_get(wanted, i, &rule);
		if (find_next(present, &at, &rule, &other) && rule_same_value(&other, &rule)) {
			difference->kept++;
			continue;
		}
		difference->added += other.timeout_ms < 0;
		difference->updated += other.timeout_ms >= 0;
		if (publisher)
			error = publisher_put(publisher, &rule, true, reason);
	}
	at = 0;
	for (size_t i = 0; i < present->count && !error; i++) {
		rule_set_get(present, i, &rule);
		if (find_next(wanted, &at, &rule, &other) || rule.timeout_ms < 0)
			continue;
		difference->removed++;
		if (publisher)
			error = publisher_put(publisher, &rule, false, reason);
	}
	return error;
}

/*
 * Tries again if others changed the list since it was read, or between two of our entries: nobody wants such a mixture.
 */
static int replace(struct publishing *publishing, const struct rule_set *wanted, struct reason *reason)
{
	struct publisher *publisher = &publishing->publisher;
	struct state_reader state = {};
	struct difference ignored;
	int error = -ESTALE;

	for (int i = 0; i < REPLACE_TRIES && error == -ESTALE; i++) {
		error = read_state(publisher, publishing->list, &state, &publisher->expected, reason);
		publisher->has_expected = true;
		publisher->last = publisher->expected;
		publisher->rules = wanted->count;
		publisher->is_mixed = false;
		if (!error)
			error = put_difference(publisher, &state.rules, wanted, &ignored, reason);
		if (!error)
			error = publisher_flush(publisher, reason);
		if (!error && *state.bad.text)
			output_note("this version cannot read a rule of the list '%s', so it stays: %s",
				    publishing->list, state.bad.text);
		if (!error && publisher->is_mixed)
			error = reason_set(reason, -ESTALE, "others keep changing the list '%s'; it is a mixture now",
					   publishing->list);
		rule_set_close(&state.rules);
	}
	return error;
}

/* ---- --dry-run ---- */

enum command_status publish_dry_run(struct publishing *publishing, const struct rule_set *rules, bool is_added)
{
	const struct invocation *invocation = publishing->invocation;
	struct publisher reader = { .fleet = invocation->name };
	struct difference difference;
	struct state_reader state = {};
	struct fleet_position at;
	struct reason reason;
	__u64 now = 0;
	int error = fleet_connect(publishing->config, false, &reader.broker, &reason);

	if (!error)
		error = read_state(&reader, publishing->list, &state, &at, &reason);
	broker_close(&reader.broker);
	for (size_t i = 0; i < state.rules.count && !error; i++) {
		struct rule rule;

		rule_set_get(&state.rules, i, &rule);
		now += rule.timeout_ms >= 0;
	}
	put_difference(NULL, &state.rules, rules, &difference, &reason);
	rule_set_close(&state.rules);
	if (error)
		return fleet_fail(error, &reason);
	if (!is_added) /* what is deleted is there now: all that is there, but what is not named */
		difference = (struct difference){ .removed = now - difference.removed };
	else if (!invocation->is_replace)
		difference.removed = 0;
	output_print(json_pack("{s:b, s:s, s:I, s:I, s:I, s:I, s:I, s:b}", "dry_run", true, "list", publishing->list,
			       "added", difference.added, "updated", difference.updated, "kept", difference.kept,
			       "removed", difference.removed, "rules_now", now, "changed",
			       difference.added || difference.updated || difference.removed));
	return STATUS_DONE;
}

/* ---- import ---- */

enum command_status publish_import(struct publishing *publishing)
{
	const struct invocation *invocation = publishing->invocation;
	struct import_options options = command_import_options(invocation);
	enum command_status status;
	struct import import;
	struct reason reason;
	int error;

	if (invocation->count != 2)
		return command_fail(STATUS_USAGE, "publish import: which file? - is standard input");
	if (invocation->is_new_only && invocation->action == RULE_PASS)
		return command_fail(STATUS_USAGE, "--new-only is for rules that drop or monitor; drop one of the two");
	error = import_open(&import, &options, invocation->operands + 1, 1, command_report_bad_line, &reason);
	/* From here on a signal ends the process. That loses nothing: what is queued is in the outbox. */
	import_close(&import);
	if (error)
		status = command_fail_because(error, &reason);
	else if (!import.rules.count && invocation->is_replace && !invocation->is_forced)
		status =
			command_fail(STATUS_USAGE,
				     "the file holds no rule, and --replace would delete all of the list '%s'; nothing was "
				     "published; say --force",
				     publishing->list);
	else
		status = invocation->is_dry_run ? publish_dry_run(publishing, &import.rules, true) :
						  publish_open(publishing, publishing->list);
	if (status == STATUS_DONE && !invocation->is_dry_run) {
		/* Makes room in an empty list, which is faster than to let it grow. */
		if (import.rules.count > FLEET_ENTRY_LINES)
			error = connection_ask(&publishing->publisher.broker.connection, NULL,
					       &reason, "FCALL xc_reserve 1 xc:%s:L:%s:meta %llu",
					       invocation->name, publishing->list,
					       (unsigned long long)import.rules.count);
		if (!error)
			error = invocation->is_replace ?
					replace(publishing, &import.rules, &reason) :
					put_all(&publishing->publisher, &import.rules, true,
						&reason);
		status = error ? publish_fail(publishing, error, &reason) : publish_finish(publishing);
	}
	if (status == STATUS_DONE && import.bad)
		status = STATUS_USAGE;
	import_free(&import);
	return status;
}

/* ---- stages ---- */

/*
 * Takes back a deletion of the list that an older version staged: followers of that version still obey it. Returns whether
 * there was one. If the broker refuses, abort goes on, and says at its end that not all was done.
 */
static bool unstage_deletion(struct publishing *publishing)
{
	struct connection *connection = &publishing->publisher.broker.connection;
	const char *fleet = publishing->publisher.fleet, *list = publishing->list;
	CODEC_FREED redisReply *staged = NULL;
	struct reason reason;
	int error = connection_ask(connection, &staged, &reason, "HGET xc:%s:accept stage:%s",
				   fleet, list);

	if (error == -EREMOTEIO)
		output_warning("whether an older version has staged the deletion of the list '%s' was not seen, and such a "
			       "deletion stays: %s",
			       list, reason.text);
	if (!error && !codec_text(staged))
		return false;
	if (!error)
		error = connection_ask(connection, NULL, &reason, "HDEL xc:%s:accept stage:%s",
				       fleet, list);
	if (!error)
		output_note("the list's deletion, which an older version staged, is taken back");
	if (!error || !staged)
		return !error;
	output_warning(
		"the deletion of the list '%s', which an older version staged, stays, and older hosts obey it: %s",
		list, reason.text);
	publishing->status = STATUS_SYSTEM;
	return true;
}

/* Opens the publisher of the list, and reads the staged rules, of the list `staged` at *at. `is_released`: also adds them. */
static enum command_status read_stage(struct publishing *publishing, const char *staged, bool is_released,
				      struct state_reader *state, struct fleet_position *at)
{
	enum command_status status = publish_open(publishing, publishing->list);
	bool is_kept = false;
	struct reason reason;
	int error;

	if (status != STATUS_DONE)
		return status;
	if (!is_released)
		is_kept = unstage_deletion(publishing);
	error = read_state(&publishing->publisher, staged, state, at, &reason);
	if (!error && *state->bad.text)
		return command_fail(STATUS_NO,
				    "nothing was changed: this version cannot read a rule of the list '%s': %s", staged,
				    state->bad.text);
	if (!error && !state->rules.count && !is_kept)
		return command_fail(STATUS_NO, "nothing is staged for the list '%s' at the broker", publishing->list);
	if (!error && is_released)
		error = put_all(&publishing->publisher, &state->rules, true, &reason);
	if (!error && is_released)
		error = publisher_flush(&publishing->publisher, &reason);
	if (error)
		return publish_fail(publishing, error, &reason);
	return is_released ? publish_report(publishing) : STATUS_DONE;
}

enum command_status publish_stage_end(struct publishing *publishing)
{
	const bool is_released = !strcmp(publishing->invocation->operands[0], "release");
	char staged[2 * ABI_NAME_BYTES];
	struct state_reader state = {};
	struct fleet_position at = {};
	enum command_status status;
	struct reason reason;
	int error = 0;

	snprintf(staged, sizeof(staged), "%s%s", publishing->list, FLEET_STAGED);
	status = read_stage(publishing, staged, is_released, &state, &at);
	publisher_close(&publishing->publisher);
	if (status == STATUS_DONE)
		status = publish_open(publishing, staged);
	/* What others stage meanwhile stays. */
	publishing->publisher.has_expected = true;
	publishing->publisher.expected = at;
	if (status == STATUS_DONE)
		error = put_all(&publishing->publisher, &state.rules, false, &reason);
	rule_set_close(&state.rules);
	if (status != STATUS_DONE)
		return status;
	if (!error)
		error = publisher_flush(&publishing->publisher, &reason);
	if (error == -ESTALE)
		return command_fail(STATUS_NO,
				    "%ssomebody else has changed the stage of the list '%s' meanwhile, so it stays; look at it, "
				    "then release or abort it",
				    is_released ? "the rules are released, but " : "", publishing->list);
	if (error)
		return publish_fail(publishing, error, &reason);
	status = is_released ? STATUS_DONE : publish_report(publishing);
	return status == STATUS_DONE ? publishing->status : status;
}

/* ---- delete-list ---- */

enum command_status publish_delete(struct publishing *publishing)
{
	enum command_status status = publish_open(publishing, publishing->list);
	struct publisher *publisher = &publishing->publisher;
	const char *fleet = publisher->fleet, *list = publisher->list;
	CODEC_FREED redisReply *rules = NULL;
	struct reason reason;
	int error;

	if (status != STATUS_DONE)
		return status;
	if (publisher->outbox.count)
		return command_fail(STATUS_LATE,
				    "the list '%s' was not deleted: %zu changes wait for replicas",
				    list, publisher->outbox.count);
	/* Hosts may delete theirs for as long as the broker remembers them. */
	error = connection_ask(&publisher->broker.connection, &rules, &reason,
			       "FCALL xc_delete 2 xc:%s:L:%s:meta xc:%s:accept %s %lld", fleet, list, fleet,
			       list,
			       (long long)(broker_now_ms(&publisher->broker) +
					   FLEET_HOST_EXPIRE_S * 1000LL));
	if (error)
		return fleet_fail(error, &reason);
	if (rules->type != REDIS_REPLY_INTEGER)
		return command_fail(STATUS_NO, "the broker has no list '%s'", list);
	publish_answer(publishing, json_pack("{s:s, s:I, s:b}", "deleted_list", list, "rules",
					     (json_int_t)codec_number(rules), "changed", true));
	return STATUS_DONE;
}
