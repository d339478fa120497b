// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* check: compares the running tables with the store, and repairs them. */
#include <string.h>

#include "commands/command.h"
#include "io/output.h"

static enum command_status run_check(const struct invocation *invocation);

const struct command command_check = {
	.name = "check",
	.group = COMMAND_LOOK,
	.usage = "",
	.summary = "compare the running tables with the store, and repair them",
	.help = "Compares every entry. Prints how many entries were right, missing, foreign (no\n"
		"rule needs them), or had another end than their rule, and repairs them in\n"
		"place. A change that was not confirmed in time, and that nothing has undone\n"
		"yet, is undone; a note says so. Status 0: all entries were right; 1: something\n"
		"was repaired or undone.\n"
		"\n"
		"  xdp-cuckoo check\n"
		"  xdp-cuckoo check --json\n",
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_check,
};

/* *differing: a table was not equal to the store, now or when it was opened. */
static int check_all(struct apply *apply, json_t *rows, bool *differing, struct reason *reason)
{
	int error = 0;

	*differing = false;
	for (size_t i = 0; i < apply->targets_count && !error; i++) {
		struct target *target = &apply->targets[i];
		struct table_difference difference = {};

		error = apply_check(apply, target, &difference, reason);
		*differing |= difference.added || difference.removed || difference.retimed ||
			      target->state == TARGET_REPAIRED;
		json_array_append_new(rows,
				      json_pack("{s:s, s:I, s:I, s:I, s:I}", "interface",
						target->filter.attachments[0].interface, "right",
						(json_int_t)(difference.kept - difference.retimed), "missing",
						(json_int_t)difference.added, "foreign", (json_int_t)difference.removed,
						"other_end", (json_int_t)difference.retimed));
	}
	return error;
}

static enum command_status run_check(const struct invocation *invocation)
{
	json_t *rows;
	struct apply apply;
	struct reason reason;
	bool differing, is_undone;
	int error = apply_open(&apply, invocation->state, invocation->name, &reason);

	if (error)
		return command_failed(error, &reason);
	if (!apply.targets_count)
		return command_close_idle(&apply);
	command_report_targets(&apply);
	rows = json_array();
	error = check_all(&apply, rows, &differing, &reason);
	is_undone = apply.undone.is_done;
	output_print(rows);
	apply_close(&apply);
	if (error)
		return command_failed(error, &reason);
	if (differing)
		output_note("the differing entries have been repaired");
	return differing || is_undone ? STATUS_NO : STATUS_DONE;
}
