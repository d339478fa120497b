// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* import: adds the rules of a list, or makes the rules equal to it, in one change. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "commands/command.h"
#include "change/change.h"
#include "lists/list.h"
#include "io/output.h"

struct import_options command_import_options(const struct invocation *invocation)
{
	return (struct import_options){ .name = invocation->name,
					.state = invocation->state,
					.list_name = invocation->list_name,
					.list_format = invocation->list_format,
					.set_name = invocation->set_name,
					.action = invocation->load.is_monitor_only ? RULE_MONITOR : invocation->action,
					.is_new_only = invocation->is_new_only,
					.timeout_ms = invocation->timeout_ms,
					.confirm_ms = invocation->confirm_ms,
					.is_replace = invocation->is_replace,
					.is_strict = invocation->is_strict,
					.is_dry_run = invocation->is_dry_run,
					.is_forced = invocation->is_forced };
}

static int change(struct import *import, const struct invocation *invocation, struct watchdog *watchdog,
		  json_t **answer, struct reason *reason)
{
	struct store_info info = {};
	struct import_report report = {};
	struct session session;
	struct guard guard;
	int error = command_open_guarded(invocation, &session, &guard, reason);

	if (!error) {
		guard.insist = import->options->insist;
		command_report_session(&session);
		error = import_change(import, &session, reason);
	}
	/* A dry run shows the numbers even if the guard would refuse the change. */
	if (!error || (error == -ECANCELED && session.is_dry_run)) {
		report = import_report(import);
		*answer = json_pack("{s:I, s:I, s:I, s:I}", "added", report.added, "updated", report.updated, "kept",
				    report.kept, "removed", report.removed);
		if (import->options->list_name)
			json_object_set_new(*answer, "left_to_others", json_integer(report.left));
		json_object_set_new(*answer, "bad_lines", json_integer(report.bad_lines));
		*answer = command_note_dry_run(invocation, *answer);
	}
	if (!error && !session.is_dry_run) {
		command_report_rebuilds(&session);
		store_info(session.store, &info);
		json_object_update_new(*answer,
				       json_pack("{s:I, s:f, s:I}", "rules", info.rules, "elapsed_s", report.seconds,
						 "rules_per_second", (json_int_t)(report.rules / report.seconds)));
	}
	command_close_pending(&session, &guard, watchdog);
	return error;
}

int command_import_list(const struct import_options *options, char *const *paths, size_t paths_count,
			struct command_imported *imported, struct reason *reason)
{
	const struct invocation invocation = { .name = options->name,
					       .state = options->state,
					       .is_forced = options->is_forced,
					       .is_dry_run = options->is_dry_run };
	struct watchdog watchdog = { .state = options->state, .name = options->name };
	struct import import;
	int error;

	*imported = (struct command_imported){};
	if (options->confirm_ms)
		watchdog_ignore_hangup();
	error = import_open(&import, options, paths, paths_count, command_report_bad_line, reason);
	if (!error)
		error = change(&import, &invocation, &watchdog, &imported->answer, reason);
	import_free(&import);
	error = command_start_watchdog(&watchdog, error, reason);
	import_close(&import);
	imported->bad_lines = import.bad;
	imported->left_out = import.left_out;
	imported->deadline_ms = watchdog.deadline_ms;
	return error;
}

static json_int_t count_of(const json_t *answer, const char *name)
{
	return json_integer_value(json_object_get(answer, name));
}

static enum command_status run_import(const struct invocation *invocation)
{
	const struct import_options options = command_import_options(invocation);
	const char *format = invocation->list_format;
	struct command_imported result;
	json_t *answer;
	struct reason reason;
	int error;

	if (format && !list_format_named(format))
		return command_fail_choices("--format", format, "text|ipset|nft|spamhaus|csv|iptables");
	if (invocation->load.is_monitor_only && invocation->action == RULE_PASS)
		return command_fail(STATUS_USAGE, "--monitor-only means --action monitor; drop one of the two");
	if (invocation->is_new_only && invocation->action == RULE_PASS)
		return command_fail(STATUS_USAGE, "--new-only is for rules that drop or monitor; drop one of the two");
	/* "import FILE LIST" */
	for (int i = 0; i < invocation->count; i++)
		if (access(invocation->operands[i], F_OK) && command_is_list(invocation, invocation->operands[i]))
			return command_fail(STATUS_USAGE, "import '%s': this is a list, and no file; write --list %s",
					    invocation->operands[i], invocation->operands[i]);
	error = command_import_list(&options, invocation->operands, invocation->count, &result, &reason);
	answer = result.answer;
	if (output_is_json() || !answer) {
		output_print(answer);
	} else {
		/* One line: "added 3, updated 0, kept 12, removed 1, bad lines 0; 15 rules in 0.02 s". */
		printf("%sadded %lld, updated %lld, kept %lld, removed %lld, bad lines %lld",
		       json_object_get(answer, "dry_run") ? "dry run: " : "", count_of(answer, "added"),
		       count_of(answer, "updated"), count_of(answer, "kept"), count_of(answer, "removed"),
		       count_of(answer, "bad_lines"));
		if (count_of(answer, "left_to_others"))
			printf(", left to others %lld", count_of(answer, "left_to_others"));
		if (json_object_get(answer, "rules"))
			printf("; %lld rules in %.3g s", count_of(answer, "rules"),
			       json_number_value(json_object_get(answer, "elapsed_s")));
		printf("\n");
		json_decref(answer);
	}
	if (!error && result.deadline_ms)
		command_report_confirm(invocation, result.deadline_ms);
	if (error)
		return command_fail_because(error, &reason);
	return result.bad_lines ? STATUS_USAGE : STATUS_DONE;
}

const struct command command_import = {
	.name = "import",
	.group = COMMAND_RULES,
	.usage = IMPORT_USAGE,
	.summary = "add the rules of a list, or make the rules equal to it",
	.options = IMPORT_OPTIONS,
	.min = 1,
	.max = -1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_import,
};
