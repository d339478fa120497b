// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test: what becomes of packets, by the stored rules and by the running filter. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "command/command.h"
#include "filter/filter.h"
#include "io/output.h"

/* What the store and the running filters say about packets. */
struct finding {
	const struct rule *asked;
	enum query_packets packets;
	struct query_finding store;
	struct query_finding part, later; /* of the part that a rule blocks, and of later fragments */
	json_t *lists;                    /* the lists that have the rule that decides */
	bool has_later;          /* a policy lets later fragments fare otherwise */
	bool has_outgoing;       /* a running filter also filters sent packets */
	bool is_known;           /* this process may look at the running filters */
	size_t count;            /* running filters */
	size_t matching;         /* those that have the rule, or that match the flow if no rule is listed */
	bool is_compact;         /* a running filter has a compact table */
	__u32 run;               /* enum abi_run bits of all running filters */
	bool passes_unconfirmed; /* a running filter waited too long for `confirm` */
};

/* Later fragments have a policy of their own. */
static int ask_later(struct store *store, struct finding *finding)
{
	static const struct rule fragments = { .family = FLOW_NO_FAMILY,
					       .fields = RULE_DETAILS,
					       .details = { .fragment_mask = FLOW_FRAGMENT_MASK },
					       .fragment = FLOW_FRAGMENT_LATER };
	const enum query_decision others = finding->store.decision, *found = &finding->later.decision;
	struct rule later;
	int error;

	if (others == QUERY_BLOCKED || others == QUERY_PASSED || !rule_intersect(&fragments, finding->asked, &later))
		return 0;
	error = query_decide(store, &later, finding->packets, &finding->later);
	finding->has_later = !error && (!finding->later.is_listed || finding->later.rule.action == RULE_MONITOR) &&
			     ((*found >= QUERY_PARTLY) != (others >= QUERY_PARTLY) ||
			      (*found >= QUERY_BLOCKED) != (others >= QUERY_BLOCKED));
	return error;
}

static int ask_store(struct store *store, struct finding *finding)
{
	struct query_finding *found = &finding->store;
	struct store_lists lists; /* in a damaged store, an answer without lists is no answer */
	int error = query_decide(store, finding->asked, finding->packets, found);

	if (!error)
		error = store_lists(store, &lists);
	if (!error && found->is_listed)
		finding->lists = command_list_names(&lists, rule_owners_now(&found->rule));
	if (!error)
		error = ask_later(store, finding);
	if (!error && found->decision < QUERY_PASSED)
		error = query_find_part(store, finding->asked, finding->packets, found);
	if (!error && found->decision < QUERY_PASSED && found->has_part)
		error = query_decide(store, &found->part, finding->packets, &finding->part);
	return error;
}

static int ask_filters(const struct invocation *invocation, struct store *store, struct finding *finding,
		       struct reason *reason)
{
	struct kernel_filter *filters = NULL;
	const struct rule looked_up = query_looked_up(finding->asked, finding->packets);
	const bool is_listed = finding->store.is_listed;
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
			error = is_listed ? query_has_rule(filter, store, &finding->store.rule, &matches) :
					    query_matches(filter, &looked_up, &matches);
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
	if (finding->store.is_listed && finding->matching < finding->count)
		return "lacks the rule; the next change repairs it";
	if (!finding->store.is_listed && finding->matching && !finding->is_compact)
		return "matches, though no rule does; if it still does in a second, xdp-cuckoo check repairs it";
	if (!finding->store.is_listed && finding->matching)
		return "matches, though no rule does: a false positive, or a rule that has ended and waits for expire";
	if (finding->run & ABI_RUN_UNCONFIRMED)
		return "agrees, but passes everything unless it is confirmed in time";
	return finding->run & ABI_RUN_MONITOR ? "agrees, and drops nothing: monitor-only" : "agrees";
}

static enum command_status test_list(const struct invocation *invocation, struct store *store,
				     const struct finding *finding, const char *flow, const char *list)
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
		error = query_test_owned(store, owner, finding->asked, finding->packets, &rule);
	if (error && error != -ENOENT)
		return command_fail_because(store_unread_reason(error, &reason), &reason);
	output_print(json_pack("{s:s, s:s, s:s, s:s*}", "flow", flow, "list", list, "verdict",
			       error ? "not listed" : "listed", "rule", error ? NULL : rule_format(&rule, found)));
	return error ? STATUS_NO : STATUS_DONE;
}

/* A part of the packets, and the rule that decides about it. */
static void add_part(json_t *answer, const struct query_finding *finding)
{
	const bool passes = finding->decision == QUERY_PARTLY;
	char text[RULE_TEXT_BYTES];

	if (!finding->has_part)
		return;
	json_object_set_new(answer, passes ? "passed_part" : "blocked_part",
			    json_string(rule_format(&finding->part, text)));
	rule_format(&finding->part_rule, text);
	json_object_set_new(answer, passes ? "passed_by" : "blocked_by",
			    json_string(passes && finding->part_rule.action != RULE_PASS ? "no rule" : text));
}

/* Prints what was found. `flow`: what the operator asked about, as text. */
static void print_finding(const struct invocation *invocation, const struct finding *finding, const char *flow)
{
	const struct query_finding *found = &finding->store;
	const struct rule *rule = &found->rule, looked_up = query_looked_up(finding->asked, finding->packets);
	json_t *answer = json_pack("{s:s, s:s}", "flow", flow, "verdict", query_decision_words[found->decision]);
	const bool is_sent = finding->packets == QUERY_SENT;
	char text[RULE_TEXT_BYTES];

	if (is_sent)
		json_object_set_new(answer, "looked_up_as", json_string(rule_format(&looked_up, text)));
	if (found->is_listed)
		json_object_set_new(answer, "rule", json_string(rule_format(rule, text)));
	if (found->is_listed && rule->fields & RULE_RATE)
		json_object_set_new(answer, rule->action == RULE_MONITOR ? "counts_above" : "drops_above",
				    json_string(rule_rate_format(rule->rate, text)));
	if (found->is_listed && rule->fields & RULE_NEW)
		json_object_set_new(answer, "assumed", json_string("these packets begin something; answers pass"));
	if (json_array_size(finding->lists))
		json_object_set(answer, "lists", finding->lists);
	add_part(answer, found);
	add_part(answer, &finding->part);
	if (finding->has_later)
		json_object_set_new(answer, "later_fragments",
				    json_string(query_decision_words[finding->later.decision]));
	json_object_set_new(answer, "running_filter",
			    json_string(is_sent && finding->count && !finding->has_outgoing ?
						"none filters sent packets: load it with --outgoing" :
						running_text(finding)));
	output_print(answer);
	if (found->has_part)
		output_note("all rules that match some of these packets: xdp-cuckoo%s list %s",
			    session_name_option(invocation->name), is_sent ? rule_format(&looked_up, text) : flow);
}

static enum command_status test_all(const struct invocation *invocation, struct store *store, struct finding *finding,
				    const char *flow)
{
	struct reason reason;
	int error = store ? store_unread_reason(ask_store(store, finding), &reason) : 0;

	/* The store is still open, so that the filters are asked about the same rules. */
	if (!error)
		error = ask_filters(invocation, store, finding, &reason);
	if (!error)
		print_finding(invocation, finding, flow);
	json_decref(finding->lists);
	if (error)
		return command_fail_because(error, &reason);
	return finding->store.decision >= QUERY_BLOCKED ? STATUS_DONE : STATUS_NO;
}

/* Whether the operator wrote src before an address. */
static bool says_source(const struct invocation *invocation)
{
	for (int i = 0; i < invocation->count; i++) {
		char text[RULE_TEXT_BYTES], *rest = text;

		snprintf(text, sizeof(text), "%s", invocation->operands[i]);
		for (const char *word; (word = strsep(&rest, " 	"));)
			if (!strcasecmp(word, "src"))
				return true;
	}
	return false;
}

static enum command_status run_test(const struct invocation *invocation)
{
	char flow[RULE_TEXT_BYTES];
	struct rule asked;
	struct finding finding = { .asked = &asked,
				   .packets = invocation->load.is_outgoing ? QUERY_SENT : QUERY_BEGINNING };
	enum command_status status;
	struct store *store;
	const char *list;

	if (command_read_rule(invocation, &asked, &list))
		return STATUS_USAGE;
	/* To people an address alone is that of the other host. */
	if (invocation->load.is_outgoing && asked.src_len && !asked.dst_len && !says_source(invocation)) {
		asked.dst = asked.src;
		asked.dst_len = asked.src_len;
		asked.src = (union flow_addr){};
		asked.src_len = 0;
	}
	rule_format(&asked, flow);
	status = command_read_store(invocation, false, &store);
	if (status != STATUS_DONE)
		return status;
	status = list ? test_list(invocation, store, &finding, flow, list) :
			test_all(invocation, store, &finding, flow);
	store_close(store);
	return status;
}

const struct command command_test = {
	.name = "test",
	.usage = "RULE-OR-FLOW [--list NAME] [--outgoing]",
	.min = 1,
	.max = RULE_WORDS_MAX,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_test,
};
