// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* backup: writes all that a store holds. restore: makes a store equal to that. */
#include <sys/stat.h>

#include "commands/command.h"
#include "change/confirm_watchdog.h"
#include "io/output.h"
#include "io/signals.h"
#include "io/whole_file.h"
#include "lists/backup.h"

static enum command_status run_backup(const struct invocation *invocation);
static enum command_status run_restore(const struct invocation *invocation);

extern const struct command command_import;

const struct command command_backup = {
	.name = "backup",
	.group = COMMAND_RULES,
	.usage = "[FILE|-]",
	.summary = "write all that is stored: rules, lists, policies",
	.help = "Writes all that is stored under the --name to standard output, or to FILE: rules\n"
		"with comments, owners and ends, lists with their sources and what `refresh` knows\n"
		"of them, policies and monitor-only. FILE replaces an older file only when it is\n"
		"complete, and a new one is for its owner only. It is text: a rule, a list or a\n"
		"setting per line. `restore` reads it, on any host and in any kind of table. The\n"
		"interfaces and the size and kind of the table are not in it: they are in the\n"
		"configuration, or the options of `load`.\n"
		"Timeouts are written as moments in UTC: a rule ends when it would have ended.\n"
		"Rules that have ended are left out. While a change waits for `confirm`, the\n"
		"backup has the rules with that change, and a note says so.\n"
		"\n"
		"  xdp-cuckoo backup /root/xdp-cuckoo.backup\n"
		"  xdp-cuckoo backup | ssh other xdp-cuckoo restore - --confirm 1m\n",
	.max = 1,
	.needs = PRIVILEGE_READ | PRIVILEGE_WRITE,
	.run = run_backup,
};

const struct command command_restore = {
	.name = "restore",
	.group = COMMAND_RULES,
	.usage = IMPORT_USAGE,
	.summary = "make rules, lists and policies equal to a backup",
	.help = "Makes all that is stored under the --name equal to a file that `backup` wrote.\n"
		"What the backup does not have is deleted. It is one change: packets meet either\n"
		"the old rules or the new ones, and if a line is bad or missing, nothing changes.\n"
		"A rule with a timeout ends when it would have ended without the restore, by the\n"
		"clock of this host; a rule that should have ended by now is not restored.\n"
		"With a file that is no backup, does what `import` does, and takes its options.\n"
		"A backup takes these:\n"
		"  --dry-run       only check the file, and say what it has\n"
		"  --confirm TIME  undo all of it, policies too, unless `xdp-cuckoo confirm` comes\n"
		"                  within TIME after it is done; `refresh` then fetches anew\n"
		"  --force         even if it blocks this host's own addresses, its default\n"
		"                  gateway, its name servers or your SSH session, or drops ARP\n"
		"\n"
		"  xdp-cuckoo restore /root/xdp-cuckoo.backup --confirm 1m\n"
		"  xdp-cuckoo restore /root/xdp-cuckoo.backup --dry-run\n",
	.options = IMPORT_OPTIONS,
	.min = 1,
	.max = -1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_restore,
};

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
		return command_error(STATUS_USAGE, "a backup is no JSON; leave out --json, or name a FILE");
	error = command_open_store(invocation, &store, &reason);
	if (error)
		return command_failed(error, &reason);
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
		return command_error(STATUS_SYSTEM, "cannot write '%s': %s", path, reason_of_write(error));
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
		command_report_targets(&session);
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
		return command_error(STATUS_USAGE,
				     "a backup is restored as a whole, and alone: leave out all options but --dry-run, "
				     "--confirm and --force");
	if (invocation->is_dry_run && invocation->confirm_ms)
		return command_error(STATUS_USAGE, "--dry-run changes nothing that --confirm could undo");
	if (invocation->confirm_ms)
		watchdog_ignore_hangup();
	error = backup_read(&backup, invocation->operands[0], command_say_bad_line, &reason);
	if (!error && !invocation->is_dry_run)
		error = restore(&backup, invocation, &watchdog, &info, &reason);
	backup_free(&backup);
	/* Before the result is printed: a closed pipe could end this process. */
	if (watchdog.pending_id) {
		const int unwatched = watchdog_start(&watchdog, error ? &ignored : &reason);

		error = error ? error : unwatched;
	}
	if (error)
		return command_failed(error, &reason);
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
