// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* metrics: all running filters, as Prometheus reads them. */
#include <string.h>

#include "commands/command.h"
#include "metrics/text_format.h"
#include "metrics/gather.h"
#include "io/output.h"
#include "io/whole_file.h"

static enum command_status run_metrics(const struct invocation *invocation);

const struct command command_metrics = {
	.name = "metrics",
	.group = COMMAND_LOOK,
	.usage = "[FILE|-]",
	.summary = "print the state of all running filters for Prometheus",
	.help = "In Prometheus' text format, for the textfile collector of its node exporter (`exporter` does\n"
		"without that); of every filter in this network namespace, whatever its name: packets and bytes by\n"
		"outcome and verdict, as `stats` shows them, in all and, as families of their own, by interface and\n"
		"row of counters (its number modulo 64); what each interface has received, and what of it the filter\n"
		"has seen; rules, named lists and when each was imported, slots, memory,\n"
		"and whether it filters. The interface \"-\" is what the filter runs on no more, or not in this namespace.\n"
		"Reads, and changes nothing. Status 0 also where no filter runs: then there are no samples of any.\n"
		"A FILE takes the place of an older one when it is whole, so that nobody reads half of it, with its owner\n"
		"and mode; behind a link, of the file it leads to.\n"
		"\n"
		"  xdp-cuckoo metrics\n"
		"  xdp-cuckoo metrics /var/lib/prometheus/node-exporter/xdp-cuckoo.prom\n"
		"  xdp-cuckoo metrics --json\n",
	.max = 1,
	.needs = PRIVILEGE_LOOK | PRIVILEGE_READ | PRIVILEGE_WRITE,
	.run = run_metrics,
};

static void print(json_t *metrics)
{
	if (output_is_json())
		output_print(json_incref(metrics));
	else
		metrics_write(stdout, metrics);
}

static enum command_status write_to(const char *path, const json_t *metrics)
{
	struct whole_file file;
	int error = whole_file_open(&file, path);

	if (!error) {
		metrics_write(file.to, metrics);
		error = whole_file_close(&file, 0);
	}
	return error ? command_error(STATUS_SYSTEM, "cannot write '%s': %s", path, reason_of_write(error)) :
		       STATUS_DONE;
}

static enum command_status run_metrics(const struct invocation *invocation)
{
	const char *path = invocation->count ? invocation->operands[0] : "-";
	enum command_status status = STATUS_DONE;
	struct reason unread, reason;
	json_t *metrics;
	int error = metrics_filters_gather(invocation->state, &metrics, &unread, &reason);

	if (error)
		return command_failed(error, &reason);
	if (*unread.text)
		output_note("%s", unread.text);
	if (whole_file_is_output(path))
		print(metrics);
	else
		status = write_to(path, metrics);
	json_decref(metrics);
	return status;
}
