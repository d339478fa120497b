// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* xdp-cuckoo-feed: lists that others feed. */
#include <stddef.h>

#include "command/command.h"

extern const struct command command_refresh, command_flowspec, command_crowdsec;

static const struct command *const commands[] = {
	&command_refresh,
	&command_flowspec,
	&command_crowdsec,
	NULL,
};

static const struct help_text texts[] = {
#include "help-feed.h"
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	return program_run(argc, argv, &(struct program){ PROGRAM_FEED, commands, texts });
}
