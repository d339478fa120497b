// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* publish import, release, abort, delete-list, rename: change many rules of a list, as it is at the broker. */
#include "fleet/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fleet/publisher.h"
#include "fleet/hosts.h"
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
	/* A rule that this version cannot read stays as it is: see read_rules(). */
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
	output_print(json_pack("{s:b, s:s, s:I, s:I, s:I, s:I, s:I}", "dry_run", true, "list", publishing->list,
			       "added", difference.added, "updated", difference.updated, "kept", difference.kept,
			       "removed", difference.removed, "rules_now", now));
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
	struct rule rule;
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
		if (import.rules.count > FLEET_ENTRY_LINES)
			error = functions_reserve(&publishing->publisher.broker, invocation->name, publishing->list,
						  import.rules.count, &reason);
		if (!error && invocation->is_replace)
			error = replace(publishing, &import.rules, &reason);
		for (size_t i = 0; i < import.rules.count && !error && !invocation->is_replace; i++) {
			rule_set_get(&import.rules, i, &rule);
			error = publisher_put(&publishing->publisher, &rule, true, &reason);
		}
		status = error ? publish_fail(publishing, error, &reason) : publish_finish(publishing);
	}
	if (status == STATUS_DONE && import.bad)
		status = STATUS_USAGE;
	import_free(&import);
	return status;
}

/* ---- stages ---- */

/* Opens the publisher of publishing->list, and reads the rules of the list `from` at *at. `is_copied`: also adds them. */
static enum command_status read_rules(struct publishing *publishing, const char *from, bool is_copied,
				      struct state_reader *state, struct fleet_position *at)
{
	enum command_status status = publish_open(publishing, publishing->list);
	struct reason reason;
	int error;

	if (status != STATUS_DONE)
		return status;
	error = read_state(&publishing->publisher, from, state, at, &reason);
	if (!error && *state->bad.text)
		return command_fail(STATUS_NO,
				    "nothing was changed: this version cannot read a rule of the list '%s': %s", from,
				    state->bad.text);
	for (size_t i = 0; i < state->rules.count && !error && is_copied; i++) {
		struct rule rule;

		rule_set_get(&state->rules, i, &rule);
		if (rule.timeout_ms >= 0)
			error = publisher_put(&publishing->publisher, &rule, true, &reason);
	}
	if (!error && is_copied)
		error = publisher_flush(&publishing->publisher, &reason);
	if (error)
		return publish_fail(publishing, error, &reason);
	return is_copied ? publish_report(publishing) : STATUS_DONE;
}

/* Deletes `list`, which need not be the list of the publisher. */
static enum command_status delete_list(struct publishing *publishing, const char *list)
{
	struct publisher *publisher = &publishing->publisher;
	struct reason reason;
	__u64 rules;
	int error;

	if (publisher->outbox.count)
		return command_fail(STATUS_LATE, "the list '%s' was not deleted: %zu changes wait for replicas", list,
				    publisher->outbox.count);
	error = functions_delete(&publisher->broker, publisher->fleet, list,
				 broker_now_ms(&publisher->broker) + FLEET_HOST_EXPIRE_S * 1000LL, &rules, &reason);
	if (error == -ENOENT)
		return command_fail(STATUS_NO, "%s", reason.text);
	if (error)
		return fleet_fail(error, &reason);
	publish_answer(publishing, json_pack("{s:s, s:I}", "deleted_list", list, "rules", (json_int_t)rules));
	return STATUS_DONE;
}

/*
 * A list has staged rules or a staged deletion, but not both: a release could not do both. *rules: the number of staged
 * rules. *is_leaving: the deletion is staged.
 */
static enum command_status look_at_stage(struct publishing *publishing, __u64 *rules, bool *is_leaving)
{
	struct publisher *publisher = &publishing->publisher;
	char staged[2 * ABI_NAME_BYTES];
	struct list_head head = {};
	struct reason reason;
	int error;

	snprintf(staged, sizeof(staged), "%s%s", publishing->list, FLEET_STAGED);
	error = functions_is_leaving(&publisher->broker, publisher->fleet, publishing->list, is_leaving, &reason);
	if (error == -EREMOTEIO) {
		output_note("cannot see whether the deletion of the list is staged: %s", reason.text);
		error = 0;
	}
	if (!error)
		error = list_head_read(&publisher->broker, publisher->fleet, staged, &head, &reason);
	*rules = head.rules;
	return error ? fleet_fail(error, &reason) : STATUS_DONE;
}

/* Stages the deletion, or takes that back. */
static enum command_status stage_deletion(struct publishing *publishing, bool is_on)
{
	struct publisher *publisher = &publishing->publisher;
	struct reason reason;
	__u64 rules;
	int error =
		functions_stage_deletion(&publisher->broker, publisher->fleet, publisher->list, is_on, &rules, &reason);

	if (error)
		return error == -ENOENT ? command_fail(STATUS_NO, "%s", reason.text) : fleet_fail(error, &reason);
	publish_answer(publishing, json_pack("{s:s, s:I}", is_on ? "staged_deletion" : "kept_list", publisher->list,
					     "rules", (json_int_t)rules));
	return STATUS_DONE;
}

enum command_status publish_stage_end(struct publishing *publishing)
{
	const bool is_released = !strcmp(publishing->invocation->operands[0], "release");
	enum command_status status = publish_open(publishing, publishing->list);
	char staged[2 * ABI_NAME_BYTES];
	struct state_reader state = {};
	struct fleet_position at = {};
	struct reason reason;
	bool is_leaving = false;
	__u64 rules = 0;
	int error = 0;

	if (status == STATUS_DONE)
		status = look_at_stage(publishing, &rules, &is_leaving);
	if (status == STATUS_DONE && !is_leaving && !rules)
		status = command_fail(STATUS_NO, "nothing is staged for the list '%s' at the broker", publishing->list);
	else if (status == STATUS_DONE && is_leaving && is_released && rules)
		status =
			command_fail(STATUS_NO,
				     "the deletion of the list '%s' is staged, and so are %llu rules; abort, and begin "
				     "again",
				     publishing->list, (unsigned long long)rules);
	else if (status == STATUS_DONE && is_leaving)
		status = is_released ? delete_list(publishing, publishing->list) : stage_deletion(publishing, false);
	publisher_close(&publishing->publisher);
	/* An abort goes on if rules are staged too. */
	if (status != STATUS_DONE || (is_leaving && (is_released || !rules)))
		return status;
	snprintf(staged, sizeof(staged), "%s%s", publishing->list, FLEET_STAGED);
	status = read_rules(publishing, staged, is_released, &state, &at);
	publisher_close(&publishing->publisher);
	if (status == STATUS_DONE)
		status = publish_open(publishing, staged);
	/* What others stage meanwhile stays. */
	publishing->publisher.has_expected = true;
	publishing->publisher.expected = at;
	for (size_t i = 0; i < state.rules.count && status == STATUS_DONE && !error; i++) {
		struct rule rule;

		rule_set_get(&state.rules, i, &rule);
		error = publisher_put(&publishing->publisher, &rule, false, &reason);
	}
	rule_set_close(&state.rules);
	if (status == STATUS_DONE && !error)
		error = publisher_flush(&publishing->publisher, &reason);
	if (error == -ESTALE)
		return command_fail(STATUS_NO,
				    "%ssomebody else has changed the stage of the list '%s' meanwhile, so it stays; look at it, "
				    "then release or abort it",
				    is_released ? "the rules are released, but " : "", publishing->list);
	if (error && status == STATUS_DONE)
		return publish_fail(publishing, error, &reason);
	return status == STATUS_DONE && !is_released ? publish_report(publishing) : status;
}

/* ---- delete-list, rename ---- */

enum command_status publish_delete(struct publishing *publishing)
{
	enum command_status status = publish_open(publishing, publishing->list);
	__u64 rules = 0;
	bool is_leaving;

	if (status != STATUS_DONE || !publishing->invocation->is_staged)
		return status == STATUS_DONE ? delete_list(publishing, publishing->list) : status;
	status = look_at_stage(publishing, &rules, &is_leaving);
	if (status == STATUS_DONE && rules)
		return command_fail(STATUS_NO, "%llu rules of the list '%s' are staged; release or abort them first",
				    (unsigned long long)rules, publishing->list);
	return status == STATUS_DONE ? stage_deletion(publishing, true) : status;
}

enum command_status publish_rename(struct publishing *publishing)
{
	const char *old = publishing->invocation->operands[1], *list = publishing->list;
	const char *option = session_name_option(publishing->invocation->name);
	struct publisher *publisher = &publishing->publisher;
	const struct fleet_host *late = NULL;
	struct fleet_position at, copied;
	struct state_reader state = {};
	struct list_head head = {};
	enum command_status status;
	struct fleet_view view;
	struct reason reason;
	int error;

	if (!session_is_name(old) || !strcmp(old, list))
		return command_fail(STATUS_USAGE, "publish rename: '%s' is no name of another list", old);
	status = read_rules(publishing, old, true, &state, &copied);
	rule_set_close(&state.rules);
	if (status != STATUS_DONE)
		return status;
	/* Hosts must have the new list before they lose the old one. */
	error = fleet_view_open(&view, &publisher->broker, publisher->options, publisher->fleet, &reason);
	for (size_t i = 0; i < view.hosts_count && !error; i++) {
		const struct fleet_host *host = &view.hosts[i];

		if (!host->fields ||
		    (fleet_host_at(host, old, &at) &&
		     (!fleet_host_at(host, list, &at) || fleet_position_compare(at, publisher->last) < 0)))
			late = host;
	}
	if (error)
		status = fleet_fail(error, &reason);
	else if (late && !late->fields)
		status =
			command_fail(STATUS_NO,
				     "both lists are there now: the report of the host '%s' cannot be read, so it may not have "
				     "'%s' yet; if it is gone: xdp-cuckoo%s fleet forget %s; then say this again",
				     late->name, list, option, late->name);
	else if (late)
		status =
			command_fail(STATUS_NO,
				     "both lists are there now: the host '%s' does not have '%s' yet; write it into `lists` of "
				     "all hosts, then say this again",
				     late->name, list);
	fleet_view_close(&view);
	/* With --wait, minutes may have passed since the old list was read. */
	if (status == STATUS_DONE && list_head_read(&publisher->broker, publisher->fleet, old, &head, &reason))
		status = command_fail(STATUS_SYSTEM, "%s", reason.text);
	else if (status == STATUS_DONE && fleet_position_compare(head.last, copied))
		status =
			command_fail(STATUS_NO,
				     "both lists are there now: somebody has changed '%s' meanwhile; a rule that was deleted "
				     "there is still in '%s': delete it there too, then say this again",
				     old, list);
	return status == STATUS_DONE ? delete_list(publishing, old) : status;
}
