// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* resize, check: the running tables themselves. */
#include <string.h>

#include "commands/command.h"
#include "io/output.h"

static enum command_status run_resize(const struct invocation *invocation);
static enum command_status run_check(const struct invocation *invocation);

const struct command command_resize = {
	.name = "resize",
	.group = COMMAND_RUN,
	.usage = "N",
	.summary = "give the running tables room for N rules",
	.help = "Larger or smaller, while the filter goes on: a new table is filled from the store and takes\n"
		"the place of the old one at once, on every interface; counters go on. A table also grows by\n"
		"itself when a rule does not fit. N is at 95 % load, and at least what is stored. Larger maps, and\n"
		"new programs over them, are loaded only if the present ones have no room (`room slots` of status).\n"
		"\n"
		"  xdp-cuckoo resize 5000000\n"
		"  xdp-cuckoo --name web resize 1000\n",
	.min = 1,
	.max = 1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_resize,
};

const struct command command_check = {
	.name = "check",
	.group = COMMAND_LOOK,
	.usage = "",
	.summary = "compare the running tables with the store, and repair them",
	.help = "Entry by entry. Prints how many were right, missing, foreign, or ended at another time than\n"
		"their rule; what is not right is mended in place. A change that was not confirmed in time,\n"
		"and that nothing has undone yet, is undone, and a note says so. Status 0 where all was equal, 1\n"
		"where something had to be mended or undone.\n"
		"\n"
		"  xdp-cuckoo check\n"
		"  xdp-cuckoo check --json\n",
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_check,
};

static enum command_status none_runs(struct apply *apply)
{
	enum command_status status;

	command_report_undone(apply);
	status = command_not_running(apply->name);
	apply_close(apply);
	return status;
}

static json_t *sizes(const struct apply *apply)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < apply->targets_count; i++) {
		const struct target *target = &apply->targets[i];

		json_array_append_new(rows, json_pack("{s:s, s:I, s:I, s:f, s:I}", "interface",
						      target->filter.attachments[0].interface, "slots_before",
						      (json_int_t)target->slots_before, "slots",
						      (json_int_t)table_slots(&target->table), "load_factor",
						      target->table.used / (double)table_slots(&target->table),
						      "table_bytes", (json_int_t)kernel_filter_bytes(&target->filter)));
	}
	return rows;
}

static enum command_status run_resize(const struct invocation *invocation)
{
	struct apply apply;
	struct reason reason;
	__u64 capacity;
	int error;

	if (command_number("resize", invocation->operands[0], &capacity))
		return STATUS_USAGE;
	error = apply_open(&apply, invocation->state, invocation->name, &reason);
	if (error)
		return command_failed(error, &reason);
	if (!apply.targets_count)
		return none_runs(&apply);
	command_report_targets(&apply);
	error = apply_resize(&apply, capacity, &reason);
	if (!error)
		output_print(sizes(&apply));
	apply_close(&apply);
	return error ? command_failed(error, &reason) : STATUS_DONE;
}

/* *differing: whether some table was not as the store has it, here or when it was opened. */
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
		return none_runs(&apply);
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
