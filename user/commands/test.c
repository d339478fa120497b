// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test: what becomes of packets, by the stored rules and by the running filter. */
#include <errno.h>
#include <string.h>

#include "commands/command.h"
#include "filter/filter.h"
#include "io/output.h"

/* What the store and the running filters say about a flow. */
struct finding {
	const struct rule *query;
	struct rule rule; /* the rule that decides, if is_listed */
	json_t *lists;    /* the lists that have this rule */
	bool is_listed;
	bool has_part; /* not all of these packets pass: `part_rule` blocks `part` of them */
	struct rule part, part_rule;
	enum query_decision decision;
	bool has_timed;          /* the store has rules with a timeout */
	bool has_outgoing;       /* a running filter also filters sent packets */
	bool is_known;           /* this process may look at the running filters */
	size_t count;            /* running filters */
	size_t matching;         /* those that have the rule, or that match the flow if no rule is listed */
	bool is_compact;         /* a running filter has a compact table */
	__u32 run;               /* enum abi_run bits of all running filters */
	bool passes_unconfirmed; /* a running filter waited too long for `confirm` */
};

static int ask_store(struct store *store, struct finding *finding)
{
	struct store_info info = {};
	struct store_lists lists; /* in a damaged store, an answer without lists is no answer */
	int error = query_decide(store, finding->query, &finding->rule, &finding->is_listed, &finding->decision);

	if (!error)
		error = store_lists(store, &lists);
	if (!error && finding->is_listed)
		finding->lists = command_list_names(&lists, rule_owners_now(&finding->rule));
	if (!error && (finding->decision == QUERY_NO_RULE || finding->decision == QUERY_MONITORED ||
		       finding->decision == QUERY_LIMITED)) {
		error = query_find_part(store, finding->query, &finding->part, &finding->part_rule);
		finding->has_part = !error;
		error = error == -ENOENT ? 0 : error;
	}
	if (!error)
		error = store_info(store, &info);
	finding->has_timed = info.timed;
	return error;
}

static int ask_filters(const struct invocation *invocation, struct store *store, struct finding *finding,
		       struct reason *reason)
{
	struct kernel_filter *filters = NULL;
	enum kernel_seen seen;
	bool matches = false;
	size_t count = 0;
	int error = kernel_find_filters((struct kernel_wish){ .must_see = invocation->name, .seen = &seen }, &filters,
					&count, reason);

	finding->is_known = !error && seen == KERNEL_SEEN;
	for (size_t i = 0; i < count; i++) {
		const struct kernel_filter *filter = &filters[i];

		if (strcmp(filter->config->name, invocation->name))
			continue;
		finding->count++;
		for (size_t k = 0; k < filter->attachments_count; k++)
			finding->has_outgoing |= kernel_is_outgoing(&filter->attachments[k]);
		finding->run |= filter->config->run;
		finding->passes_unconfirmed |= run_is_confirm_late(filter);
		finding->is_compact |= !filter->options.is_exact;
		if (!error)
			error = finding->is_listed ? query_has_rule(filter, store, &finding->rule, &matches) :
						     query_matches(filter, finding->query, &matches);
		if (error)
			error = error == -ENOMEM ? filter_unmapped_reason(reason) : store_unread_reason(error, reason);
		finding->matching += matches;
	}
	kernel_filters_free(filters, count);
	return !error && seen == KERNEL_SEEN_UNUSABLE ? -EPROTO : error;
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
		return "unconfirmed: passes everything, since nobody confirmed the change in time";
	if (finding->is_listed && finding->matching < finding->count)
		return "lacks the rule; the next change repairs it";
	if (!finding->is_listed && finding->matching && !finding->is_compact)
		return "matches, though no rule does; if it still does in a second, xdp-cuckoo check repairs it";
	if (!finding->is_listed && finding->matching && finding->has_timed)
		return "matches, though no rule does: a false positive, or a rule that has ended and waits for expire";
	if (!finding->is_listed && finding->matching)
		return "false positive: matches, though no rule does";
	if (finding->run & ABI_RUN_UNCONFIRMED)
		return "agrees, but passes everything unless it is confirmed in time";
	return finding->run & ABI_RUN_MONITOR ? "agrees, and drops nothing: monitor-only" : "agrees";
}

static enum command_status test_list(const struct invocation *invocation, struct store *store, const struct rule *query,
				     const char *flow, const char *list)
{
	char found[RULE_TEXT_BYTES];
	struct store_lists lists = {};
	unsigned int owner;
	struct reason reason;
	struct rule rule;
	int error = store ? store_lists(store, &lists) : 0;

	owner = store_lists_find(&lists, list);
	if (!error && !owner)
		return command_fail_list(change_say_no_list(invocation->name, list, &reason), &reason);
	if (!error)
		error = query_test_owned(store, owner, query, &rule);
	if (error && error != -ENOENT)
		return command_fail_because(store_unread_reason(error, &reason), &reason);
	output_print(json_pack("{s:s, s:s, s:s, s:s*}", "flow", flow, "list", list, "verdict",
			       error ? "not listed" : "listed", "rule", error ? NULL : rule_format(&rule, found)));
	return error ? STATUS_NO : STATUS_DONE;
}

/* Prints what was found. `flow`: what the operator asked about, as text. */
static void print_finding(const struct invocation *invocation, const struct finding *finding, const char *flow)
{
	json_t *answer = json_pack("{s:s, s:s}", "flow", flow, "verdict", query_decision_words[finding->decision]);
	char text[RULE_TEXT_BYTES];

	if (invocation->load.is_outgoing)
		json_object_set_new(answer, "looked_up_as", json_string(rule_format(finding->query, text)));
	if (finding->is_listed)
		json_object_set_new(answer, "rule", json_string(rule_format(&finding->rule, text)));
	if (finding->is_listed && finding->rule.fields & RULE_RATE)
		json_object_set_new(answer, finding->rule.action == RULE_MONITOR ? "counts_above" : "drops_above",
				    json_string(rule_rate_format(finding->rule.rate, text)));
	if (finding->is_listed && finding->rule.fields & RULE_NEW)
		json_object_set_new(answer, "assumed", json_string("these packets begin something; answers pass"));
	if (json_array_size(finding->lists))
		json_object_set(answer, "lists", finding->lists);
	if (finding->has_part) {
		json_object_set_new(answer, "blocked_part", json_string(rule_format(&finding->part, text)));
		json_object_set_new(answer, "blocked_by", json_string(rule_format(&finding->part_rule, text)));
	}
	json_object_set_new(answer, "running_filter",
			    json_string(invocation->load.is_outgoing && finding->count && !finding->has_outgoing ?
						"none filters sent packets: load it with --outgoing" :
						running_text(finding)));
	output_print(answer);
	if (finding->has_part)
		output_note("all rules that match some of these packets: xdp-cuckoo%s list %s",
			    session_name_option(invocation->name), flow);
}

static enum command_status test_all(const struct invocation *invocation, struct store *store, const struct rule *query,
				    const char *flow)
{
	struct finding finding = { .query = query };
	struct reason reason;
	int error = store ? store_unread_reason(ask_store(store, &finding), &reason) : 0;

	/* The store is still open, so that the filters are asked about the same rules. */
	if (!error)
		error = ask_filters(invocation, store, &finding, &reason);
	if (!error)
		print_finding(invocation, &finding, flow);
	json_decref(finding.lists);
	if (error)
		return command_fail_because(error, &reason);
	return finding.decision >= QUERY_BLOCKED ? STATUS_DONE : STATUS_NO;
}

static enum command_status run_test(const struct invocation *invocation)
{
	char flow[RULE_TEXT_BYTES];
	enum command_status status;
	struct store *store;
	struct rule query;
	const char *list;

	if (command_read_rule(invocation, &query, &list))
		return STATUS_USAGE;
	/* To people an address alone is that of the other host. */
	if (invocation->load.is_outgoing && query.src_len && !query.dst_len) {
		query.dst = query.src;
		query.dst_len = query.src_len;
		query.src = (union flow_addr){};
		query.src_len = 0;
	}
	rule_format(&query, flow);
	/* Rules with `state new` match no sent packets. */
	if (invocation->load.is_outgoing)
		rule_exchange(&query);
	else
		query_assume_new(&query);
	status = command_read_store(invocation, false, &store);
	if (status != STATUS_DONE)
		return status;
	status = list ? test_list(invocation, store, &query, flow, list) : test_all(invocation, store, &query, flow);
	store_close(store);
	return status;
}

const struct command command_test = {
	.name = "test",
	.usage = "RULE-OR-FLOW [--list NAME] [--outgoing]",
	.summary = "say whether these packets are blocked, and by which rule",
	.options = OPTION_LIST | OPTION_OUTGOING,
	.min = 1,
	.max = RULE_WORDS_MAX,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_test,
};
