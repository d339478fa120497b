// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* policy: what becomes of packets that no rule decides about. */
#include <errno.h>
#include <string.h>

#include "commands/command.h"
#include "counters/outcome_help.h"
#include "counters/outcome_words.h"
#include "io/output.h"
#include "base/suggest.h"

static enum command_status run_policy(const struct invocation *invocation);

const struct command command_policy = {
	.name = "policy",
	.group = COMMAND_RUN,
	.usage = "[OUTCOME pass|drop [--force]]",
	.summary = "show or set what becomes of packets that no rule decides about",
	.help = "By what the packet is; rules come first, as far as it has what they name. By default all pass\n"
		"but `too-many-headers`, which no sender needs, and by which packets could evade rules.\n"
		"@\n"
		"With `no-rule drop` only what pass rules name gets through, of the answers to this host's own\n"
		"connections too; `later-fragment drop` also hits large DNS answers; with `not-ip drop` there is\n"
		"no ARP, so no IPv4 neighbour finds this host.\n"
		"Kept with the rules, for all filters of the --name, and in force at once; `stats` counts each\n"
		"apart. While a change waits for `confirm`, `no-rule drop` is refused: the pass rules may be its.\n"
		"  --force            for `no-rule drop` and `not-ip drop`\n"
		"\n"
		"  xdp-cuckoo policy\n"
		"  xdp-cuckoo policy malformed drop\n",
	.explain = explain_policies,
	.options = OPTION_FORCE,
	.min = 0,
	.max = 2,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_policy,
};

enum abi_outcome command_outcome_named(const char *text)
{
	enum abi_outcome outcome = 0;

	while (outcome < OUTCOME_POLICIES && strcasecmp(outcome_words[outcome].word, text))
		outcome++;
	return outcome;
}

static const char *verdict_word(__u8 verdict)
{
	return verdict_words[verdict == VERDICT_DROP ? VERDICT_DROP : VERDICT_PASS].name;
}

static int read_settings(struct store *store, struct store_settings *settings, struct reason *reason)
{
	int error = store_settings(store, settings);

	return error ? reason_set(reason, error, "cannot read the store: %s", strerror(-error)) : 0;
}

/* ---- show ---- */

static enum command_status show(const struct invocation *invocation)
{
	struct store_settings settings = store_settings_default;
	json_t *rows = json_array();
	struct reason reason;
	struct store *store;
	int error = command_open_store(invocation, &store, &reason);

	if (!error && store)
		error = read_settings(store, &settings, &reason);
	store_close(store);
	for (enum abi_outcome outcome = 0; outcome < OUTCOME_POLICIES; outcome++)
		json_array_append_new(rows, json_pack("{s:s, s:s}", "outcome", outcome_words[outcome].word, "policy",
						      verdict_word(settings.policy[outcome])));
	if (!error) {
		output_print(rows);
		return STATUS_DONE;
	}
	json_decref(rows);
	return command_failed(error, &reason);
}

/* ---- set ---- */

/* What locks the operator out, whichever rules there are. */
const char *command_outcome_danger(enum abi_outcome outcome)
{
	switch (outcome) {
	case OUTCOME_NO_RULE:
		return "drops all that no pass rule names: your session, and the answers to this host's "
		       "own connections, unless pass rules name them; add these first";
	case OUTCOME_NOT_IP:
		return "drops ARP: this host and its gateway no longer find each other over IPv4, unless "
		       "their neighbour entries are permanent";
	default:
		return NULL;
	}
}

static int set_policy(const struct invocation *invocation, enum abi_outcome outcome, enum abi_verdict verdict,
		      struct reason *reason)
{
	struct store_settings settings;
	struct apply apply;
	int error = apply_open(&apply, invocation->state, invocation->name, reason);

	if (!error) {
		command_report_targets(&apply);
		error = read_settings(apply.store, &settings, reason);
	}
	if (!error) {
		settings.policy[outcome] = verdict;
		error = apply_set(&apply, &settings, reason);
	}
	apply_close(&apply);
	return error;
}

static enum command_status unknown_outcome(const char *what)
{
	struct suggest suggest = suggest_for(what);
	char text[SUGGEST_TEXT_BYTES];

	for (enum abi_outcome outcome = 0; outcome < OUTCOME_POLICIES; outcome++)
		suggest_offer(&suggest, outcome_words[outcome].word);
	return command_error(STATUS_USAGE, "policy '%s': no such outcome%s", what,
			     suggest_text(&suggest, "xdp-cuckoo policy, which lists them", text));
}

static enum command_status read_policy(const struct invocation *invocation, enum abi_outcome *outcome,
				       enum abi_verdict *verdict)
{
	const char *what = invocation->operands[0], *word = invocation->operands[1];

	*outcome = command_outcome_named(what);
	if (*outcome == OUTCOME_POLICIES)
		return unknown_outcome(what);
	if (invocation->count == 1)
		return command_error(STATUS_USAGE,
				     "policy '%s': write pass or drop behind it: xdp-cuckoo policy %s "
				     "pass|drop",
				     what, what);
	*verdict = strcmp(word, "drop") ? VERDICT_PASS : VERDICT_DROP;
	if (*verdict == VERDICT_PASS && strcmp(word, "pass"))
		return command_not_a_choice("policy", word, "pass|drop");
	return STATUS_DONE;
}

static enum command_status run_policy(const struct invocation *invocation)
{
	enum abi_outcome outcome = OUTCOME_POLICIES;
	enum abi_verdict verdict = VERDICT_PASS;
	struct reason reason;
	int error;

	if (!invocation->count)
		return show(invocation);
	if (read_policy(invocation, &outcome, &verdict))
		return STATUS_USAGE;
	if (verdict == VERDICT_DROP && command_outcome_danger(outcome) && !invocation->is_forced)
		return command_error(STATUS_USAGE, "'%s drop' %s; say --force if you mean it",
				     outcome_words[outcome].word, command_outcome_danger(outcome));
	error = set_policy(invocation, outcome, verdict, &reason);
	if (error)
		return command_failed(error, &reason);
	output_print(json_pack("{s:s, s:s}", "outcome", outcome_words[outcome].word, "policy", verdict_word(verdict)));
	return STATUS_DONE;
}
