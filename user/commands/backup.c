// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* backup: writes all that a store holds. restore: makes a store equal to that. */
#include <sys/stat.h>

#include "commands/command.h"
#include "change/confirm_watchdog.h"
#include "io/output.h"
#include "io/signals.h"
#include "io/whole_file.h"
#include "lists/backup.h"

extern const struct command command_import;

static enum command_status run_backup(const struct invocation *invocation)
{
	const char *path = invocation->count ? invocation->operands[0] : "-";
	const bool is_output = whole_file_is_output(path);
	struct store_pending pending;
	struct whole_file file;
	struct reason reason;
	struct store *store;
	int error;

	if (output_is_json() && is_output)
		return command_fail(STATUS_USAGE, "a backup is no JSON; leave out --json, or name a FILE");
	error = command_open_store(invocation, &store, &reason);
	if (error)
		return command_fail_because(error, &reason);
	if (!store)
		command_note_no_store(invocation);
	else if (!store_pending(store, &pending) && pending.id)
		output_note("a change waits for xdp-cuckoo confirm: the backup has the rules with that change");
	umask(077);
	error = is_output ? backup_write(output_document(), store) : whole_file_open(&file, path);
	if (!is_output && !error)
		error = whole_file_close(&file, backup_write(file.to, store));
	store_close(store);
	if (error)
		return command_fail(STATUS_SYSTEM, "cannot write '%s': %s", path, reason_of_write(error));
	if (!is_output)
		output_print(json_pack("{s:o}", "backup", output_string(path)));
	return STATUS_DONE;
}

static int restore(struct backup *backup, const struct invocation *invocation, struct watchdog *watchdog,
		   struct store_info *info, struct reason *reason)
{
	struct session session;
	struct signals signals;
	struct guard guard;
	__s64 left_ms;
	int error = command_open_guarded(invocation, &session, &guard, reason);

	if (!error) {
		command_report_session(&session);
		signals_take(&signals); /* half a pending change would make the filters pass everything */
		error = backup_restore(backup, &session, invocation->confirm_ms, reason);
		signals_give_back(&signals);
	}
	if (!error) {
		command_report_rebuilds(&session);
		store_info(session.store, info);
	}
	/* Also after an error that came when all was stored. */
	if (session.confirm_ms && session.store && !change_pending_left(&session, &watchdog->pending_id, &left_ms))
		watchdog->deadline_ms = watchdog_deadline(left_ms);
	session_close(&session);
	guard_close(&guard);
	return error;
}

static enum command_status run_restore(const struct invocation *invocation)
{
	const bool is_partial = invocation->list_name || invocation->list_format || invocation->set_name ||
				invocation->is_replace || invocation->is_strict || invocation->action ||
				invocation->timeout_ms || invocation->load.is_monitor_only;
	struct watchdog watchdog = { .state = invocation->state, .name = invocation->name };
	struct reason reason, ignored;
	struct backup backup;
	struct store_info info = {};
	int error;

	if (!backup_is(invocation->operands[0]))
		return command_import.run(invocation);
	if (is_partial || invocation->count > 1)
		return command_fail(STATUS_USAGE,
				    "a backup is restored as a whole, and alone: leave out all options but --dry-run, "
				    "--confirm and --force");
	if (invocation->is_dry_run && invocation->confirm_ms)
		return command_fail(STATUS_USAGE, "--dry-run changes nothing that --confirm could undo");
	if (invocation->confirm_ms)
		watchdog_ignore_hangup();
	error = backup_read(&backup, invocation->operands[0], command_report_bad_line, &reason);
	if (!error && !invocation->is_dry_run)
		error = restore(&backup, invocation, &watchdog, &info, &reason);
	backup_free(&backup);
	/* Before the result is printed: a closed pipe could end this process. */
	if (watchdog.pending_id) {
		const int unwatched = watchdog_start(&watchdog, error ? &ignored : &reason);

		error = error ? error : unwatched;
	}
	if (error)
		return command_fail_because(error, &reason);
	if (invocation->is_dry_run)
		output_print(json_pack("{s:b, s:I, s:I}", "dry_run", true, "rule_lines", (json_int_t)backup.lines,
				       "lists", (json_int_t)backup.lists_count));
	else
		output_print(json_pack("{s:I, s:I, s:I}", "rules", (json_int_t)info.rules, "lists",
				       (json_int_t)backup.lists_count, "ended_since", (json_int_t)backup.ended));
	if (watchdog.pending_id)
		command_report_confirm(invocation, watchdog.deadline_ms);
	return STATUS_DONE;
}

const struct command command_backup = {
	.name = "backup",
	.group = COMMAND_RULES,
	.usage = "[FILE|-]",
	.summary = "write all that is stored: rules, lists, policies",
	.max = 1,
	.needs = PRIVILEGE_READ | PRIVILEGE_WRITE,
	.run = run_backup,
};

const struct command command_restore = {
	.name = "restore",
	.group = COMMAND_RULES,
	.usage = IMPORT_USAGE,
	.summary = "make rules, lists and policies equal to a backup",
	.options = IMPORT_OPTIONS,
	.min = 1,
	.max = -1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_restore,
};
