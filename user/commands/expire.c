// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* expire: deletes rules that have ended. */
#include "commands/command.h"
#include "io/output.h"

static enum command_status run_expire(const struct invocation *invocation)
{
	struct session session;
	struct reason reason;
	__u64 count = 0;
	int error = session_open(&session, invocation->state, invocation->name, &reason);

	if (!error)
		command_report_found(&session);
	if (!error)
		error = change_begin(&session, &reason);
	if (!error)
		error = change_end(&session, change_expire(&session, &count, &reason), &reason);
	if (!error)
		command_report_rebuilds(&session);
	session_close(&session);
	return command_answer(error, &reason, json_pack("{s:I}", "deleted_rules", count));
}

const struct command command_expire = {
	.name = "expire",
	.group = COMMAND_RULES,
	.usage = "",
	.summary = "delete the rules that have ended",
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_expire,
};
