// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* confirm: keeps what --confirm would undo. */
#include <errno.h>

#include "commands/command.h"
#include "io/output.h"

/*
 * Uses the clock of the packet path. Once that path has let all packets pass, a confirm proves nothing: it
 * may have been typed while the session was frozen.
 */
static int check_in_time(const struct session *session, struct reason *reason)
{
	double ticks_per_second;
	__u32 tick;
	int error = session->filters_count ? kernel_tick(&tick, &ticks_per_second, reason) : 0;

	if (!error && session->undone.error)
		error = reason_set(reason, -ETIMEDOUT,
				   "too late: the time is over; confirm --force keeps what could not be undone");
	for (size_t i = 0; i < session->filters_count && !error; i++) {
		const struct abi_config *config = session->filters[i].kernel.config;

		if (config->run & ABI_RUN_UNCONFIRMED && tick >= config->confirm_by)
			error = reason_set(reason, -ETIMEDOUT,
					   "too late: '%s' passes everything since the time is over; xdp-cuckoo unload takes "
					   "it off, confirm --force lets it filter",
					   session->name);
	}
	return error;
}

static enum command_status run_confirm(const struct invocation *invocation)
{
	struct session session;
	struct reason reason;
	int error = session_open(&session, invocation->state, invocation->name, &reason);

	if (!error)
		command_report_undone(&session);
	if (!error && !invocation->is_forced)
		error = check_in_time(&session, &reason);
	if (!error)
		error = change_confirm(&session, &reason);
	session_close(&session);
	if (error == -ETIMEDOUT)
		return command_fail(STATUS_NO, "%s", reason.text);
	if (error == -ENOENT)
		return command_fail(STATUS_NO,
				    "nothing waits to be confirmed; a change that is not confirmed in time is "
				    "undone: see xdp-cuckoo status");
	return command_answer(error, &reason, json_pack("{s:s}", "confirmed", invocation->name));
}

const struct command command_confirm = {
	.name = "confirm",
	.group = COMMAND_SAFETY,
	.usage = "[--force]",
	.summary = "keep what a --confirm TIME would undo",
	.options = OPTION_FORCE,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_confirm,
};
