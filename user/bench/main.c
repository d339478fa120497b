// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* xdp-cuckoo-bench: what the filter costs. */
#include <stddef.h>

#include "command/command.h"

extern const struct command command_bench;

static const struct command *const commands[] = {
	&command_bench,
	NULL,
};

static const struct help_text texts[] = {
#include "help-bench.h"
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	return program_run(argc, argv, &(struct program){ PROGRAM_BENCH, commands, texts });
}
