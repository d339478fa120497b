// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* metrics: prints the state of all running filters for Prometheus. exporter: serves that over HTTP, until a signal comes. */
#include "commands/command.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "metrics/text_format.h"
#include "metrics/gather.h"
#include "io/output.h"
#include "io/whole_file.h"
#include "metrics/http_server.h"
#include "metrics/http_address.h"
#include "commands/options.h"
#include "io/signals.h"
#include "base/clock.h"

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

/* ---- exporter ---- */

#define FRESH_S 1 /* a reading that is not older also answers the next scrape */

static const char index_page[] = "<!DOCTYPE html><title>xdp-cuckoo</title><a href=\"/metrics\">/metrics</a>\n";

struct exporter {
	const char *state;
	double since_s; /* when the last answer was made */
	char *text;     /* the last answer; NULL: it failed, and `said` says why */
	size_t bytes;
	struct reason said; /* the last failure; "": none */
};

static void forget(struct exporter *exporter)
{
	free(exporter->text);
	exporter->text = NULL;
}

/* Makes the answer again. Prints a failure once, not again for each scrape. */
static void refresh(struct exporter *exporter)
{
	struct reason unread, reason;
	const char *failure;
	json_t *metrics;
	FILE *to = NULL;
	int error = metrics_gather(exporter->state, &metrics, &unread, &reason);

	forget(exporter);
	if (!error) {
		to = open_memstream(&exporter->text, &exporter->bytes);
		error = to ? 0 : reason_set(&reason, -ENOMEM, "not enough memory");
	}
	if (to) {
		metrics_write(to, metrics);
		error = ferror(to);
		error |= fclose(to);
		if (error)
			reason_set(&reason, error, "not enough memory");
	}
	json_decref(metrics);
	if (error)
		forget(exporter);
	failure = error ? reason.text : unread.text;
	if (*failure && strcmp(failure, exporter->said.text))
		output_note("%s", failure);
	reason_set(&exporter->said, 0, "%s", failure);
	exporter->since_s = clock_seconds();
}

static void make_page(const char *path, void *context, struct http_page *page)
{
	static const char nothing[] = "there is only /metrics here\n";
	struct exporter *exporter = context;

	if (!strcmp(path, "/")) {
		*page = (struct http_page){ 200, "text/html", index_page, strlen(index_page) };
		return;
	}
	if (strcmp(path, "/metrics")) {
		*page = (struct http_page){ 404, "text/plain", nothing, strlen(nothing) };
		return;
	}
	if (clock_seconds() - exporter->since_s >= FRESH_S)
		refresh(exporter);
	if (!exporter->text)
		*page = (struct http_page){ 503, "text/plain", exporter->said.text, strlen(exporter->said.text) };
	else
		*page = (struct http_page){ 200, "text/plain; version=0.0.4; charset=utf-8", exporter->text,
					    exporter->bytes };
}

static int serve(struct exporter *exporter, int listener, const char *where)
{
	struct pollfd files[] = { { .events = POLLIN }, { .events = POLLIN } };
	struct http_server *server;
	struct signals signals = {};
	int error = http_server_open(listener, make_page, exporter, &server);

	if (!error)
		error = signals_take(&signals);
	if (!error) {
		output_note("serving http://%s/metrics", where);
		files[0].fd = signals.fd;
		files[1].fd = http_server_fd(server);
	}
	while (!error && !files[0].revents) {
		if (poll(files, 2, http_server_timeout_ms(server)) < 0 && errno != EINTR)
			error = -errno;
		else
			http_server_run(server);
	}
	http_server_close(server);
	signals_give_back(&signals);
	forget(exporter);
	return error;
}

static enum command_status run_exporter(const struct invocation *invocation)
{
	const char *where = invocation->listen ? invocation->listen : EXPORTER_LISTEN_DEFAULT;
	struct exporter exporter = { .state = invocation->state, .since_s = -FRESH_S };
	const struct rlimit no_core = {};
	struct http_address address;
	int listener, error;

	if (http_address_parse(where, &address))
		return command_fail(STATUS_USAGE,
				    "--listen '%s': must be an address and a port, like 127.0.0.1:9917 or [::1]:9917",
				    where);
	/* Memory holds the secrets of hashes, so a crash must not write it to a file. */
	setrlimit(RLIMIT_CORE, &no_core);
	listener = http_address_listen(&address);
	if (listener < 0)
		return command_fail(STATUS_SYSTEM, "cannot listen on '%s': %s%s", where, strerror(-listener),
				    listener == -EADDRINUSE    ? "; another process has that port" :
				    listener == -EADDRNOTAVAIL ? "; this host has no such address" :
				    listener == -EACCES        ? "; take a port from 1024 on" :
								 "");
	if (!http_address_is_loopback(&address))
		output_note("other hosts can read the counters at %s too, unless a firewall stops them", where);
	error = serve(&exporter, listener, where);
	if (error == -ELIBACC)
		return command_fail(
			STATUS_SYSTEM,
			"cannot serve: no " HTTP_SERVER_LIBRARY " here; "
			"'apt-get install libmicrohttpd12', or let node_exporter read `xdp-cuckoo metrics FILE`");
	return error ? command_fail(command_status_of(error), "cannot serve: %s", strerror(-error)) : STATUS_DONE;
}

const struct command command_exporter = {
	.name = "exporter",
	.group = COMMAND_LOOK,
	.usage = "[--listen ADDRESS:PORT]",
	.summary = "serve the state of all running filters to Prometheus",
	.options = OPTION_LISTEN,
	.needs = PRIVILEGE_LOOK | PRIVILEGE_READ,
	.run = run_exporter,
};
