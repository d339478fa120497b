// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* metrics: prints the state of all running filters for Prometheus. */
#include "commands/command.h"
#include "metrics/text_format.h"
#include "metrics/gather.h"
#include "io/output.h"
#include "io/whole_file.h"

enum command_status command_write_metrics(const char *path, json_t *metrics)
{
	struct whole_file file = {};
	FILE *to = whole_file_is_output(path) ? output_document() : NULL;
	int error = 0;

	if (to && output_is_json())
		output_print(json_incref(metrics));
	else if (to)
		metrics_write(to, metrics);
	else
		error = whole_file_open(&file, path);
	if (file.to && !error) {
		metrics_write(file.to, metrics);
		error = whole_file_close(&file, 0);
	}
	json_decref(metrics);
	if (error)
		return command_fail(STATUS_SYSTEM, "cannot write '%s': %s", path, reason_of_write(error));
	return STATUS_DONE;
}

static enum command_status run_metrics(const struct invocation *invocation)
{
	struct reason unread, reason;
	json_t *metrics;
	int error = metrics_gather(invocation->state, &metrics, &unread, &reason);

	if (error)
		return command_fail_because(error, &reason);
	if (*unread.text)
		output_note("%s", unread.text);
	return command_write_metrics(invocation->count ? invocation->operands[0] : "-", metrics);
}

const struct command command_metrics = {
	.name = "metrics",
	.group = COMMAND_LOOK,
	.usage = "[FILE|-]",
	.summary = "print the state of all running filters for Prometheus",
	.max = 1,
	.needs = PRIVILEGE_LOOK | PRIVILEGE_READ | PRIVILEGE_WRITE,
	.run = run_metrics,
};
