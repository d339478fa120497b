// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* metrics: prints the state of all running filters for Prometheus. */
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
	.help = "Prints Prometheus' text format, for the textfile collector of its node exporter\n"
		"(`exporter` needs none). Covers every filter in this network namespace, of any\n"
		"name: packets and bytes by outcome and verdict, as `stats` shows them, in total\n"
		"and, in families of their own, by interface and row of counters (its number\n"
		"modulo 64); the packets each interface received, and those the filter saw;\n"
		"rules, named lists and when each was imported, slots, memory, and whether it\n"
		"filters. The interface \"-\" stands for interfaces that no longer run the filter,\n"
		"or are in another namespace. Changes nothing. Status 0 even if no filter runs:\n"
		"then there are no samples of any. FILE replaces an older file only when it is\n"
		"complete, so that nobody reads half of it, and keeps its owner and mode; a link\n"
		"stays, and the file it leads to is replaced.\n"
		"\n"
		"  xdp-cuckoo metrics\n"
		"  xdp-cuckoo metrics /var/lib/prometheus/node-exporter/xdp-cuckoo.prom\n"
		"  xdp-cuckoo metrics --json\n",
	.max = 1,
	.needs = PRIVILEGE_LOOK | PRIVILEGE_READ | PRIVILEGE_WRITE,
	.run = run_metrics,
};

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
		return command_error(STATUS_SYSTEM, "cannot write '%s': %s", path, reason_of_write(error));
	return STATUS_DONE;
}

static enum command_status run_metrics(const struct invocation *invocation)
{
	struct reason unread, reason;
	json_t *metrics;
	int error = metrics_gather(invocation->state, &metrics, &unread, &reason);

	if (error)
		return command_failed(error, &reason);
	if (*unread.text)
		output_note("%s", unread.text);
	return command_write_metrics(invocation->count ? invocation->operands[0] : "-", metrics);
}
