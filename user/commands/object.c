// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* object: the BPF program as a file for other loaders, with a table of any size and kind. */
#include <errno.h>
#include <stdlib.h>

#include "commands/command.h"
#include "io/output.h"
#include "io/whole_file.h"

static int write_file(const char *path, const char *bytes, size_t length)
{
	struct whole_file file;
	int error = whole_file_open(&file, path);

	if (error)
		return error;
	return whole_file_close(&file, fwrite(bytes, 1, length, file.to) == length ? 0 : -errno);
}

static enum command_status run_object(const struct invocation *invocation)
{
	const struct abi_options options = load_table(&invocation->load);
	const __u64 capacity = invocation->load.capacity;
	const __u64 slots = capacity ? table_slots_for(capacity) : (1ULL << ABI_SLOTS_DEFAULT_LOG2) / ABI_TABLES;
	const __u64 most = (1ULL << ABI_SLOTS_MAX_LOG2) / (options.is_alone ? 1 : ABI_TABLES);
	const char *path = invocation->operands[0];
	struct kernel_sizes sizes;
	struct reason reason;
	size_t length;
	char *bytes;
	int error;

	if (command_check_format(&invocation->load))
		return STATUS_USAGE;
	if (slots > most)
		return command_fail(STATUS_USAGE, "--capacity: a table of such an object holds at most %llu rules",
				    most * TABLE_LOAD_PERCENT / 100);
	error = filter_object(&options, slots, &sizes, &bytes, &length, &reason);
	if (error)
		return command_fail_because(error, &reason);
	error = write_file(path, bytes, length);
	free(bytes);
	if (error)
		return command_fail(STATUS_SYSTEM, "cannot write '%s': %s", path, reason_of_write(error));
	output_print(json_pack("{s:o, s:s, s:I, s:I, s:I}", "object", output_string(path), "table",
			       command_format_name(&options), "tables", (json_int_t)sizes.tables, "slots_of_each",
			       sizes.slots, "table_bytes", kernel_sizes_bytes(&sizes)));
	return STATUS_DONE;
}

const struct command command_object = {
	.name = "object",
	.group = COMMAND_RUN,
	.usage = "FILE [--capacity N] [--compact [--fingerprint 8|16|17|32]] [--no-counters] [--no-spare]",
	.summary = "write the program to a file, for xdp-loader and other loaders",
	.options = OPTION_CAPACITY | OPTION_FORMAT,
	.min = 1,
	.max = 1,
	.needs = PRIVILEGE_WRITE | PRIVILEGE_KERNEL, /* to ask which program the kernel accepts */
	.run = run_object,
};
