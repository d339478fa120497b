// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* add, del: one rule. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "base/safe_text.h"
#include "io/output.h"

/* The rule of `add` or `del`, and what became of it. */
struct rule_change {
	struct rule rule;
	const char *list; /* the owner of the rule; NULL: by hand for `add`, all owners for `del` */
	bool is_refused;  /* already there; no such rule */
	bool is_updated;  /* already there, with another end or another owner */
	bool keeps_rate;  /* another owner has it with another rate */
	__u64 had;        /* the owners that had the deleted rule, as bits; 0: not known */
	json_t *left_to;  /* owners that keep the rule that the list gave up; NULL: it is deleted */
};

static int add(struct session *session, struct rule_change *change, struct reason *reason)
{
	enum store_added added;
	struct rule stored;
	int error = change_open_list(session, change->list, NULL, reason);

	if (!error)
		error = change_add(session, &change->rule, &added, reason);
	if (error)
		return error;
	change->is_refused = added == STORE_UNCHANGED;
	change->is_updated = added == STORE_NEW_END || added == STORE_NEW_OWNER;
	/* The message shows the stored rule, and the rate that other owners make it keep. */
	stored = change->rule;
	if ((change->is_refused || change->rule.fields & RULE_RATE) && !store_get(session->store, &stored)) {
		change->keeps_rate = stored.rate != change->rule.rate && change->rule.fields & RULE_RATE;
		change->rule.rate = stored.rate;
		change->rule = change->is_refused ? stored : change->rule;
	}
	return 0;
}

static int del(struct session *session, struct rule_change *change, struct reason *reason)
{
	enum store_deleted deleted;
	struct rule stored = change->rule;
	struct store_lists lists;
	int error;

	error = change_find_list(session, change->list, reason);
	if (error)
		return error;
	if (!store_get(session->store, &stored)) {
		/* The rate that goes may be another than the one in the command. */
		change->rule.rate = stored.rate;
		change->had = change->list ? 0 : rule_owners_now(&stored);
	}
	error = change->list ? change_give_up(session, &change->rule, &deleted, reason) :
			       change_del(session, &change->rule, &deleted, reason);
	if (error)
		return error;
	change->is_refused = deleted == STORE_NO_SUCH_RULE;
	if (deleted != STORE_STILL_WANTED)
		return 0;
	error = store_get(session->store, &stored);
	if (!error)
		error = store_lists(session->store, &lists);
	if (error)
		return store_unread_reason(error, reason);
	change->left_to = command_list_names(&lists, rule_owners_now(&stored));
	if (rule_owners_now(&stored) >> STORE_BY_HAND & 1)
		json_array_append_new(change->left_to, json_string("by hand"));
	return 0;
}

/* A compact table does not end rules by itself. */
static void note_compact(const struct session *session, const struct rule *rule)
{
	for (size_t i = 0; i < session->filters_count && rule->timeout_ms; i++)
		if (!session->filters[i].kernel.options.is_exact) {
			output_note("a compact table does not know when a rule ends: run xdp-cuckoo%s expire to end it",
				    session_name_option(session->name));
			return;
		}
}

static void note_lists(struct store *store, __u64 had)
{
	struct store_lists lists;
	char text[256] = "";

	if (!had || store_lists(store, &lists))
		return;
	for (size_t i = 1; i <= STORE_LISTS_MAX; i++)
		if (had >> i & 1 && *lists.list[i].name)
			text_append(text, sizeof(text), "%s%s", *text ? ", " : "", lists.list[i].name);
	if (*text)
		output_note("these lists had it: %s; the next import of a list brings it back if it is still in it; to "
			    "delete it from one list only: --list NAME",
			    text);
}

/* What became of the rules of one command. */
struct outcome {
	size_t done, updated, given_up, refused;
	__u64 had; /* the owners that had the deleted rules, as bits */
	struct rule_change last;
	char passed_by[RULE_TEXT_BYTES]; /* the pass rule that makes a rule useless, or a part of it; or "" */
	bool is_part, is_refused;        /* is_refused: all of them are */
	char advice[3 * RULE_TEXT_BYTES];
};

/*
 * Makes one change: if one rule fails, none is changed. To add a rule that is there, or to delete one that is not, is
 * no failure. Even if all rules are such, the change goes on to its end: it may alter what the undo of a pending change
 * leaves.
 */
static int change_all(struct session *session, const struct rules *rules, const char *list, struct outcome *outcome,
		      int (*make)(struct session *, struct rule_change *, struct reason *), struct reason *reason)
{
	for (size_t i = 0; i < rules->count; i++) {
		int error;

		json_decref(outcome->last.left_to);
		outcome->last = (struct rule_change){ .rule = rules->rule[i], .list = list };
		error = make(session, &outcome->last, reason);
		if (error)
			return error;
		outcome->had |= outcome->last.had;
		if (outcome->last.is_refused)
			outcome->refused++;
		else if (outcome->last.is_updated)
			outcome->updated++;
		else if (outcome->last.left_to)
			outcome->given_up++;
		else
			outcome->done++;
	}
	return 0;
}

/*
 * What else blocks packets of a rule that does not exist: the rule of a network, or for some of them one with a port.
 */
static const char *advise_network(struct session *session, const struct rule *rule, char text[3 * RULE_TEXT_BYTES])
{
	char match[RULE_TEXT_BYTES], covering[RULE_TEXT_BYTES], advice[2 * RULE_TEXT_BYTES];
	struct rule network, pass = rule_without_details(rule);
	struct query_finding found = {};

	pass.timeout_ms = 0;
	*text = '\0';
	if (rule->action != RULE_DROP)
		return text;
	if (!query_test(session->store, rule, &network)) {
		if (network.fields & RULE_RATE)
			snprintf(text, 3 * RULE_TEXT_BYTES, ", but '%s' limits it", rule_format(&network, covering));
		else if (network.action == RULE_DROP)
			snprintf(text, 3 * RULE_TEXT_BYTES, ", but '%s' blocks it%s", rule_format(&network, covering),
				 command_pass_advice(session->name, &pass, advice));
	} else if (!query_find_part(session->store, rule, QUERY_BEGINNING, &found) && found.has_part) {
		snprintf(text, 3 * RULE_TEXT_BYTES,
			 ", but '%s' blocks some of its packets; all such rules: xdp-cuckoo%s list %s",
			 rule_format(&found.part_rule, covering), session_name_option(session->name),
			 rule_format(&pass, match));
	}
	return text;
}

/* Of several rules only whole ones: to look for a part may take a look at each pass rule. */
static void note_passed(struct store *store, const struct rules *rules, struct outcome *outcome)
{
	struct query_finding found = {};
	struct rule pass;

	for (size_t i = 0; i < rules->count; i++)
		if (query_is_passed(store, &rules->rule[i], &pass)) {
			output_note("'%s' passes these packets: %s drops none of them",
				    rule_format(&pass, outcome->passed_by),
				    rules->count == 1 ? "the rule" : "one of the rules");
			return;
		}
	if (rules->count > 1 || !rule_blocks(rules->rule) ||
	    query_decide(store, rules->rule, QUERY_RECEIVED, &found) || found.decision != QUERY_PARTLY)
		return;
	outcome->is_part = true;
	output_note("'%s' passes some of these packets: the rule drops only the others",
		    rule_format(&found.part_rule, outcome->passed_by));
}

/* Shows the rule if there is one, and only numbers if there are several. Frees what `outcome` has. */
static void print_outcome(const struct invocation *invocation, const struct rules *rules, const char *list,
			  const char *done, const char *refused, struct outcome *outcome)
{
	const bool is_changed = outcome->done || outcome->updated || outcome->given_up;
	char text[RULE_TEXT_BYTES], key[32];
	json_t *answer;

	if (rules->count == 1) {
		answer = json_pack("{s:s, s:s*, s:o*, s:s*, s:b}",
				   !is_changed           ? refused :
				   outcome->last.left_to ? "given_up" :
				   outcome->updated      ? "updated" :
							   done,
				   rule_format(&outcome->last.rule, text), "list", list, "left_to",
				   outcome->last.left_to, outcome->is_part ? "passed_part_by" : "passed_by",
				   *outcome->passed_by && (output_is_json() || !outcome->is_part) ? outcome->passed_by :
												    NULL,
				   "changed", is_changed);
		output_print(command_note_dry_run(invocation, answer));
		return;
	}
	json_decref(outcome->last.left_to);
	snprintf(key, sizeof(key), "%s_rules", done);
	answer = json_pack("{s:I, s:o*, s:o*, s:o*, s:b}", key, (json_int_t)outcome->done, "given_up_rules",
			   outcome->given_up ? json_integer(outcome->given_up) : NULL, "updated_rules",
			   outcome->updated ? json_integer(outcome->updated) : NULL, refused,
			   outcome->refused ? json_integer(outcome->refused) : NULL, "changed", is_changed);
	output_print(command_note_dry_run(invocation, answer));
}

/* Makes the change, and notes what the store tells of it. */
static int make_change(const struct invocation *invocation, const struct rules *rules, const char *list,
		       int (*make)(struct session *, struct rule_change *, struct reason *),
		       struct command_change *change, struct outcome *outcome, struct reason *reason)
{
	struct session *session = &change->session;
	const bool is_one_block = make == add && rules->count == 1 && rules->rule->action == RULE_DROP;
	int error = command_open_change(invocation, true, is_one_block ? rules->rule : NULL, change, reason);

	if (!error) {
		command_note_adder(session);
		command_report_session(session);
		error = command_begin(invocation, session, reason);
	}
	if (!error)
		error = change_all(session, rules, list, outcome, make, reason);
	outcome->is_refused = !error && outcome->refused == rules->count;
	/* Nothing has changed, so nothing waits for `confirm`. */
	if (outcome->is_refused && session->confirm_ms)
		change_abort(session);
	else if (session->open_change)
		error = change_end(session, error, reason);
	outcome->is_refused &= !error;
	if (outcome->is_refused && make == del && !list)
		advise_network(session, rules->rule, outcome->advice);
	if (!error && !outcome->is_refused) {
		command_report_rebuilds(session);
		if (make == add) {
			note_compact(session, rules->rule);
			note_passed(session->store, rules, outcome);
		}
		note_lists(session->store, outcome->had);
		command_note_feed(session->store, list);
	}
	return command_close_change(change, error, reason);
}

static enum command_status change_rules(const struct invocation *invocation, const struct rules *rules,
					const char *list, const char *done, const char *refused,
					int (*make)(struct session *, struct rule_change *, struct reason *))
{
	const char *option = session_name_option(invocation->name);
	struct command_change change;
	struct outcome outcome = {};
	char text[RULE_TEXT_BYTES];
	struct reason reason;
	int error = make_change(invocation, rules, list, make, &change, &outcome, &reason);

	/* A list that does not exist has no rule. */
	if (error == -ESRCH && make == del && invocation->may_exist) {
		outcome.refused = rules->count;
		outcome.last.rule = rules->rule[0];
		error = 0;
	}
	rule_format(&outcome.last.rule, text);
	if (!error && outcome.last.keeps_rate)
		output_note("the rate stays that of the rule's other owners: xdp-cuckoo%s list --json names them", option);
	if (outcome.is_refused && !invocation->may_exist && list)
		return command_fail(STATUS_NO, "%s in the list '%s': %s%s; xdp-cuckoo%s list --list %s shows its rules",
				    refused, list, text, outcome.advice, option, list);
	if (outcome.is_refused && !invocation->may_exist)
		return command_fail(STATUS_NO, "%s: %s%s; xdp-cuckoo%s list shows the rules", refused, text,
				    outcome.advice, option);
	if (error) {
		json_decref(outcome.last.left_to);
		return command_fail_list(error, &reason);
	}
	print_outcome(invocation, rules, list, done, make == add ? "already_there" : "not_there", &outcome);
	if (change.watchdog.pending_id)
		command_report_confirm(invocation, change.watchdog.deadline_ms);
	return STATUS_DONE;
}

/* Says in one line which rules a range or a list of values means. */
static void note_rules(const struct rules *rules)
{
	char first[RULE_TEXT_BYTES], last[RULE_TEXT_BYTES];

	if (rules->count > 1)
		output_note("%zu rules, from '%s' to '%s'%s", rules->count, rule_format(&rules->rule[0], first),
			    rule_format(&rules->rule[rules->count - 1], last),
			    rules->rule->fields & RULE_RATE ? ", each with a rate of its own" : "");
}

static enum command_status run_add(const struct invocation *invocation)
{
	struct host_addresses own = {};
	const char *list, *said = NULL;
	enum command_status status;
	char text[RULE_TEXT_BYTES];
	struct reason reason;
	struct rules rules;

	status = command_read_rules(invocation, &rules, &list);
	if (status != STATUS_DONE)
		return status;
	if (command_check_sense(&rules, &reason)) {
		rules_free(&rules);
		return command_fail(STATUS_USAGE, "%s", reason.text);
	}
	note_rules(&rules);
	if (rules.rule->action == RULE_PASS && !rules.rule->src_len)
		output_note("'%s' lets every source pass, also those that lists block; for one of them name its src",
			    rule_format(rules.rule, text));
	if (guard_is_elsewhere(rules.rule))
		output_note(GUARD_ELSEWHERE, rule_format(rules.rule, text));
	/* One note of each kind is enough. */
	for (size_t i = 0; i < rules.count; i++) {
		const char *special = guard_special(&rules.rule[i], &own);

		if (special && special != said)
			output_note("'%s' drops what is seldom meant: %s", rule_format(&rules.rule[i], text), special);
		said = special ? special : said;
	}
	free(own.address);
	status = change_rules(invocation, &rules, list, "added",
			      rules.rule->timeout_ms ?
				      "already there without a timeout, and stays until it is deleted" :
				      "already there",
			      add);
	rules_free(&rules);
	return status;
}

static enum command_status run_del(const struct invocation *invocation)
{
	const char *list = invocation->operands[invocation->count - 1];
	const bool has_word = invocation->count == 2 && !strcmp(invocation->operands[0], "list");
	const char *name = session_name_option(invocation->name);
	enum command_status status;
	struct rules rules;

	if (has_word && !command_is_list(invocation, list))
		return command_fail(STATUS_NO, "no list '%s'; see xdp-cuckoo%s lists", list, name);
	if (invocation->count == 1 + has_word && command_is_list(invocation, list))
		return command_fail(STATUS_USAGE,
				    "'%s' is a list; to delete its rules: xdp-cuckoo%s flush %s; to delete it, too: "
				    "xdp-cuckoo%s lists delete %s",
				    list, name, list, name, list);
	status = command_read_rules(invocation, &rules, &list);
	if (status != STATUS_DONE)
		return status;
	note_rules(&rules);
	status = change_rules(invocation, &rules, list, "deleted", "no such rule", del);
	rules_free(&rules);
	return status;
}

const struct command command_add = {
	.name = "add",
	.usage = "RULE [--list NAME] [--exist] [--dry-run] [--confirm TIME] [--force]",
	.min = 1,
	.max = RULE_WORDS_MAX,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_add,
};

const struct command command_del = {
	.name = "del",
	.usage = "RULE [--list NAME] [--exist] [--dry-run] [--confirm TIME] [--force]",
	.min = 1,
	.max = RULE_WORDS_MAX,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_del,
};
