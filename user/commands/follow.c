// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* follow: keeps lists of this host equal to those of a fleet. */
#include <errno.h>

#include "commands/fleet_config.h"
#include "fleet/follow.h"
#include "io/output.h"

static enum command_status run_follow(const struct invocation *invocation);

const struct command command_follow = {
	.name = "follow",
	.group = COMMAND_FLEET,
	.usage = "[--once] [--accept] [--config FILE]",
	.summary = "keep lists of this host equal to those of a fleet",
	.help = "Reads the lists that [fleet] in the configuration names from the fleet's broker,\n"
		"and applies each change as it comes, until SIGINT or SIGTERM. Each list is a\n"
		"named list of this host: see `lists`. The position in the broker's log is stored\n"
		"with the rules, in one transaction, so no change is lost or done twice.\n"
		"Without a broker the filter continues, and `follow` catches up later. If the log\n"
		"does not continue at the position of this host, `follow` reads the whole list\n"
		"and changes only what differs. It leaves out rules that would lock this host\n"
		"out, and reports them. It stops changing a list if the broker no longer has the list, has\n"
		"another fleet of the same name, or would delete more than half of the list\n"
		"(max-shrink).\n"
		"  --once         end when all lists are level with the broker\n"
		"  --accept       apply what the broker has, also where `follow` stops otherwise\n"
		"  --config FILE  the configuration (default: " CONFIG_DIR "/NAME.conf)\n"
		"xdp-cuckoo-follow@NAME.service runs it. Status 1: something waits for --accept.\n"
		"\n"
		"  xdp-cuckoo follow\n"
		"  xdp-cuckoo follow --once --accept\n",
	.options = OPTION_FOLLOW | OPTION_CONFIG,
	.max = 0,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_CHILD,
	.run = run_follow,
};

static void note(const char *text)
{
	output_note("%s", text);
}

static enum command_status run_follow(const struct invocation *invocation)
{
	struct config *config;
	struct reason reason;
	enum command_status status = fleet_config_open(invocation, &config);
	struct follow follow = { .state = invocation->state,
				 .name = invocation->name,
				 .is_once = invocation->is_once,
				 .is_accepted = invocation->is_accepted,
				 .note = note };
	int error;

	if (status != STATUS_DONE)
		return status;
	follow.options = &config->fleet;
	error = follow_run(&follow, &reason);
	config_close(config);
	if (error == -EBADE)
		return command_error(STATUS_NO, "%s", reason.text);
	return error ? fleet_failed(error, &reason) : STATUS_DONE;
}
