// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* expire: deletes rules that have ended. */
#include "commands/command.h"
#include "io/output.h"

static enum command_status run_expire(const struct invocation *invocation);

const struct command command_expire = {
	.name = "expire",
	.group = COMMAND_RULES,
	.usage = "",
	.summary = "delete the rules that have ended",
	.help = "A running filter stops matching a rule by itself when its time is over; `expire`\n"
		"frees its slot and its place in the store. A compact table stores no times: its\n"
		"rules hold until `expire` runs. A systemd timer can run it every minute, for one\n"
		"filter by its name:\n"
		"systemctl enable --now xdp-cuckoo-expire@default.timer\n"
		"\n"
		"  xdp-cuckoo expire\n"
		"  xdp-cuckoo --name web expire\n",
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_expire,
};

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
