// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* An import of a list, for all commands that read lists. */
#include "command/command.h"

#include <errno.h>

#include "base/clock.h"
#include "change/change.h"

struct import_options command_import_options(const struct invocation *invocation)
{
	return (struct import_options){ .name = invocation->name,
					.state = invocation->state,
					.list_name = invocation->list_name,
					.list_format = invocation->list_format,
					.json_path = invocation->json_path,
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

/* The numbers of an import. A dry run shows them even if the guard would refuse the change. */
static json_t *answer_of(const struct import *import, const struct session *session, bool is_made)
{
	const double elapsed_s = clock_seconds() - import->start_s;
	const struct rule_diff *diff = &import->equal.diff;
	struct store_info info = {};
	json_t *answer = session->is_dry_run ? json_pack("{s:b}", "dry_run", true) : json_object();

	json_object_update_new(answer, json_pack("{s:I, s:I, s:I, s:I}", "added", diff->added, "updated", diff->updated,
						 "kept", diff->kept, "removed", diff->removed));
	if (import->options->list_name)
		json_object_set_new(answer, "left_to_others", json_integer(diff->left));
	json_object_set_new(answer, "bad_lines", json_integer(import->bad));
	json_object_set_new(answer, "changed",
			    json_boolean(diff->added || diff->updated || diff->removed || diff->left));
	if (!is_made || session->is_dry_run)
		return answer;
	command_report_rebuilds(session);
	store_info(session->store, &info);
	json_object_update_new(answer, json_pack("{s:I, s:f, s:I}", "rules", info.rules, "elapsed_s", elapsed_s,
						 "rules_per_second", (json_int_t)(import->total / elapsed_s)));
	return answer;
}

int command_import_list(const struct import_options *options, char *const *paths, size_t paths_count,
			struct command_imported *imported, struct reason *reason)
{
	const struct invocation invocation = { .name = options->name,
					       .state = options->state,
					       .confirm_ms = options->confirm_ms,
					       .is_forced = options->is_forced,
					       .is_dry_run = options->is_dry_run };
	struct command_change change = {};
	struct import import;
	int error;

	error = import_open(&import, options, paths, paths_count, command_report_bad_line, reason);
	*imported = (struct command_imported){};
	if (!error)
		error = command_open_change(&invocation, true, NULL, &change, reason);
	if (!error) {
		command_report_session(&change.session);
		error = import_change(&import, &change.session, reason);
		/* The configuration may have made the list one by file: then `refresh` forgets the URL. */
		if (!error && !options->insist && !options->is_dry_run)
			command_note_feed(change.session.store, options->list_name);
		if (!error || (error == -ECANCELED && options->is_dry_run))
			imported->answer = answer_of(&import, &change.session, !error);
	}
	import_free(&import); /* before the watchdog, which would keep a copy of this memory */
	error = command_close_change(&change, error, reason);
	import_close(&import);
	imported->bad_lines = import.bad;
	imported->left_out = import.equal.left_out;
	imported->deadline_ms = change.watchdog.deadline_ms;
	return error;
}
