// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* down: takes the filter of a name off its interfaces. */
#include <string.h>

#include "commands/command.h"
#include "config/config.h"
#include "io/output.h"

/* Reports the interfaces that keep it. -errno: nothing could be done. */
static int take_off(const struct invocation *invocation, json_t *done, enum command_status *status,
		    struct reason *reason)
{
	struct kernel_filter *filters;
	size_t count;
	int error = kernel_find_all(invocation->name, &filters, &count, reason);

	for (size_t i = 0; i < count && !error; i++) {
		const struct kernel_filter *filter = &filters[i];

		if (strncmp(filter->config->name, invocation->name, sizeof(filter->config->name)))
			continue;
		for (size_t k = 0; k < filter->attachments_count; k++) {
			const int kept = kernel_detach(filter, &filter->attachments[k], reason);

			if (kept)
				*status = command_fail_because(kept, reason);
			else
				json_array_append_new(done, command_interface(&filter->attachments[k]));
		}
	}
	kernel_filters_free(filters, count);
	return error;
}

static enum command_status run_down(const struct invocation *invocation)
{
	struct config *config = NULL;
	struct reason reason;
	bool is_meant = true;
	enum command_status status = STATUS_DONE;
	json_t *done = json_array();
	int error = 0;

	if (invocation->is_on_stop || invocation->count)
		error = config_open(invocation->count ? invocation->operands[0] : NULL, invocation->name,
				    command_report_bad_line, &config, &reason);
	if (!error && invocation->is_on_stop)
		is_meant = config->detaches_on_stop;
	config_close(config);
	if (!error && is_meant)
		error = take_off(invocation, done, &status, &reason);
	if (error) {
		json_decref(done);
		return command_fail_because(error, &reason);
	}
	output_print(json_pack("{s:o}", "unloaded", done));
	return status;
}

const struct command command_down = {
	.name = "down",
	.group = COMMAND_RUN,
	.usage = "[FILE] [--on-stop]",
	.summary = "take the filter off all its interfaces",
	.options = OPTION_ON_STOP,
	.max = 1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_down,
};
