// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* xdp-cuckoo-fleet: one set of lists on many hosts. */
#include <stddef.h>

#include "command/command.h"

extern const struct command command_fleet, command_publish, command_follow;

static const struct command *const commands[] = {
	&command_fleet,
	&command_publish,
	&command_follow,
	NULL,
};

static const struct help_text texts[] = {
#include "help-fleet.h"
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	return program_run(argc, argv, &(struct program){ PROGRAM_FLEET, commands, texts });
}
