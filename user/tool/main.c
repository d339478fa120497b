// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* xdp-cuckoo: rules, lists in files, load, status, safety. It starts the other programs. */
#include <stddef.h>

#include "command/command.h"

extern const struct command command_load, command_unload, command_status, command_stats, command_add, command_del,
	command_test, command_list, command_flush, command_import, command_export, command_backup, command_restore,
	command_lists, command_batch, command_expire, command_policy, command_monitor_only, command_panic,
	command_confirm, command_up, command_resize, command_object, command_check;

static const struct command *const commands[] = {
	&command_load,   &command_unload, &command_status,       &command_stats, &command_add,
	&command_del,    &command_test,   &command_list,         &command_flush, &command_import,
	&command_export, &command_backup, &command_restore,      &command_lists, &command_batch,
	&command_expire, &command_policy, &command_monitor_only, &command_panic, &command_confirm,
	&command_up,     &command_resize, &command_object,       &command_check, NULL,
};

static const struct help_text texts[] = {
#include "help-tool.h"
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	return program_run(argc, argv, &(struct program){ PROGRAM_TOOL, commands, texts });
}
