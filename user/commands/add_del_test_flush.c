// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* add, del, test, flush: commands about single rules and all of them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "commands/command.h"
#include "io/output.h"

static enum command_status run_add(const struct invocation *invocation);
static enum command_status run_del(const struct invocation *invocation);
static enum command_status run_test(const struct invocation *invocation);
static enum command_status run_flush(const struct invocation *invocation);

#define RULE_HELP \
	"A rule names some of these, in any order; what it leaves out matches anything:\n" \
	"  proto NAME|NUMBER        tcp, udp, icmp, ipv6-icmp, sctp, dccp, udplite, gre, esp, ...\n" \
	"  src, dst ADDRESS[/LEN]   IPv4 or IPv6; a bare address or prefix means src\n" \
	"  sport, dport PORT        tcp, udp, udplite, sctp, dccp; without proto: any of them\n" \
	"  type, code NUMBER        with proto icmp or ipv6-icmp\n" \
	"  action drop|pass         drop if left out; a pass rule always wins\n" \
	"  timeout TIME             it ends by itself: 90s, 15m, 1h30m, 2d, 1w; without a unit: seconds\n" \
	"  comment \"TEXT\"\n"
#define FORCE_HELP \
	"  --force    also where it blocks this host's own addresses, its default gateway, its name\n" \
	"             servers or the SSH session this is typed in, or IPv6's neighbour discovery, by which the\n" \
	"             gateway, or the session's peer on the link, finds this host\n"

const struct command command_add = {
	.name = "add",
	.group = COMMAND_RULES,
	.usage = "RULE [--force]",
	.summary = "add a rule",
	.help = RULE_HELP
	"Durable and active when the command returns. Status 1 where the rule is there already, without a\n"
	"timeout: a rule that is there for good stays so; del it first. One that has a timeout is updated, and\n"
	"ends at the new time, or never; so is one that came from a list. A rule ends at its time without\n"
	"anybody's help, but in a --compact table, which has no room for that: there `expire` ends it.\n"
	"Where a list has it for a time too, of both the later end counts, also once the list has given\n"
	"it up; `del` ends it at once.\n" FORCE_HELP "\n"
	"  xdp-cuckoo add 192.0.2.1\n"
	"  xdp-cuckoo add 203.0.113.0/24 timeout 1h\n"
	"  xdp-cuckoo add 198.51.100.7 action pass comment \"the office\"\n"
	"  xdp-cuckoo add proto tcp src 192.0.2.1 sport 1234 dst 198.51.100.7 dport 443\n",
	.options = OPTION_FORCE,
	.min = 1,
	.max = RULE_WORDS_MAX,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_add,
};

const struct command command_del = {
	.name = "del",
	.group = COMMAND_RULES,
	.usage = "RULE [--force]",
	.summary = "delete a rule",
	.help = "Names the rule as `list` shows it; comment and timeout do not matter, the action does.\n"
		"Status 1 where there is no such rule. One that lists have comes back when they are next imported.\n" FORCE_HELP
		"\n"
		"  xdp-cuckoo del 192.0.2.1\n"
		"  xdp-cuckoo del src 203.0.113.0/24 proto udp dport 53\n",
	.options = OPTION_FORCE,
	.min = 1,
	.max = RULE_WORDS_MAX,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_del,
};

const struct command command_test = {
	.name = "test",
	.group = COMMAND_RULES,
	.usage = "RULE-OR-FLOW",
	.summary = "say whether these packets are blocked, and by which rule",
	.help = "By the stored rules, and by the policy no-rule where none matches. Status 0: blocked; 1: not. Also\n"
		"says whether the running filter agrees, or would match the packets although no rule names them\n"
		"(a false positive of its fingerprints).\n"
		"\n"
		"  xdp-cuckoo test 192.0.2.77\n"
		"  xdp-cuckoo test proto udp src 192.0.2.1 sport 5353 dst 198.51.100.7 dport 53\n",
	.min = 1,
	.max = RULE_WORDS_MAX,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_test,
};

const struct command command_flush = {
	.name = "flush",
	.group = COMMAND_RULES,
	.usage = "[--force]",
	.summary = "delete all rules",
	.help = FORCE_HELP "             (with `policy no-rule drop` the rules that pass them go too)\n"
			   "\n"
			   "  xdp-cuckoo flush\n"
			   "  xdp-cuckoo --name web flush\n",
	.options = OPTION_FORCE,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_flush,
};

/* ---- add, del ---- */

/* The one rule of `add` and `del`. Its own refusals are apart from those of opening the store. */
struct rule_change {
	struct rule rule;
	bool is_refused; /* there already; no such rule */
	bool is_updated; /* there already, with another time to end, or from lists */
	json_t *lists;   /* that had what is deleted; NULL: not known */
};

static int add(struct apply *apply, void *context, struct reason *reason)
{
	struct rule_change *change = context;
	int error = apply_add(apply, &change->rule, reason);

	change->is_refused = error == -EEXIST;
	/* What is told is what is there. */
	if (change->is_refused)
		store_get(apply->store, &change->rule);
	change->is_updated = error == -EALREADY || error == -EUSERS;
	return change->is_updated ? 0 : error;
}

static json_t *lists_of(struct store *store, const struct rule *rule)
{
	struct store_lists lists;
	struct rule found = *rule;

	if (store_get(store, &found) || store_lists(store, &lists))
		return NULL;
	return command_list_names(&lists, rule_owners_now(&found));
}

static int del(struct apply *apply, void *context, struct reason *reason)
{
	struct rule_change *change = context;
	int error;

	change->lists = lists_of(apply->store, &change->rule);
	error = apply_del(apply, &change->rule, reason);
	change->is_refused = error == -ENOENT;
	return error;
}

/* What the kernel does not do by itself. */
static void note_compact(const struct apply *apply, const struct rule *rule)
{
	for (size_t i = 0; i < apply->targets_count && rule->timeout_ms; i++)
		if (!apply->targets[i].filter.options.is_exact) {
			output_note("a compact table does not know when a rule ends: xdp-cuckoo expire "
				    "ends it, if it is run then");
			return;
		}
}

static void note_special(const struct rule *rule)
{
	const char *what = guard_special(rule);
	char text[RULE_TEXT_BYTES];

	if (what)
		output_note("'%s' drops addresses that are seldom meant: %s", rule_format(rule, text), what);
}

static void note_lists(const json_t *lists)
{
	const json_t *name;
	char text[256] = "";
	size_t i, used = 0;

	json_array_foreach(lists, i, name) if (used < sizeof(text))
		used += snprintf(text + used, sizeof(text) - used, "%s%s", i ? ", " : "", json_string_value(name));
	if (used)
		output_note("lists have it: %s; when they are next imported it comes back, unless it is gone from them; a "
			    "pass rule (action pass) stays",
			    text);
}

static int change_stored(const struct invocation *invocation, struct rule_change *change,
			 int (*make)(struct apply *, void *, struct reason *), struct reason *reason)
{
	struct guard guard;
	struct apply apply;
	int error = command_open_guarded(invocation, &apply, &guard, reason);

	if (!error) {
		command_report_targets(&apply);
		error = apply_change(&apply, make, change, reason);
	}
	if (!error)
		command_report_rebuilds(&apply);
	if (!error && make == add)
		note_compact(&apply, &change->rule);
	if (!error && make == del)
		note_lists(change->lists);
	json_decref(change->lists);
	apply_close(&apply);
	guard_close(&guard);
	return error;
}

static enum command_status change_rule(const struct invocation *invocation, struct rule_change *change,
				       const char *done, const char *refused,
				       int (*make)(struct apply *, void *, struct reason *))
{
	char text[RULE_TEXT_BYTES];
	struct reason reason;
	int error = change_stored(invocation, change, make, &reason);

	rule_format(&change->rule, text);
	if (change->is_refused)
		return command_error(STATUS_NO, "%s: %s; xdp-cuckoo list shows the rules", refused, text);
	if (error)
		return command_failed(error, &reason);
	output_print(json_pack("{s:s}", change->is_updated ? "updated" : done, text));
	return STATUS_DONE;
}

static enum command_status run_add(const struct invocation *invocation)
{
	struct rule_change change = {};

	if (command_rule(invocation, &change.rule))
		return STATUS_USAGE;
	note_special(&change.rule);
	return change_rule(invocation, &change, "added",
			   change.rule.timeout_ms ? "already there for good, and stays so until it is deleted" :
						    "already there",
			   add);
}

static enum command_status run_del(const struct invocation *invocation)
{
	struct rule_change change = {};

	if (command_rule(invocation, &change.rule))
		return STATUS_USAGE;
	return change_rule(invocation, &change, "deleted", "no such rule", del);
}

/* ---- test ---- */

/* What `test` found out about the flows of a query. */
struct finding {
	const struct rule *query;
	struct rule rule; /* that decides, where one is listed */
	json_t *lists;    /* that have it */
	bool is_listed;
	bool is_default_drop;    /* the policy drops what no rule names */
	bool has_timed;          /* the store has rules with a timeout */
	bool is_known;           /* what runs is known: not without the privilege to look into the kernel */
	size_t count;            /* filters that run */
	size_t matching;         /* of these: they have the rule; or match, where none is listed */
	bool is_compact;         /* one of them is */
	__u32 run;               /* enum abi_run bits of any */
	bool passes_unconfirmed; /* one of them does */
};

static void ask_filter(const struct kernel_filter *filter, struct store *store, struct finding *finding)
{
	finding->count++;
	finding->run |= filter->config->run;
	finding->passes_unconfirmed |= command_passes_unconfirmed(filter);
	finding->is_compact |= !filter->options.is_exact;
	if (finding->is_listed)
		finding->matching += apply_has_rule(filter, store, &finding->rule);
	else
		finding->matching += apply_matches(filter, finding->query);
}

static int ask_filters(const struct invocation *invocation, struct store *store, struct finding *finding,
		       struct reason *reason)
{
	struct kernel_filter *filters;
	size_t count;
	int error = kernel_find(invocation->name, &filters, &count, reason);

	finding->is_known = !error;
	for (size_t i = 0; i < count; i++)
		if (!strcmp(filters[i].config->name, invocation->name))
			ask_filter(&filters[i], store, finding);
	kernel_filters_free(filters, count);
	return error == -EPERM ? 0 : error;
}

static const char *running_text(const struct finding *finding)
{
	if (!finding->is_known)
		return "not known: only CAP_SYS_ADMIN, or the --pins that it was loaded with, lets this process see it";
	if (!finding->count)
		return "none: nothing is dropped or passed by rules";
	if (finding->run & ABI_RUN_PANIC)
		return "panic: passes everything";
	if (finding->passes_unconfirmed)
		return "unconfirmed: passes everything, since what was to be confirmed was not in time";
	if (finding->is_listed && finding->matching < finding->count)
		return "lacks the rule; the next change repairs it";
	if (!finding->is_listed && finding->matching && finding->is_compact && finding->has_timed)
		return "matches all the same: a false positive, or a rule that has ended and waits for "
		       "expire";
	if (!finding->is_listed && finding->matching)
		return "false positive: it matches all the same";
	if (finding->run & ABI_RUN_UNCONFIRMED)
		return "agrees, until it passes everything unless it is confirmed";
	return finding->run & ABI_RUN_MONITOR ? "agrees, and drops nothing: monitor-only" : "agrees";
}

static int ask_store(struct store *store, struct finding *finding)
{
	struct store_settings settings;
	struct store_info info;
	int error = apply_test(store, finding->query, &finding->rule);

	finding->is_listed = !error;
	if (finding->is_listed) {
		finding->lists = lists_of(store, &finding->rule);
		return 0;
	}
	if (error == -ENOENT)
		error = store_settings(store, &settings);
	if (error)
		return error;
	finding->is_default_drop = settings.policy[OUTCOME_NO_RULE] == VERDICT_DROP;
	error = store_info(store, &info);
	finding->has_timed = info.timed;
	return error;
}

/* The filters are asked about the same state of the store. */
static int look_up(const struct invocation *invocation, struct finding *finding, struct reason *reason)
{
	struct store *store;
	int error = command_open_store(invocation, &store, reason);

	if (error)
		return error;
	error = store ? ask_store(store, finding) : 0;
	if (error)
		reason_set(reason, error, "cannot read the store: %s", strerror(-error));
	else
		error = ask_filters(invocation, store, finding, reason);
	store_close(store);
	return error;
}

static bool is_blocked(const struct finding *finding)
{
	return finding->is_listed ? finding->rule.action == RULE_DROP : finding->is_default_drop;
}

static const char *verdict_text(const struct finding *finding)
{
	if (finding->is_listed)
		return is_blocked(finding) ? "blocked" : "passed";
	return is_blocked(finding) ? "blocked: no rule passes it (policy no-rule drop)" : "not blocked";
}

static enum command_status run_test(const struct invocation *invocation)
{
	char text[RULE_TEXT_BYTES];
	struct finding finding = {};
	struct reason reason;
	struct rule query;
	json_t *answer;
	int error;

	if (command_rule(invocation, &query))
		return STATUS_USAGE;
	finding.query = &query;
	error = look_up(invocation, &finding, &reason);
	if (error)
		return command_failed(error, &reason);
	answer = json_pack("{s:s, s:s}", "flow", rule_format(&query, text), "verdict", verdict_text(&finding));
	if (finding.is_listed)
		json_object_set_new(answer, "rule", json_string(rule_format(&finding.rule, text)));
	if (json_array_size(finding.lists))
		json_object_set(answer, "lists", finding.lists);
	json_decref(finding.lists);
	json_object_set_new(answer, "running_filter", json_string(running_text(&finding)));
	output_print(answer);
	return is_blocked(&finding) ? STATUS_DONE : STATUS_NO;
}

/* ---- flush ---- */

static int clear(struct apply *apply, void *context, struct reason *reason)
{
	struct store_info info;
	int error = store_info(apply->store, &info);

	if (error)
		return reason_set(reason, error, "cannot read the store: %s", strerror(-error));
	*(__u64 *)context = info.rules;
	return apply_clear(apply, reason);
}

static enum command_status run_flush(const struct invocation *invocation)
{
	struct guard guard;
	struct apply apply;
	struct reason reason;
	__u64 deleted = 0;
	int error = command_open_guarded(invocation, &apply, &guard, &reason);

	if (!error)
		command_report_undone(&apply);
	if (!error)
		error = apply_change(&apply, clear, &deleted, &reason);
	apply_close(&apply);
	guard_close(&guard);
	if (error)
		return command_failed(error, &reason);
	output_print(json_pack("{s:I}", "deleted_rules", (json_int_t)deleted));
	return STATUS_DONE;
}
