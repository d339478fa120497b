// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* check-config: reads a configuration file, and says what is wrong with it. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "commands/command.h"
#include "config/config.h"
#include "kernel/interfaces.h"
#include "lists/import.h"
#include "io/output.h"

/* Tries an import that changes nothing. */
static bool is_list_right(const struct invocation *invocation, const struct config_list *list)
{
	struct import_options import = command_list_import(invocation, list);
	struct command_imported result = {};
	struct reason reason;
	int error;

	import.is_dry_run = true;
	error = config_check_list_file(list, &reason);
	if (!error)
		error = command_import_list(&import, &list->file, 1, &result, &reason);
	json_decref(result.answer);
	if (error)
		command_fail(STATUS_USAGE, "list '%s': %s", list->name, reason.text);
	return !error && !result.bad_lines;
}

static enum command_status run_check_config(const struct invocation *invocation)
{
	struct config *config;
	struct reason reason;
	bool is_right = true;
	int error = config_open(invocation->count ? invocation->operands[0] : NULL, invocation->name,
				command_report_bad_line, &config, &reason);

	for (size_t i = 0; !error && invocation->is_strict && i < config->lists_count; i++)
		is_right &= config->list[i].url || is_list_right(invocation, &config->list[i]);
	for (size_t i = 0; !error && i < config->interfaces_count; i++)
		if (!interfaces_is_there(config->interfaces[i]))
			output_note("no interface '%s' is there now; up waits for it as long as the key wait says, and "
				    "then fails",
				    config->interfaces[i]);
	for (size_t i = 0; !error && !invocation->is_strict && i < config->lists_count; i++)
		if (!config->list[i].url && access(config->list[i].file, R_OK))
			output_note("list '%s': cannot read '%s': %s", config->list[i].name, config->list[i].file,
				    strerror(errno));
	if (!error && is_right)
		output_print(json_pack("{s:s, s:I, s:I}", "configuration", "right", "interfaces",
				       (json_int_t)config->interfaces_count, "lists", (json_int_t)config->lists_count));
	config_close(config);
	if (error)
		return command_fail_because(error, &reason);
	return is_right ? STATUS_DONE : STATUS_USAGE;
}

const struct command command_check_config = {
	.name = "check-config",
	.group = COMMAND_RUN,
	.usage = "[FILE] [--strict]",
	.summary = "check a configuration file",
	.options = OPTION_STRICT,
	.max = 1,
	.needs = PRIVILEGE_READ,
	.run = run_check_config,
};
