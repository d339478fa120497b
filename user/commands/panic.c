// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* panic: passes everything at once. */
#include <string.h>

#include "commands/command.h"
#include "filter/panic.h"
#include "io/output.h"

static enum command_status run_panic(const struct invocation *invocation);

const struct command command_panic = {
	.name = "panic",
	.group = COMMAND_SAFETY,
	.usage = "[on|off] [--all]",
	.summary = "pass everything at once; off: filter again",
	.help = "Every running filter of the --name, or with --all of every name, passes all\n"
		"packets from now on, until `panic off`, `unload` or a reboot. It changes only\n"
		"the running filters, so it works while another command runs, and if the\n"
		"stored rules are damaged. The rules stay, and you can change them meanwhile.\n"
		"Status 1: no filter runs. Status 3: a filter is of an unknown version, or may\n"
		"run but cannot be seen (no CAP_SYS_ADMIN); all other filters are in panic.\n"
		"\n"
		"  xdp-cuckoo panic --all\n"
		"  xdp-cuckoo panic off --all\n",
	.options = OPTION_ALL,
	.max = 1,
	.needs = PRIVILEGE_KERNEL,
	.run = run_panic,
};

static enum command_status run_panic(const struct invocation *invocation)
{
	bool is_on = true;
	struct reason reason;
	size_t meant = 0;
	int error;

	if (invocation->count && strcmp(invocation->operands[0], "off") && strcmp(invocation->operands[0], "on"))
		return command_say_choices("panic", invocation->operands[0], "on|off");
	is_on = !invocation->count || !strcmp(invocation->operands[0], "on");
	error = filter_panic(invocation->is_all ? NULL : invocation->name, is_on, &meant, &reason);
	if (error)
		return command_failed(error, &reason);
	if (!meant)
		return !invocation->is_all ?
			       command_say_not_running(invocation->name) :
			       command_error(STATUS_NO, "no filter is running here; xdp-cuckoo load IFACE runs one");
	output_print(json_pack("{s:b, s:I}", "panic", is_on, "filters", (json_int_t)meant));
	return STATUS_DONE;
}
