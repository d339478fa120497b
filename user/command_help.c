// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * help, version. Help is made from the command table; laid-out prose is the one thing that is printed
 * here and not by output.c.
 */
#include <stdio.h>

#include "command.h"
#include "output.h"
#include "version.h"

static enum command_status run_help(const struct invocation *invocation);
static enum command_status run_version(const struct invocation *invocation);

const struct command command_help = {
	.name = "help",
	.usage = "[COMMAND]",
	.summary = "explain the tool or a command",
	.help = "\n"
	"  xdp-cuckoo help\n"
	"  xdp-cuckoo help add\n",
	.min = 0,
	.max = 1,
	.run = run_help,
};

const struct command command_version = {
	.name = "version",
	.usage = "",
	.summary = "print the version of tool, table and store",
	.help = "\n"
	"  xdp-cuckoo version\n"
	"  xdp-cuckoo version --json\n",
	.run = run_version,
};

static const char introduction[] =
	"xdp-cuckoo drops blocklisted flows in the network driver (XDP), by a cuckoo filter.\n"
	"\n"
	"usage: xdp-cuckoo [--json] [--name NAME] [--state DIR] [--pins DIR] COMMAND ...\n"
	"\n";

static const char ending[] =
	"\n"
	"  --json         print JSON, errors too\n"
	"  --name NAME    the filter and its rules (default: " APPLY_NAME_DEFAULT ")\n"
	"  --state DIR    where rules are kept (default: " APPLY_STATE_DEFAULT "), in DIR/NAME\n"
	"  --pins DIR     without CAP_SYS_ADMIN: where running filters are pinned (default:\n"
	"                 " KERNEL_PINS_DEFAULT "), a directory of the user's in a BPF file system\n"
	"\n"
	"Status: 0 done or yes; 1 no; 2 usage or bad input; 3 the system refused; 4 table full or\n"
	"memory short; 5 another XDP program is in the way.\n"
	"First steps: xdp-cuckoo load eth0; xdp-cuckoo add 192.0.2.1; xdp-cuckoo stats.\n"
	"More: xdp-cuckoo help COMMAND.\n";

static void print_command(const struct command *command)
{
	printf("usage: xdp-cuckoo %s%s%s\n%s\n\n", command->name, *command->usage ? " " : "",
	       command->usage, command->summary);
	fputs(command->help + (*command->help == '\n'), stdout);
}

static void print_all(void)
{
	fputs(introduction, stdout);
	for (const struct command *const *command = command_table; *command; command++)
		printf("  %-12s %s\n", (*command)->name, (*command)->summary);
	fputs(ending, stdout);
}

static json_t *describe_command(const struct command *command)
{
	return json_pack("{s:s, s:s, s:s, s:s}", "command", command->name, "usage", command->usage,
			 "summary", command->summary, "help", command->help);
}

static json_t *describe_all(void)
{
	json_t *rows = json_array();

	for (const struct command *const *command = command_table; *command; command++)
		json_array_append_new(rows, describe_command(*command));
	return rows;
}

static enum command_status run_help(const struct invocation *invocation)
{
	const struct command *command = NULL;

	if (invocation->count) {
		command = command_find(invocation->operands[0]);
		if (!command)
			return command_unknown(invocation->operands[0]);
	}
	if (output_is_json())
		output_print(command ? describe_command(command) : describe_all());
	else if (command)
		print_command(command);
	else
		print_all();
	return STATUS_DONE;
}

static enum command_status run_version(const struct invocation *invocation)
{
	(void)invocation;
	output_print(json_pack("{s:s, s:i, s:i}", "xdp-cuckoo", VERSION, "table_version", ABI_VERSION,
			       "store_schema", STORE_SCHEMA));
	return STATUS_DONE;
}
