// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* flush: deletes all rules. */
#include "commands/command.h"
#include "io/output.h"

static enum command_status run_flush(const struct invocation *invocation);

const struct command command_flush = {
	.name = "flush",
	.group = COMMAND_RULES,
	.usage = "[--force]",
	.summary = "delete all rules",
	.help = "Rules of named lists are deleted too; the next import of a list brings them\n"
		"back.\n"
		"  --force    even if pass rules are deleted that keep this host reachable: with\n"
		"             `policy no-rule drop`, they let its own addresses, its gateway and\n"
		"             your SSH session through\n"
		"\n"
		"  xdp-cuckoo flush\n"
		"  xdp-cuckoo --name web flush\n",
	.options = OPTION_FORCE,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_flush,
};

static int clear(struct session *session, __u64 *deleted, struct reason *reason)
{
	struct store_info info;
	int error = store_say_unread(store_info(session->store, &info), reason);

	if (error)
		return error;
	*deleted = info.rules;
	return change_clear(session, reason);
}

static enum command_status run_flush(const struct invocation *invocation)
{
	struct guard guard;
	struct session session;
	struct reason reason;
	__u64 deleted = 0;
	int error = command_open_guarded(invocation, &session, &guard, &reason);

	if (!error)
		command_report_undone(&session);
	if (!error)
		error = change_begin(&session, &reason);
	if (!error)
		error = change_end(&session, clear(&session, &deleted, &reason), &reason);
	session_close(&session);
	guard_close(&guard);
	return command_answer(error, &reason, json_pack("{s:I}", "deleted_rules", deleted));
}
