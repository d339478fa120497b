// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* check: compares the running tables with the store, and repairs them. resize, expire, flush. */
#include "command/command.h"

#include <errno.h>
#include <string.h>

#include "filter/filter.h"
#include "io/output.h"
#include "base/safe_text.h"

static enum command_status run_check(const struct invocation *invocation)
{
	bool differing = false, is_wrong = false;
	struct session session;
	struct reason reason;
	json_t *rows;
	int error = session_open(&session, invocation->state, invocation->name, &reason);

	if (!error && session.store)
		error = store_unread_reason(store_check(session.store), &reason);
	if (error) {
		session_close(&session);
		return command_fail_because(error, &reason);
	}
	if (!session.filters_count)
		return command_close_not_running(&session);
	/* First: a filter that becomes late only now is told, too. */
	for (size_t i = 0; i < session.filters_count; i++)
		is_wrong |= run_is_confirm_late(&session.filters[i].kernel);
	command_report_session(&session);
	is_wrong |= session.undone.is_done;
	rows = json_array();
	for (size_t i = 0; i < session.filters_count && !error; i++) {
		struct filter *filter = &session.filters[i];
		struct table_difference difference = {};
		bool differs;

		error = filter_fill_in_place(filter, session.store, &difference, &reason);
		/* Not equal to the store now, or when it was opened. */
		differs = difference.added || difference.removed || difference.retimed ||
			  filter->state == FILTER_REPAIRED;
		differing |= differs;
		json_array_append_new(rows,
				      json_pack("{s:o, s:I, s:I, s:I, s:I, s:b}", "interface",
						command_interface(filter->kernel.attachments), "right",
						(json_int_t)(difference.kept - difference.retimed), "missing",
						(json_int_t)difference.added, "foreign", (json_int_t)difference.removed,
						"other_end", (json_int_t)difference.retimed, "changed", differs));
	}
	session_close(&session); /* before the output, which may end this process */
	output_print(rows);
	if (error)
		return command_fail_because(error, &reason);
	if (differing)
		output_note("the differing entries have been repaired");
	return differing || is_wrong ? STATUS_NO : STATUS_DONE;
}

const struct command command_check = {
	.name = "check",
	.usage = "",
	.instead = "check looks at whole tables; to ask about an address: xdp-cuckoo test ADDRESS",
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_check,
};

/* ---- resize ---- */

static enum command_status run_resize(const struct invocation *invocation)
{
	struct session session;
	struct reason reason;
	json_t *rows;
	__u64 capacity;
	int error;

	if (command_read_rule_count("resize", invocation->operands[0], &capacity))
		return STATUS_USAGE;
	error = session_open(&session, invocation->state, invocation->name, &reason);
	if (error)
		return command_fail_because(error, &reason);
	if (!session.filters_count)
		return command_close_not_running(&session);
	command_report_session(&session);
	rows = json_array();
	error = session_resize(&session, capacity, &reason);
	for (size_t i = 0; i < session.filters_count && !error; i++) {
		const struct filter *filter = &session.filters[i];
		const __u64 slots = filter_slots(&filter->kernel);

		json_array_append_new(rows, json_pack("{s:o, s:I, s:I, s:f, s:I, s:b}", "interface",
						      command_interface(filter->kernel.attachments), "slots_before",
						      filter->slots_before, "slots", slots, "load_factor",
						      query_fill(&filter->kernel), "table_bytes",
						      kernel_filter_bytes(&filter->kernel), "changed",
						      filter->slots_before != slots));
	}
	session_close(&session);
	return command_answer(error, &reason, rows);
}

const struct command command_resize = {
	.name = "resize",
	.usage = "N",
	.min = 1,
	.max = 1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_resize,
};

/* ---- expire ---- */

static enum command_status run_expire(const struct invocation *invocation)
{
	struct session session;
	struct reason reason;
	__u64 count = 0;
	int error = session_open(&session, invocation->state, invocation->name, &reason);

	if (!error) {
		command_report_found(&session);
		error = change_begin(&session, &reason);
	}
	if (!error)
		error = change_end(&session, change_expire(&session, &count, &reason), &reason);
	if (!error)
		command_report_rebuilds(&session);
	if (!error && session.undone.error)
		error = reason_set(&reason, -EIO, "what was not confirmed in time is not undone: %s",
				   session.undone.reason.text);
	session_close(&session);
	return command_answer(error, &reason, json_pack("{s:I, s:b}", "deleted_rules", count, "changed", count > 0));
}

const struct command command_expire = {
	.name = "expire",
	.usage = "",
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_expire,
};

/* ---- flush ---- */

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
		return command_fail_list(error, &reason);
	}
	answer = json_pack("{s:O*, s:O*, s:O*}", "deleted_rules", json_object_get(result.answer, "removed"),
			   "left_to_others", json_object_get(result.answer, "left_to_others"), "changed",
			   json_object_get(result.answer, "changed"));
	json_decref(result.answer);
	output_print(command_note_dry_run(invocation, answer));
	if (result.deadline_ms)
		command_report_confirm(invocation, result.deadline_ms);
	return STATUS_DONE;
}

/* Within a change. Lists are fed by others, who do not expect that their rules go. */
static int delete_all(const struct invocation *invocation, struct session *session, struct store_info *info,
		      struct reason *reason)
{
	char fed[REASON_BYTES / 2] = "", url[REASON_BYTES / 2] = "";
	struct store_lists lists;
	struct store_feed feed;
	int error = store_lists(session->store, &lists);

	if (!error)
		error = store_info(session->store, info);
	if (error)
		return store_unread_reason(error, reason);
	for (size_t i = 1; i <= STORE_LISTS_MAX && !invocation->is_forced; i++)
		if (lists.list[i].rules)
			text_append(fed, sizeof(fed), "%s%s (%llu)", *fed ? ", " : "", lists.list[i].name,
				    (unsigned long long)lists.list[i].rules);
	if (*fed)
		return reason_set(reason, -EINVAL,
				  "lists have rules: %s; nothing was deleted; say flush --list NAME to delete the "
				  "rules of one list",
				  fed);
	for (size_t i = 1; i <= STORE_LISTS_MAX; i++)
		if (*lists.list[i].name && !store_feed(session->store, lists.list[i].name, &feed))
			text_append(url, sizeof(url), "%s%s", *url ? ", " : "", lists.list[i].name);
	error = change_clear(session, reason);
	if (!error && *url && !invocation->is_dry_run)
		output_note("lists by URL come back with their next fetch: %s", url);
	return error;
}

static enum command_status run_flush(const struct invocation *invocation)
{
	struct command_change change;
	struct store_info info = {};
	struct reason reason;
	int error;

	if (invocation->count && invocation->list_name)
		return command_fail(STATUS_USAGE, "flush '%s': --list names another list", invocation->operands[0]);
	if (invocation->count && strpbrk(invocation->operands[0], ".:/"))
		return command_fail(STATUS_USAGE, "flush '%s': to delete a rule: xdp-cuckoo%s del %s",
				    invocation->operands[0], session_name_option(invocation->name),
				    invocation->operands[0]);
	if (invocation->count || invocation->list_name)
		return flush_list(invocation, invocation->count ? invocation->operands[0] : invocation->list_name);
	error = command_open_change(invocation, true, NULL, &change, &reason);
	if (!error) {
		command_report_undone(&change.session);
		error = command_begin(invocation, &change.session, &reason);
	}
	if (!error)
		error = change_end(&change.session, delete_all(invocation, &change.session, &info, &reason), &reason);
	change.is_changed = info.rules;
	return command_end_change(invocation, &change, error, &reason, json_pack("{s:I}", "deleted_rules", info.rules));
}

const struct command command_flush = {
	.name = "flush",
	.usage = "[LIST] [--list NAME] [--dry-run] [--confirm TIME] [--force]",
	.max = 1,
	.instead = "to empty a list: xdp-cuckoo flush NAME; to delete a rule: xdp-cuckoo del RULE",
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_flush,
};
