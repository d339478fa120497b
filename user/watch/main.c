// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* xdp-cuckoo-watch: what an operator looks at. */
#include <stddef.h>

#include "command/command.h"

extern const struct command command_top, command_monitor;

static const struct command *const commands[] = {
	&command_top,
	&command_monitor,
	NULL,
};

static const struct help_text texts[] = {
#include "help-watch.h"
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	return program_run(argc, argv, &(struct program){ PROGRAM_WATCH, commands, texts });
}
