// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* object: writes the program to a file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "command/command.h"
#include "io/output.h"
#include "io/whole_file.h"

struct object {
	char *bytes;
	size_t length;
};

static int write_object(FILE *to, void *context)
{
	const struct object *object = context;

	return fwrite(object->bytes, 1, object->length, to) == object->length ? 0 : -errno;
}

static enum command_status run_object(const struct invocation *invocation)
{
	const struct abi_options options = table_options_of(&invocation->load);
	const __u64 capacity = invocation->load.capacity;
	const __u64 slots = capacity ? table_slots_for(capacity) : (1ULL << ABI_SLOTS_DEFAULT_LOG2) / ABI_TABLES;
	const __u64 most = (1ULL << ABI_SLOTS_MAX_LOG2) / (options.is_alone ? 1 : ABI_TABLES);
	const char *path = invocation->operands[0];
	enum command_status status;
	struct kernel_sizes sizes;
	struct object object;
	struct reason reason;
	int error;

	if (command_check_format(&invocation->load))
		return STATUS_USAGE;
	if (slots > most)
		return command_fail(STATUS_USAGE, "--capacity: a table of such an object holds at most %llu rules",
				    most * TABLE_LOAD_PERCENT / 100);
	error = filter_make_object_file(&options, slots, &sizes, &object.bytes, &object.length, &reason);
	if (error)
		return command_fail_because(error, &reason);
	status = command_write_file(path, write_object, &object);
	free(object.bytes);
	if (status == STATUS_DONE && !whole_file_is_output(path))
		output_print(json_pack("{s:o, s:s, s:I, s:I, s:I}", "object", output_string(path), "table",
				       command_format_name(&options), "tables", (json_int_t)sizes.tables,
				       "slots_of_each", sizes.slots, "table_bytes", kernel_sizes_bytes(&sizes)));
	return status;
}

const struct command command_object = {
	.name = "object",
	.usage = "FILE [--capacity N] [--compact [--fingerprint 8|16|17|32]] [--no-counters] [--no-spare]",
	.min = 1,
	.max = 1,
	.needs = PRIVILEGE_WRITE | PRIVILEGE_KERNEL, /* to ask which program the kernel accepts */
	.run = run_object,
};
