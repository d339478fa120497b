// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* import: adds the rules of a list, or makes the rules equal to it, in one change. export, backup, restore. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command/command.h"
#include "base/clock.h"
#include "change/change.h"
#include "io/output.h"
#include "io/signals.h"
#include "io/whole_file.h"
#include "lists/backup.h"
#include "lists/list.h"

static json_int_t count_of(const json_t *answer, const char *name)
{
	return json_integer_value(json_object_get(answer, name));
}

static enum command_status import_files(const struct invocation *invocation, bool is_restore)
{
	const struct import_options options = command_import_options(invocation);
	const char *format = invocation->list_format;
	struct command_imported result;
	struct reason reason;
	json_int_t added;
	json_t *answer;
	int error;

	if (format && !list_format_named(format))
		return command_fail_choices("--format", format, "text|ipset|nft|spamhaus|csv|iptables|p2p|dshield");
	if (invocation->json_path && (format || invocation->set_name))
		return command_fail(STATUS_USAGE, "--json-path names the format: leave out --format and --set");
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
	added = count_of(answer, "added");
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
	if (is_restore)
		output_warning("this was no backup: %s added, and what was stored stays",
			       !added			? "no rule was" :
			       invocation->is_dry_run ? "its rules would be" :
							"its rules were");
	return result.bad_lines ? STATUS_USAGE : STATUS_DONE;
}

static enum command_status run_import(const struct invocation *invocation)
{
	return import_files(invocation, false);
}

const struct command command_import = {
	.name = "import",
	.usage = "FILE...|- [--list NAME] [--replace] [--action drop|pass|monitor] [--monitor-only] [--new-only] "
		 "[--format text|ipset|nft|spamhaus|csv|iptables|p2p|dshield] [--set SET] [--json-path PATH] "
		 "[--dry-run] [--strict] [--timeout TIME] "
		 "[--confirm TIME] [--force]",
	.min = 1,
	.max = -1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_import,
};

/* ---- export ---- */

#define LOSSES_SHOWN 20

struct export
{
	struct store *store; /* NULL: there is none */
	FILE *to;
	enum list_format format;
	unsigned int list;     /* number of the list to export; 0: all rules */
	struct rule_set rules; /* collected for ipset and nft, which group rules into sets */
	__u64 written, lost;
};

static int export_rule(const struct rule *rule, void *context)
{
	struct export *export = context;

	if (rule->timeout_ms < 0 || (export->list && !(rule_owners_now(rule) >> export->list & 1)))
		return 0;
	export->written++;
	if (export->format == LIST_TEXT)
		list_write_text(export->to, rule);
	else if (export->format == LIST_CSV)
		list_write_csv(export->to, rule);
	else
		return rule_set_add(&export->rules, rule);
	return 0;
}

static void report_loss(const struct rule *rule, const char *what, void *context)
{
	struct export *export = context;
	char text[RULE_TEXT_BYTES];

	export->lost++;
	if (export->lost <= LOSSES_SHOWN)
		command_fail(STATUS_NO, "'%s' %s", rule_format(rule, text), what);
}

static int write_rules(FILE *to, void *context)
{
	struct export *export = context;
	struct store *store = export->store;
	const struct list_losses losses = { report_loss, export };
	int error;

	export->to = to;
	if (export->format == LIST_CSV)
		list_write_csv_heading(export->to);
	error = store ? store_each(store, export_rule, export) : 0;
	if (!error && export->format == LIST_IPSET)
		error = list_write_ipset(export->to, &export->rules, &losses);
	if (!error && export->format == LIST_NFT)
		error = list_write_nft(export->to, &export->rules, &losses);
	rule_set_close(&export->rules);
	if (export->lost > LOSSES_SHOWN)
		command_fail(STATUS_NO, "%llu more rules like these", export->lost - LOSSES_SHOWN);
	return error;
}

/* Not called with --list, which asks only for a part. */
static void note_left_out(struct store *store, const struct store_lists *lists)
{
	struct store_settings settings;
	bool has_lists = false;

	for (size_t i = 1; i <= STORE_LISTS_MAX; i++)
		has_lists |= lists->list[i].name[0] != '\0';
	if (!store || store_settings(store, &settings))
		return;
	if (has_lists || memcmp(&settings, &store_settings_default, sizeof(settings)) != 0)
		output_note("lists, owners of rules, policies and monitor-only are left out; all of it is written by: "
			    "xdp-cuckoo backup FILE");
}

static enum command_status run_export(const struct invocation *invocation)
{
	const char *path = invocation->count ? invocation->operands[0] : "-";
	const char *format = invocation->list_format, *ending = strrchr(path, '.');
	struct export export = { .format = LIST_TEXT };
	enum command_status status;
	struct store_lists lists;
	struct store *store;

	/* `export csv` */
	if (!strcmp(path, "json") || list_format_named(path))
		return command_fail(STATUS_USAGE,
				    "export '%s': write --format text|ipset|nft|csv; rules as JSON are printed by: "
				    "xdp-cuckoo list --json; a file of that name is ./%s",
				    path, path);
	if (invocation->count && command_is_list(invocation, path))
		return command_fail(STATUS_USAGE,
				    "export '%s': to print the list of this name: xdp-cuckoo%s export --list %s; a file "
				    "of that name is ./%s",
				    path, session_name_option(invocation->name), path, path);
	if (!format && ending && (!strcmp(ending, ".json") || list_format_named(ending + 1) > LIST_TEXT))
		return command_fail(STATUS_USAGE,
				    "export '%s': which format? Write --format %s; rules as JSON are printed by: xdp-cuckoo "
				    "list --json",
				    path,
				    strcmp(ending, ".json") ? ending + 1 : "nft, for nft -j -f, or --format text");
	if (format)
		export.format = list_format_named(format);
	if (format && !strcmp(format, "json"))
		return command_fail(STATUS_USAGE,
				    "--format 'json': rules as JSON are printed by: xdp-cuckoo list --json");
	if (!export.format || (export.format > LIST_NFT && export.format != LIST_CSV))
		return command_fail_choices("--format", format, "text|ipset|nft|csv");
	if (output_is_json() && whole_file_is_output(path))
		return command_fail(STATUS_USAGE,
				    "a list is no JSON; rules as JSON are printed by: xdp-cuckoo list --json");
	status = command_read_store(invocation, !invocation->list_name, &store);
	if (status != STATUS_DONE)
		return status;
	status = command_find_list(invocation, store, &lists, &export.list);
	if (status == STATUS_DONE && !export.list)
		note_left_out(store, &lists);
	export.store = store;
	if (status == STATUS_DONE)
		status = command_write_file(path, write_rules, &export);
	store_close(store);
	if (status == STATUS_DONE && !whole_file_is_output(path))
		output_print(json_pack("{s:I, s:I}", "exported", (json_int_t)(export.written - export.lost), "not_whole",
				       (json_int_t) export.lost));
	return status == STATUS_DONE && export.lost ? STATUS_NO : status;
}

const struct command command_export = {
	.name = "export",
	.usage = "[FILE|-] [--list NAME] [--format text|ipset|nft|csv]",
	.max = 1,
	.needs = PRIVILEGE_READ | PRIVILEGE_WRITE,
	.run = run_export,
};

/* ---- backup, restore ---- */

static int write_backup(FILE *to, void *store)
{
	return backup_write(to, store);
}

static enum command_status run_backup(const struct invocation *invocation)
{
	const char *path = invocation->count ? invocation->operands[0] : "-";
	const bool is_output = whole_file_is_output(path);
	struct store_pending pending;
	enum command_status status;
	struct store *store;

	if (output_is_json() && is_output)
		return command_fail(STATUS_USAGE, "a backup is no JSON; leave out --json, or name a FILE");
	status = command_read_store(invocation, true, &store);
	if (status != STATUS_DONE)
		return status;
	if (store && !store_pending(store, &pending) && pending.id)
		output_note("a change waits for xdp-cuckoo confirm: the backup has the rules with that change");
	umask(077);
	status = command_write_file(path, write_backup, store);
	store_close(store);
	if (status == STATUS_DONE && !is_output)
		output_print(json_pack("{s:o}", "backup", output_string(path)));
	return status;
}

static enum command_status run_restore(const struct invocation *invocation)
{
	struct command_change change = {};
	struct session *session = &change.session;
	struct store_info info = {};
	struct signals signals;
	struct backup backup;
	struct reason reason;
	int error;

	if (!backup_is(invocation->operands[0]))
		return import_files(invocation, true);
	error = backup_read(&backup, invocation->operands[0], command_report_bad_line, &reason);
	if (!error)
		error = command_open_change(invocation, true, NULL, &change, &reason);
	if (!error) {
		command_report_session(session);
		/* Half a pending change would make the filters pass everything. */
		backup.is_compared = output_is_json();
		error = signals_take(&signals);
		if (error)
			reason_set(&reason, error, "cannot wait for signals: %s", strerror(-error));
		else
			error = backup_restore(&backup, session, invocation->confirm_ms, &reason);
		signals_give_back(&signals);
	}
	if (!error) {
		command_report_rebuilds(session);
		info = session->planned;
		if (!session->is_dry_run)
			store_info(session->store, &info);
	}
	change.is_changed = backup.is_changed;
	backup_free(&backup); /* before the watchdog, which would keep a copy of this memory */
	return command_end_change(invocation, &change, error, &reason,
				  json_pack("{s:I, s:I, s:I}", "rules", (json_int_t)info.rules, "lists",
					    (json_int_t)backup.lists_count, "ended_since", (json_int_t)backup.ended));
}

const struct command command_backup = {
	.name = "backup",
	.usage = "[FILE|-]",
	.max = 1,
	.needs = PRIVILEGE_READ | PRIVILEGE_WRITE,
	.run = run_backup,
};

const struct command command_restore = {
	.name = "restore",
	.usage = "FILE|- [--dry-run] [--confirm TIME] [--force]",
	.min = 1,
	.max = 1,
	.instead = "a backup is restored as a whole, and alone; lists: xdp-cuckoo import FILE...",
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_restore,
};
