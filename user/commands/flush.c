// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* flush: deletes all rules, or those of one list. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "commands/command.h"
#include "io/output.h"

/* Lists are fed by others, who do not expect that their rules go. */
static int check_lists(struct session *session, struct reason *reason)
{
	struct store_lists lists;
	char text[REASON_BYTES / 2] = "";
	size_t used = 0;
	int error = store_say_unread(store_lists(session->store, &lists), reason);

	for (size_t i = 1; i <= STORE_LISTS_MAX && !error && used < sizeof(text); i++)
		if (lists.list[i].rules)
			used += snprintf(text + used, sizeof(text) - used, "%s%s (%llu)", used ? ", " : "",
					 lists.list[i].name, (unsigned long long)lists.list[i].rules);
	if (error || !used)
		return error;
	return reason_set(reason, -EINVAL,
			  "lists have rules: %s; nothing was deleted; say flush --list NAME to delete the rules of one "
			  "list, or flush --force to delete all rules",
			  text);
}

static int clear(struct session *session, bool is_forced, __u64 *deleted, struct reason *reason)
{
	struct store_info info;
	int error = is_forced ? 0 : check_lists(session, reason);

	if (!error)
		error = store_say_unread(store_info(session->store, &info), reason);
	if (error)
		return error;
	*deleted = info.rules;
	return change_clear(session, reason);
}

static enum command_status flush_list(const struct invocation *invocation, const char *name)
{
	struct import_options emptying = command_import_options(invocation);
	struct command_imported result;
	struct reason reason;
	json_t *answer;
	int error;

	emptying.list_name = name;
	emptying.is_replace = emptying.keeps_list = true;
	error = command_import_list(&emptying, NULL, 0, &result, &reason);
	if (error) {
		json_decref(result.answer);
		if (error == -ESRCH)
			return command_fail(STATUS_NO, "%s; xdp-cuckoo flush deletes all rules", reason.text);
		return command_fail_list(error, &reason);
	}
	answer = json_pack("{s:O*, s:O*}", "deleted_rules", json_object_get(result.answer, "removed"), "left_to_others",
			   json_object_get(result.answer, "left_to_others"));
	json_decref(result.answer);
	output_print(answer);
	return STATUS_DONE;
}

static enum command_status run_flush(const struct invocation *invocation)
{
	struct guard guard;
	struct session session;
	struct reason reason;
	__u64 deleted = 0;
	int error;

	if (invocation->count && invocation->list_name)
		return command_fail(STATUS_USAGE, "flush '%s': --list names another list", invocation->operands[0]);
	if (invocation->count && strpbrk(invocation->operands[0], ".:/"))
		return command_fail(STATUS_USAGE, "flush '%s': to delete a rule: xdp-cuckoo del %s",
				    invocation->operands[0], invocation->operands[0]);
	if (invocation->count || invocation->list_name)
		return flush_list(invocation, invocation->count ? invocation->operands[0] : invocation->list_name);
	error = command_open_guarded(invocation, &session, &guard, &reason);
	if (!error)
		command_report_undone(&session);
	if (!error)
		error = change_begin(&session, &reason);
	if (!error)
		error = change_end(&session, clear(&session, invocation->is_forced, &deleted, &reason), &reason);
	session_close(&session);
	guard_close(&guard);
	return command_answer(error, &reason, json_pack("{s:I}", "deleted_rules", deleted));
}

const struct command command_flush = {
	.name = "flush",
	.group = COMMAND_RULES,
	.usage = "[LIST] [--list NAME] [--force]",
	.summary = "delete all rules, or those of one list",
	.options = OPTION_LIST | OPTION_FORCE,
	.max = 1,
	.instead = "to empty a list: xdp-cuckoo flush NAME; to delete a rule: xdp-cuckoo del RULE",
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_flush,
};
