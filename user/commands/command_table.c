// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* All commands, in the order in which help shows them. */
#include <string.h>

#include "commands/command.h"
#include "base/suggest.h"

extern const struct command command_load, command_unload, command_status, command_stats;
extern const struct command command_add, command_del, command_test, command_list, command_flush;
extern const struct command command_import, command_export, command_resize, command_check, command_help;
extern const struct command command_batch, command_expire, command_version;
extern const struct command command_policy, command_monitor_only, command_panic, command_confirm;
extern const struct command command_bench, command_metrics, command_exporter, command_complete, command_monitor;
extern const struct command command_top, command_lists, command_up, command_down, command_check_config;
extern const struct command command_fleet, command_publish, command_follow;

const struct command *const command_table[] = {
	&command_load,         &command_unload,  &command_status,       &command_stats,    &command_top,
	&command_add,          &command_del,     &command_test,         &command_list,     &command_flush,
	&command_import,       &command_export,  &command_lists,        &command_batch,    &command_expire,
	&command_monitor,      &command_policy,  &command_monitor_only, &command_panic,    &command_confirm,
	&command_fleet,        &command_publish, &command_follow,       &command_up,       &command_down,
	&command_check_config, &command_resize,  &command_check,        &command_bench,    &command_metrics,
	&command_exporter,     &command_help,    &command_version,      &command_complete, NULL,
};

const struct command *command_find(const char *name)
{
	for (const struct command *const *command = command_table; *command; command++)
		if (!strcmp((*command)->name, name))
			return *command;
	return NULL;
}

enum command_status command_say_unknown(const char *name)
{
	struct suggest suggest = suggest_for(name);
	char text[SUGGEST_TEXT_BYTES];

	for (const struct command *const *command = command_table; *command; command++)
		if ((*command)->group != COMMAND_HIDDEN)
			suggest_offer(&suggest, (*command)->name);
	return command_error(STATUS_USAGE, "no command '%s'%s", name, suggest_text(&suggest, "xdp-cuckoo help", text));
}
