// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* add, del, test, flush: commands about single rules and all of them. */
#include <errno.h>
#include <string.h>

#include "command.h"
#include "output.h"

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
	"  comment \"TEXT\"\n"

const struct command command_add = {
	.name = "add",
	.usage = "RULE",
	.summary = "add a rule",
	.help = RULE_HELP
	"Durable and active when the command returns. Status 1 where the rule is there already.\n"
	"\n"
	"  xdp-cuckoo add 192.0.2.1\n"
	"  xdp-cuckoo add proto tcp src 192.0.2.1 sport 1234 dst 198.51.100.7 dport 443\n",
	.min = 1,
	.max = RULE_WORDS_MAX,
	.run = run_add,
};

const struct command command_del = {
	.name = "del",
	.usage = "RULE",
	.summary = "delete a rule",
	.help = "Names the rule as `list` shows it; a comment does not matter, the action does.\n"
	"Status 1 where there is no such rule.\n"
	"\n"
	"  xdp-cuckoo del 192.0.2.1\n"
	"  xdp-cuckoo del src 203.0.113.0/24 proto udp dport 53\n",
	.min = 1,
	.max = RULE_WORDS_MAX,
	.run = run_del,
};

const struct command command_test = {
	.name = "test",
	.usage = "RULE-OR-FLOW",
	.summary = "say whether these packets are blocked, and by which rule",
	.help = "By the stored rules. Status 0: blocked; 1: not. Also says whether the running filter\n"
	"agrees, or would match the packets although no rule names them (a false positive of its\n"
	"fingerprints).\n"
	"\n"
	"  xdp-cuckoo test 192.0.2.77\n"
	"  xdp-cuckoo test proto udp src 192.0.2.1 sport 5353 dst 198.51.100.7 dport 53\n",
	.min = 1,
	.max = RULE_WORDS_MAX,
	.run = run_test,
};

const struct command command_flush = {
	.name = "flush",
	.usage = "",
	.summary = "delete all rules",
	.help = "\n"
	"  xdp-cuckoo flush\n"
	"  xdp-cuckoo --name web flush\n",
	.run = run_flush,
};

/* The one rule of `add` and `del`. Its own refusals are apart from those of opening the store. */
struct rule_change {
	const struct rule *rule;
	bool is_refused; /* there already; no such rule */
};

static int add(struct apply *apply, void *context, struct reason *reason)
{
	struct rule_change *change = context;
	int error = apply_add(apply, change->rule, reason);

	change->is_refused = error == -EEXIST;
	return error;
}

static int del(struct apply *apply, void *context, struct reason *reason)
{
	struct rule_change *change = context;
	int error = apply_del(apply, change->rule, reason);

	change->is_refused = error == -ENOENT;
	return error;
}

static enum command_status change_rule(const struct invocation *invocation, const char *done,
				       const char *refused,
				       int (*make)(struct apply *, void *, struct reason *))
{
	char text[RULE_TEXT_BYTES];
	struct apply apply;
	struct reason reason;
	struct rule rule;
	struct rule_change change = { .rule = &rule };
	enum command_status status = command_rule(invocation, &rule);
	int error;

	if (status != STATUS_DONE)
		return status;
	error = apply_open(&apply, invocation->state, invocation->name, &reason);
	if (!error) {
		command_report_targets(&apply);
		error = apply_change(&apply, make, &change, &reason);
	}
	if (!error)
		command_report_rebuilds(&apply);
	apply_close(&apply);
	rule_format(&rule, text);
	if (change.is_refused)
		return command_error(STATUS_NO, "%s: %s", refused, text);
	if (error)
		return command_failed(error, &reason);
	output_print(json_pack("{s:s}", done, text));
	return STATUS_DONE;
}

static enum command_status run_add(const struct invocation *invocation)
{
	return change_rule(invocation, "added", "already there", add);
}

static enum command_status run_del(const struct invocation *invocation)
{
	return change_rule(invocation, "deleted", "no such rule", del);
}

/* What the running filters of the name say of flows, by their fingerprints. */
struct running {
	bool is_known; /* false without the privilege to look into the kernel */
	size_t count;  /* how many run */
	size_t matching;
};

static int ask_filters(const struct invocation *invocation, const struct rule *query,
		       struct running *running, struct reason *reason)
{
	struct kernel_filter *filters;
	size_t count;
	int error = kernel_find(&filters, &count, reason);

	*running = (struct running){ .is_known = !error };
	for (size_t i = 0; i < count && !error; i++) {
		if (strcmp(filters[i].config->name, invocation->name))
			continue;
		running->count++;
		running->matching += apply_matches(&filters[i], query);
	}
	kernel_filters_free(filters, count);
	return error == -EPERM ? 0 : error;
}

static const char *running_text(const struct running *running, bool is_listed)
{
	if (!running->is_known)
		return "not known without root";
	if (!running->count)
		return "none: nothing is dropped or passed by rules";
	if (is_listed && running->matching < running->count)
		return "lacks the rule; the next change repairs it";
	if (!is_listed && running->matching)
		return "false positive: it matches all the same";
	return "agrees";
}

static int look_up(const struct invocation *invocation, const struct rule *query, struct rule *rule,
		   struct reason *reason)
{
	struct store *store;
	int error = command_open_store(invocation, &store, reason);

	if (error)
		return error;
	error = store ? apply_test(store, query, rule) : -ENOENT;
	store_close(store);
	if (error && error != -ENOENT)
		reason_set(reason, error, "cannot read the store: %s", strerror(-error));
	return error;
}

static enum command_status run_test(const struct invocation *invocation)
{
	char text[RULE_TEXT_BYTES];
	struct rule query, rule;
	struct reason reason;
	enum command_status status = command_rule(invocation, &query);
	struct running running;
	bool is_listed;
	json_t *answer;
	int error;

	if (status != STATUS_DONE)
		return status;
	error = look_up(invocation, &query, &rule, &reason);
	is_listed = !error;
	if (is_listed || error == -ENOENT)
		error = ask_filters(invocation, &query, &running, &reason);
	if (error)
		return command_failed(error, &reason);
	answer = json_pack("{s:s, s:s}", "flow", rule_format(&query, text), "verdict",
			   !is_listed		      ? "not blocked" :
			   rule.action == RULE_DROP ? "blocked" :
						      "passed");
	if (is_listed)
		json_object_set_new(answer, "rule", json_string(rule_format(&rule, text)));
	json_object_set_new(answer, "running_filter", json_string(running_text(&running, is_listed)));
	output_print(answer);
	return is_listed && rule.action == RULE_DROP ? STATUS_DONE : STATUS_NO;
}

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
	struct apply apply;
	struct reason reason;
	__u64 deleted = 0;
	int error = apply_open(&apply, invocation->state, invocation->name, &reason);

	if (!error)
		error = apply_change(&apply, clear, &deleted, &reason);
	apply_close(&apply);
	if (error)
		return command_failed(error, &reason);
	output_print(json_pack("{s:I}", "deleted_rules", (json_int_t)deleted));
	return STATUS_DONE;
}
