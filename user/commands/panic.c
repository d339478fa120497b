// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* panic: passes everything at once. */
#include <string.h>

#include "commands/command.h"
#include "filter/panic.h"
#include "io/output.h"

static enum command_status run_panic(const struct invocation *invocation)
{
	bool is_on = true;
	struct reason reason;
	size_t meant = 0;
	int error;

	if (invocation->count && strcmp(invocation->operands[0], "off") && strcmp(invocation->operands[0], "on"))
		return command_fail_choices("panic", invocation->operands[0], "on|off");
	is_on = !invocation->count || !strcmp(invocation->operands[0], "on");
	error = filter_panic(invocation->is_all ? NULL : invocation->name, is_on, &meant, &reason);
	if (error)
		return command_fail_because(error, &reason);
	if (!meant)
		return !invocation->is_all ?
			       command_fail_not_running(invocation->name) :
			       command_fail(STATUS_NO, "no filter is running here; xdp-cuckoo load IFACE runs one");
	output_print(json_pack("{s:b, s:I}", "panic", is_on, "filters", (json_int_t)meant));
	return STATUS_DONE;
}

const struct command command_panic = {
	.name = "panic",
	.group = COMMAND_SAFETY,
	.usage = "[on|off] [--all]",
	.summary = "pass everything at once; off: filter again",
	.options = OPTION_ALL,
	.max = 1,
	.needs = PRIVILEGE_KERNEL,
	.run = run_panic,
};
