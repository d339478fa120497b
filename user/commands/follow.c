// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* follow: keeps lists of this host equal to those of a fleet. */
#include <errno.h>

#include "commands/fleet_config.h"
#include "fleet/follow.h"
#include "io/output.h"

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
		return command_fail(STATUS_NO, "%s", reason.text);
	return error ? fleet_fail(error, &reason) : STATUS_DONE;
}

const struct command command_follow = {
	.name = "follow",
	.group = COMMAND_FLEET,
	.usage = "[--once] [--accept] [--config FILE]",
	.summary = "keep lists of this host equal to those of a fleet",
	.options = OPTION_FOLLOW | OPTION_CONFIG,
	.max = 0,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_CHILD,
	.run = run_follow,
};
