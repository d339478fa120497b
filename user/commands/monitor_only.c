// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* monitor-only: counts what would be dropped, and drops nothing. */
#include <string.h>

#include "commands/command.h"
#include "io/output.h"

static enum command_status run_monitor_only(const struct invocation *invocation)
{
	const char *word = invocation->operands[0];
	const bool is_on = !strcmp(word, "on");
	struct session session;
	struct reason reason;
	int error;

	if (!is_on && strcmp(word, "off"))
		return command_fail_choices("monitor-only", word, "on|off");
	error = session_open(&session, invocation->state, invocation->name, &reason);
	if (!error) {
		command_report_session(&session);
		error = is_on ? 0 : command_report_blocked(&session, &reason);
	}
	if (!error)
		error = change_set_monitor_only(&session, is_on, &reason);
	session_close(&session);
	return command_answer(error, &reason, json_pack("{s:b}", "monitor_only", is_on));
}

const struct command command_monitor_only = {
	.name = "monitor-only",
	.group = COMMAND_SAFETY,
	.usage = "on|off",
	.summary = "count what would be dropped, and drop nothing",
	.min = 1,
	.max = 1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_monitor_only,
};
