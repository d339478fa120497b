// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* resize: gives the running tables another size. */
#include "commands/command.h"
#include "io/output.h"

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
		const __u64 slots = table_slots(&filter->table);

		json_array_append_new(rows, json_pack("{s:o, s:I, s:I, s:f, s:I}", "interface",
						      command_interface(filter->kernel.attachments), "slots_before",
						      filter->slots_before, "slots", slots, "load_factor",
						      filter->table.used / (double)slots, "table_bytes",
						      kernel_filter_bytes(&filter->kernel)));
	}
	session_close(&session);
	return command_answer(error, &reason, rows);
}

const struct command command_resize = {
	.name = "resize",
	.group = COMMAND_RUN,
	.usage = "N",
	.summary = "give the running tables room for N rules",
	.min = 1,
	.max = 1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_resize,
};
