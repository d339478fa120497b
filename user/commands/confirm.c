// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* confirm: keeps what --confirm would undo. */
#include <errno.h>

#include "commands/command.h"
#include "io/output.h"

static enum command_status run_confirm(const struct invocation *invocation);

const struct command command_confirm = {
	.name = "confirm",
	.group = COMMAND_SAFETY,
	.usage = "[--force]",
	.summary = "keep what a --confirm TIME would undo",
	.help = "After `load --confirm 30s` or `import --confirm 30s`: says that you can still\n"
		"reach this host. Status 1: nothing waits to be confirmed, or the time is over.\n"
		"If the time is over, the filter passes everything and the change is undone. A\n"
		"confirm that a frozen session delivers too late does not count.\n"
		"If undoing fails (on a full disk, for example), the next command tries again\n"
		"and then does its own work. Until you confirm, no new rule can take the room\n"
		"of a kind of rule that the undo would bring back: it is refused.\n"
		"  --force    also after the time is over, if the change could not be undone: the\n"
		"             filter filters again\n"
		"\n"
		"  xdp-cuckoo load eth0 --confirm 30s\n"
		"  xdp-cuckoo confirm\n"
		"  xdp-cuckoo --name web confirm\n",
	.options = OPTION_FORCE,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_confirm,
};

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
		return command_error(STATUS_NO, "%s", reason.text);
	if (error == -ENOENT)
		return command_error(STATUS_NO,
				     "nothing waits to be confirmed; a change that is not confirmed in time is "
				     "undone: see xdp-cuckoo status");
	return command_answer(error, &reason, json_pack("{s:s}", "confirmed", invocation->name));
}
