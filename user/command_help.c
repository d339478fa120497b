// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* help, version. Help is made from the command table. */
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
	"usage: xdp-cuckoo [--json] [--name NAME] [--state DIR] COMMAND ...\n"
	"\n";

static const char ending[] =
	"\n"
	"  --json         print JSON, errors too\n"
	"  --name NAME    the filter and its rules (default: " APPLY_NAME_DEFAULT ")\n"
	"  --state DIR    where rules are kept (default: " APPLY_STATE_DEFAULT "), in DIR/NAME\n"
	"\n"
	"Status: 0 done or yes; 1 no; 2 usage or bad input; 3 the system refused; 4 table full or\n"
	"memory short; 5 another XDP program is in the way.\n"
	"First steps: xdp-cuckoo load eth0; xdp-cuckoo add 192.0.2.1; xdp-cuckoo stats.\n"
	"More: xdp-cuckoo help COMMAND.\n";

static void help_of_command(const struct command *command)
{
	char heading[512];

	snprintf(heading, sizeof(heading), "usage: xdp-cuckoo %s%s%s\n%s\n\n", command->name,
		 *command->usage ? " " : "", command->usage, command->summary);
	output_text(heading);
	output_text(command->help + (*command->help == '\n'));
}

static void help_of_all(void)
{
	char line[256];

	output_text(introduction);
	for (const struct command *const *command = command_table; *command; command++) {
		snprintf(line, sizeof(line), "  %-9s %s\n", (*command)->name, (*command)->summary);
		output_text(line);
	}
	output_text(ending);
}

static enum command_status run_help(const struct invocation *invocation)
{
	const struct command *command;

	if (!invocation->count) {
		help_of_all();
		return STATUS_DONE;
	}
	command = command_find(invocation->operands[0]);
	if (!command)
		return command_error(STATUS_USAGE, "no command '%s'; see xdp-cuckoo help",
				     invocation->operands[0]);
	help_of_command(command);
	return STATUS_DONE;
}

static enum command_status run_version(const struct invocation *invocation)
{
	(void)invocation;
	output_print(json_pack("{s:s, s:i, s:i}", "xdp-cuckoo", VERSION, "table_version", ABI_VERSION,
			       "store_schema", STORE_SCHEMA));
	return STATUS_DONE;
}
