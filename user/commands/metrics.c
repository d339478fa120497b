// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* metrics: prints the state of all running filters for Prometheus. exporter: serves that over HTTP, until a signal comes. */
#include "commands/command.h"

#include <sys/resource.h>

#include "commands/options.h"
#include "io/output.h"
#include "io/whole_file.h"
#include "metrics/metrics.h"

static int write_text(FILE *to, void *metrics)
{
	metrics_write(to, metrics);
	return 0;
}

enum command_status command_write_metrics(const char *path, json_t *metrics)
{
	enum command_status status = STATUS_DONE;

	if (output_is_json() && whole_file_is_output(path)) {
		output_document();
		output_print(json_incref(metrics));
	} else {
		status = command_write_file(path, write_text, metrics);
	}
	json_decref(metrics);
	return status;
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

/* ---- exporter ---- */

static enum command_status run_exporter(const struct invocation *invocation)
{
	const char *where = invocation->listen ? invocation->listen : EXPORTER_LISTEN_DEFAULT;
	struct exporter exporter = { .state = invocation->state, .where = where, .note = command_note };
	const struct rlimit no_core = {};
	struct reason reason;
	int error;

	if (http_address_parse(where, &exporter.address))
		return command_fail(STATUS_USAGE,
				    "--listen '%s': must be an address and a port, like 127.0.0.1:9917 or [::1]:9917",
				    where);
	/* Memory holds the secrets of hashes, so a crash must not write it to a file. */
	setrlimit(RLIMIT_CORE, &no_core);
	if (!http_address_is_loopback(&exporter.address))
		output_note("other hosts can read the counters at %s too, unless a firewall stops them", where);
	error = exporter_run(&exporter, &reason);
	return error ? command_fail(command_status_of(error), "%s", reason.text) : STATUS_DONE;
}

const struct command command_exporter = {
	.name = "exporter",
	.group = COMMAND_LOOK,
	.usage = "[--listen ADDRESS:PORT]",
	.summary = "serve the state of all running filters to Prometheus",
	.options = OPTION_LISTEN,
	.needs = PRIVILEGE_LOOK | PRIVILEGE_READ | PRIVILEGE_CHILD,
	.run = run_exporter,
};
