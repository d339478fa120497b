// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* metrics, exporter: print or serve the state of all running filters for Prometheus. */
#include "command/command.h"

#include <errno.h>
#include <sys/resource.h>

#include "command/options.h"
#include "io/output.h"
#include "exporter/metrics.h"

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
	.usage = "[FILE|-]",
	.max = 1,
	.needs = PRIVILEGE_LOOK | PRIVILEGE_READ | PRIVILEGE_WRITE,
	.run = run_metrics,
};

static enum command_status run_exporter(const struct invocation *invocation)
{
	const char *where = invocation->listen ? invocation->listen : EXPORTER_LISTEN_DEFAULT;
	struct exporter exporter = { .state = invocation->state, .where = where, .note = command_note };
	const struct rlimit no_core = {};
	struct reason reason;

	if (http_address_parse(where, &exporter.address))
		return command_fail(STATUS_USAGE,
				    "--listen '%s': must be an address and a port, like 127.0.0.1:9917 or [::1]:9917",
				    where);
	/* Memory holds the secrets of hashes, so a crash must not write it to a file. */
	setrlimit(RLIMIT_CORE, &no_core);
	if (!http_address_is_loopback(&exporter.address))
		output_note("other hosts can read the counters at %s too, unless a firewall stops them", where);
	return command_fail(command_status_of(exporter_run(&exporter, &reason)), "%s", reason.text);
}

const struct command command_exporter = {
	.name = "exporter",
	.usage = "[--listen ADDRESS:PORT]",
	.needs = PRIVILEGE_LOOK | PRIVILEGE_READ | PRIVILEGE_CHILD,
	.run = run_exporter,
};
