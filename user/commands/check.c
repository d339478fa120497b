// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* check: compares the running tables with the store, and repairs them. */
#include "commands/command.h"
#include "filter/run_state.h"
#include "io/output.h"

/* *differing: a table was not equal to the store, now or when it was opened. */
static int check_all(struct session *session, json_t *rows, bool *differing, struct reason *reason)
{
	int error = 0;

	*differing = false;
	for (size_t i = 0; i < session->filters_count && !error; i++) {
		struct filter *filter = &session->filters[i];
		struct table_difference difference = {};

		error = filter_fill(filter, session->store, &difference, reason);
		*differing |= difference.added || difference.removed || difference.retimed ||
			      filter->state == FILTER_REPAIRED;
		json_array_append_new(rows,
				      json_pack("{s:o, s:I, s:I, s:I, s:I}", "interface",
						command_interface(filter->kernel.attachments), "right",
						(json_int_t)(difference.kept - difference.retimed), "missing",
						(json_int_t)difference.added, "foreign", (json_int_t)difference.removed,
						"other_end", (json_int_t)difference.retimed));
	}
	return error;
}

static enum command_status run_check(const struct invocation *invocation)
{
	json_t *rows;
	struct session session;
	struct reason reason;
	bool differing, is_undone, is_late = false;
	int error = session_open(&session, invocation->state, invocation->name, &reason);

	if (error)
		return command_fail_because(error, &reason);
	error = session.store ? store_say_unread(store_check(session.store), &reason) : 0;
	if (error) {
		session_close(&session);
		return command_fail_because(error, &reason);
	}
	if (!session.filters_count)
		return command_close_not_running(&session);
	command_report_session(&session);
	rows = json_array();
	error = check_all(&session, rows, &differing, &reason);
	is_undone = session.undone.is_done;
	for (size_t i = 0; i < session.filters_count; i++)
		is_late |= run_is_confirm_late(&session.filters[i].kernel);
	output_print(rows);
	session_close(&session);
	if (error)
		return command_fail_because(error, &reason);
	if (differing)
		output_note("the differing entries have been repaired");
	return differing || is_undone || is_late ? STATUS_NO : STATUS_DONE;
}

const struct command command_check = {
	.name = "check",
	.group = COMMAND_LOOK,
	.usage = "",
	.summary = "compare the running tables with the store, and repair them",
	.instead = "check looks at whole tables; to ask about an address: xdp-cuckoo test ADDRESS",
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_check,
};
