// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* export: the stored rules as a list, for import, ipset or nft. */
#include <string.h>

#include "commands/command.h"
#include "lists/list.h"
#include "io/output.h"
#include "io/whole_file.h"

#define LOSSES_SHOWN 20

struct export
{
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

static int write_rules(struct export *export, struct store *store)
{
	const struct list_losses losses = { report_loss, export };
	int error;

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

static enum command_status write_all(struct export *export, struct store *store, const char *path)
{
	const bool is_output = whole_file_is_output(path);
	struct whole_file file;
	int error;

	export->to = is_output ? output_document() : NULL;
	error = is_output ? write_rules(export, store) : whole_file_open(&file, path);

	if (!is_output && !error) {
		export->to = file.to;
		error = whole_file_close(&file, write_rules(export, store));
	}
	if (error)
		return command_fail(STATUS_SYSTEM, "cannot write '%s': %s", path, reason_of_write(error));
	if (!is_output)
		output_print(json_pack("{s:I, s:I}", "exported", (json_int_t) export->written, "not_whole",
				       (json_int_t) export->lost));
	return export->lost ? STATUS_NO : STATUS_DONE;
}

/* Not with --list, which asks for a part. */
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
	struct reason reason;
	struct store *store;
	int error;

	/* `export csv` */
	if (!strcmp(path, "json") || list_format_named(path))
		return command_fail(STATUS_USAGE,
				    "export '%s': write --format text|ipset|nft|csv; rules as JSON are printed by: "
				    "xdp-cuckoo list --json; a file of that name is ./%s",
				    path, path);
	if (invocation->count && command_is_list(invocation, path))
		return command_fail(STATUS_USAGE,
				    "export '%s': to print the list of this name: xdp-cuckoo export --list %s; a file of "
				    "that name is ./%s",
				    path, path, path);
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
	if (!export.format || export.format == LIST_SPAMHAUS || export.format == LIST_IPTABLES)
		return command_fail_choices("--format", format, "text|ipset|nft|csv");
	if (output_is_json() && whole_file_is_output(path))
		return command_fail(STATUS_USAGE,
				    "a list is no JSON; rules as JSON are printed by: xdp-cuckoo list --json");
	error = command_open_store(invocation, &store, &reason);
	if (error)
		return command_fail_because(error, &reason);
	if (!store)
		command_note_no_store(invocation);
	status = command_find_list(invocation, store, &lists, &export.list);
	if (status == STATUS_DONE && !export.list)
		note_left_out(store, &lists);
	if (status == STATUS_DONE)
		status = write_all(&export, store, path);
	store_close(store);
	return status;
}

const struct command command_export = {
	.name = "export",
	.group = COMMAND_RULES,
	.usage = "[FILE|-] [--list NAME] [--format text|ipset|nft|csv]",
	.summary = "write all rules, or those of a list, as a list",
	.options = OPTION_LIST_FORMAT | OPTION_LIST,
	.max = 1,
	.needs = PRIVILEGE_READ | PRIVILEGE_WRITE,
	.run = run_export,
};
