// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* policy: shows or sets the verdict for packets that no rule decides about. monitor-only, panic, confirm. */
#include <errno.h>
#include <string.h>

#include "command/command.h"
#include "counters/counters.h"
#include "io/output.h"
#include "base/suggest.h"
#include "filter/filter.h"

static const char *verdict_word(__u8 verdict)
{
	return verdict_words[verdict == VERDICT_DROP ? VERDICT_DROP : VERDICT_PASS].name;
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
	struct store_settings settings = store_settings_default;
	struct command_change change;
	struct store *store;
	struct reason reason;
	json_t *rows;
	int error;

	if (!invocation->count && invocation->confirm_ms)
		return command_fail(STATUS_USAGE, "--confirm goes with policy OUTCOME pass|drop");
	if (!invocation->count) {
		error = command_open_store(invocation, &store, &reason);
		if (!error && store)
			error = store_unread_reason(store_settings(store, &settings), &reason);
		store_close(store);
		rows = json_array();
		for (outcome = 0; outcome < OUTCOME_POLICIES; outcome++)
			json_array_append_new(rows, json_pack("{s:s, s:s}", "outcome", outcome_words[outcome].name,
							      "policy", verdict_word(settings.policy[outcome])));
		return command_answer(error, &reason, rows);
	}
	if (read_policy(invocation, &outcome, &verdict))
		return STATUS_USAGE;
	if (verdict == VERDICT_DROP && policy_danger(outcome) && !invocation->is_forced && !invocation->confirm_ms)
		return command_fail(STATUS_USAGE, "'%s drop' %s; to try it, say --confirm TIME",
				    outcome_words[outcome].name, policy_danger(outcome));
	error = command_open_change(invocation, false, NULL, &change, &reason);
	if (!error) {
		command_report_session(&change.session);
		change.is_changed = store_settings(change.session.store, &settings) ||
				    settings.policy[outcome] != verdict;
		settings = store_settings_kept;
		settings.policy[outcome] = verdict;
		error = change_settings(&change.session, &settings, invocation->confirm_ms, &reason);
	}
	return command_end_change(invocation, &change, error, &reason,
				  json_pack("{s:s, s:s}", "outcome", outcome_words[outcome].name, "policy",
					    verdict_word(verdict)));
}

const struct command command_policy = {
	.name = "policy",
	.usage = "[OUTCOME pass|drop [--confirm TIME] [--force]]",
	.explain = explain_policies,
	.max = 2,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_policy,
};

/* ---- monitor-only ---- */

static enum command_status run_monitor_only(const struct invocation *invocation)
{
	const char *word = invocation->operands[0];
	const bool is_on = !strcmp(word, "on");
	struct session session;
	struct reason reason;
	bool is_changed;
	int error;

	if (!is_on && strcmp(word, "off"))
		return command_fail_choices("monitor-only", word, "on|off");
	error = session_open(&session, invocation->state, invocation->name, &reason);
	if (!error) {
		command_report_session(&session);
		error = is_on ? 0 : command_report_blocked(&session, invocation->state, &reason);
	}
	if (!error)
		error = change_set_monitor_only(&session, is_on, &reason);
	is_changed = !error && store_is_changed(session.store);
	session_close(&session);
	return command_answer(error, &reason, json_pack("{s:b, s:b}", "monitor_only", is_on, "changed", is_changed));
}

const struct command command_monitor_only = {
	.name = "monitor-only",
	.usage = "on|off",
	.min = 1,
	.max = 1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_monitor_only,
};

/* ---- panic ---- */

static enum command_status run_panic(const struct invocation *invocation)
{
	bool is_on = true, is_changed = false;
	struct reason reason;
	size_t meant = 0;
	int error;

	if (invocation->count && strcmp(invocation->operands[0], "off") && strcmp(invocation->operands[0], "on"))
		return command_fail_choices("panic", invocation->operands[0], "on|off");
	is_on = !invocation->count || !strcmp(invocation->operands[0], "on");
	error = filter_panic(invocation->is_all ? NULL : invocation->name, PANIC_BY_OPERATOR, is_on, &meant,
			     &is_changed, &reason);
	if (error)
		return command_fail_because(error, &reason);
	if (!meant)
		return !invocation->is_all ?
			       command_fail_not_running(invocation->name) :
			       command_fail(STATUS_NO, "no filter is running here; xdp-cuckoo load IFACE runs one");
	output_print(json_pack("{s:b, s:I, s:b}", "panic", is_on, "filters", (json_int_t)meant, "changed", is_changed));
	return STATUS_DONE;
}

const struct command command_panic = {
	.name = "panic",
	.usage = "[on|off] [--all]",
	.max = 1,
	.needs = PRIVILEGE_KERNEL,
	.run = run_panic,
};

/* ---- confirm ---- */

static enum command_status run_confirm(const struct invocation *invocation)
{
	bool was_waiting = false;
	struct session session;
	struct reason reason;
	double ticks_per_second;
	__u32 tick = 0;
	int error = session_open(&session, invocation->state, invocation->name, &reason);

	if (!error)
		command_report_undone(&session);
	/*
	 * The clock is that of the packet path. Once that path has let all packets pass, a confirm proves nothing: it may have
	 * been typed while the session was frozen.
	 */
	if (!error && !invocation->is_forced && session.filters_count)
		error = kernel_tick(&tick, &ticks_per_second, &reason);
	if (!error && !invocation->is_forced && session.undone.error)
		error = reason_set(&reason, -ETIMEDOUT,
				   "too late: the time is over; confirm --force keeps what could not be undone");
	for (size_t i = 0; i < session.filters_count && !error && !invocation->is_forced; i++) {
		const struct abi_config *config = session.filters[i].kernel.config;

		if (config->run & ABI_RUN_UNCONFIRMED && tick >= config->confirm_by)
			error = reason_set(&reason, -ETIMEDOUT,
					   "too late: '%s' passes everything since the time is over; xdp-cuckoo%s confirm "
					   "--force lets it filter",
					   session.name, session_name_option(session.name));
	}
	if (!error)
		error = change_confirm(&session, &was_waiting, &reason);
	session_close(&session);
	if (error == -ETIMEDOUT)
		return command_fail(STATUS_NO, "%s", reason.text);
	if (!error && !was_waiting)
		return command_fail(STATUS_NO,
				    "nothing waits to be confirmed; a change that is not confirmed in time is "
				    "undone: see xdp-cuckoo status");
	return command_answer(error, &reason, json_pack("{s:s, s:b}", "confirmed", invocation->name, "changed", true));
}

const struct command command_confirm = {
	.name = "confirm",
	.usage = "[--force]",
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_confirm,
};
