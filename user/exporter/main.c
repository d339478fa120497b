// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* xdp-cuckoo-exporter: metrics. */
#include <stddef.h>

#include "command/command.h"

extern const struct command command_metrics, command_exporter;

static const struct command *const commands[] = {
	&command_metrics,
	&command_exporter,
	NULL,
};

static const struct help_text texts[] = {
#include "help-exporter.h"
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	return program_run(argc, argv, &(struct program){ PROGRAM_EXPORTER, commands, texts });
}
