// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* policy: shows or sets the verdict for packets that no rule decides about. */
#include <string.h>

#include "commands/command.h"
#include "counters/outcome_words.h"
#include "io/output.h"
#include "base/suggest.h"

static const char *verdict_word(__u8 verdict)
{
	return verdict_words[verdict == VERDICT_DROP ? VERDICT_DROP : VERDICT_PASS].name;
}

static enum command_status show(const struct invocation *invocation)
{
	struct store_settings settings = store_settings_default;
	json_t *rows = json_array();
	struct reason reason;
	struct store *store;
	int error = command_open_store(invocation, &store, &reason);

	if (!error && store)
		error = store_say_unread(store_settings(store, &settings), &reason);
	store_close(store);
	for (enum abi_outcome outcome = 0; outcome < OUTCOME_POLICIES; outcome++)
		json_array_append_new(rows, json_pack("{s:s, s:s}", "outcome", outcome_words[outcome].name, "policy",
						      verdict_word(settings.policy[outcome])));
	return command_answer(error, &reason, rows);
}

static enum command_status read_policy(const struct invocation *invocation, enum abi_outcome *outcome,
				       enum abi_verdict *verdict)
{
	const char *what = invocation->operands[0], *word = invocation->operands[1];
	struct suggest suggest = suggest_for(what);
	char text[SUGGEST_TEXT_BYTES];

	*outcome = policy_outcome_named(what);
	if (*outcome == OUTCOME_POLICIES) {
		if (invocation->count == 1 && (!strcmp(what, "drop") || !strcmp(what, "pass")))
			return command_fail(STATUS_USAGE,
					    "policy '%s': for which packets? Those that no rule names: xdp-cuckoo policy "
					    "no-rule %s; see xdp-cuckoo policy",
					    what, what);
		for (enum abi_outcome known = 0; known < OUTCOME_POLICIES; known++)
			suggest_offer(&suggest, outcome_words[known].name);
		return command_fail(STATUS_USAGE, "policy '%s': no such outcome%s", what,
				    suggest_text(&suggest, "xdp-cuckoo policy, which lists them", text));
	}
	if (invocation->count == 1)
		return command_fail(STATUS_USAGE,
				    "policy '%s': write pass or drop after it: xdp-cuckoo policy %s pass|drop", what,
				    what);
	*verdict = !strcmp(word, "drop") || !strcmp(word, "deny") ? VERDICT_DROP : VERDICT_PASS;
	if (*verdict == VERDICT_PASS && strcmp(word, "pass") && strcmp(word, "accept") && strcmp(word, "allow"))
		return command_fail_choices("policy", word, "pass|drop");
	return STATUS_DONE;
}

static enum command_status run_policy(const struct invocation *invocation)
{
	enum abi_outcome outcome = OUTCOME_POLICIES;
	enum abi_verdict verdict = VERDICT_PASS;
	struct store_settings settings;
	struct session session;
	struct reason reason;
	int error;

	if (!invocation->count)
		return show(invocation);
	if (read_policy(invocation, &outcome, &verdict))
		return STATUS_USAGE;
	if (verdict == VERDICT_DROP && policy_danger(outcome) && !invocation->is_forced)
		return command_fail(STATUS_USAGE, "'%s drop' %s; say --force if you mean it",
				    outcome_words[outcome].name, policy_danger(outcome));
	error = session_open(&session, invocation->state, invocation->name, &reason);
	if (!error) {
		command_report_session(&session);
		error = store_say_unread(store_settings(session.store, &settings), &reason);
	}
	if (!error) {
		settings.policy[outcome] = verdict;
		error = change_set(&session, &settings, &reason);
	}
	session_close(&session);
	return command_answer(error, &reason,
			      json_pack("{s:s, s:s}", "outcome", outcome_words[outcome].name, "policy",
					verdict_word(verdict)));
}

const struct command command_policy = {
	.name = "policy",
	.group = COMMAND_RUN,
	.usage = "[OUTCOME pass|drop [--force]]",
	.summary = "show or set the verdict for packets that no rule decides about",
	.explain = explain_policies,
	.options = OPTION_FORCE,
	.max = 2,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_policy,
};
