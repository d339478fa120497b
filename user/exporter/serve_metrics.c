// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "exporter/metrics.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/types.h>

#include "base/clock.h"
#include "base/unprivileged.h"

#define FRESH_MS 1000          /* a reading that is not older also answers the next scrape */
#define HANGS_MS 5000          /* the web process must take an answer within this time */
#define ALIVE_MS 3000          /* the web process says so often that it runs */
#define SILENT_MS 10000        /* a web process that says nothing for so long hangs */
#define PAUSE_MS 100           /* after such a word the next is not read for so long: a flood of them costs little */
#define WEB_MEMORY (256 << 20) /* libraries and, for each connection, a copy of the text */

/* ---- the web process ---- */

/* Its first message. */
struct web_start {
	int listen_error, serve_error;
};

/* Afterwards it sends bytes of these values. Only a question has an answer: this, and the text. */
enum web_word { WEB_ASKS, WEB_IS_ALIVE };

struct web_answer {
	__u32 status; /* of HTTP */
	size_t bytes;
};

struct web {
	int fd;
	__s64 answered_ms, alive_ms;
	struct web_answer answer;
	char *text;
};

/* Asks for the text of the metrics, at most once a second. */
static void make_page(const char *path, void *context, struct http_page *page)
{
	static const char index_page[] = "<!DOCTYPE html><title>xdp-cuckoo</title><a href=\"/metrics\">/metrics</a>\n";
	static const char nothing[] = "there is only /metrics here\n";
	const char question = WEB_ASKS;
	struct web *web = context;

	if (!strcmp(path, "/")) {
		*page = (struct http_page){ 200, "text/html", index_page, strlen(index_page) };
		return;
	}
	if (strcmp(path, "/metrics")) {
		*page = (struct http_page){ 404, "text/plain", nothing, strlen(nothing) };
		return;
	}
	if (clock_ms(CLOCK_MONOTONIC) - web->answered_ms >= FRESH_MS) {
		free(web->text);
		if (unprivileged_send(web->fd, &question, 1, NULL, 0, UNPRIVILEGED_NO_DEADLINE) ||
		    unprivileged_receive(web->fd, &web->answer, sizeof(web->answer), UNPRIVILEGED_NO_DEADLINE))
			_exit(1);
		web->text = malloc(web->answer.bytes + 1);
		if (!web->text || unprivileged_receive(web->fd, web->text, web->answer.bytes, UNPRIVILEGED_NO_DEADLINE))
			_exit(1);
		web->answered_ms = clock_ms(CLOCK_MONOTONIC);
	}
	*page = (struct http_page){ web->answer.status,
				    web->answer.status == 200 ? "text/plain; version=0.0.4; charset=utf-8" :
								"text/plain",
				    web->text, web->answer.bytes };
}

/* Runs between two waits for clients, so a server that hangs is silent. A process that does not listen is busy. */
static void say_alive(void *context)
{
	const __s64 now_ms = clock_ms(CLOCK_MONOTONIC);
	const char word = WEB_IS_ALIVE;
	struct web *web = context;

	if (now_ms - web->alive_ms < ALIVE_MS)
		return;
	web->alive_ms = now_ms;
	send(web->fd, &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void run_web(const void *context, int fd)
{
	const struct exporter *exporter = context;
	const int listener = http_address_listen(&exporter->address);
	struct web web = { .fd = fd, .answered_ms = -FRESH_MS };
	struct web_start start = {};
	struct http_server *server;

	if (listener < 0)
		start.listen_error = listener;
	else
		start.serve_error = http_server_open(listener, make_page, &web, &server);
	if (!unprivileged_send(fd, &start, sizeof(start), NULL, 0, UNPRIVILEGED_NO_DEADLINE) && !start.listen_error &&
	    !start.serve_error)
		http_server_run(server, ALIVE_MS, say_alive);
}

/* ---- the process that reads filters ---- */

struct serving {
	const struct exporter *exporter;
	struct unprivileged web;
	__s64 listens_ms;   /* until then it does not listen to the web process */
	struct reason said; /* the last failure to read filters or stores; "": none */
};

/* This process. Its children ignore its signals, and end when it has ended. */
static pid_t reader;

/* At once, whatever it waits for: nothing that it does is left half done. */
static void end(int signal_number)
{
	(void)signal_number;
	if (getpid() == reader)
		_exit(0);
}

/* Waits for a word of the web process. */
static bool await(const struct serving *serving, __s64 wait_ms)
{
	struct pollfd file = { .fd = serving->web.fd, .events = POLLIN };

	return poll(&file, 1, wait_ms) > 0;
}

static int start_web(struct serving *serving, struct reason *reason)
{
	const struct exporter *exporter = serving->exporter;
	struct web_start start;
	int error = unprivileged_start(&serving->web, run_web, exporter, WEB_MEMORY, reason);

	if (error)
		return error;
	if (!await(serving, HANGS_MS) ||
	    recv(serving->web.fd, &start, sizeof(start), MSG_DONTWAIT) != sizeof(start))
		start = (struct web_start){ .serve_error = -ETIMEDOUT };
	error = start.listen_error;
	if (error)
		return reason_set(reason, error, "cannot listen on '%s': %s%s", exporter->where, strerror(-error),
				  error == -EADDRINUSE    ? "; another process has that port" :
				  error == -EADDRNOTAVAIL ? "; this host has no such address" :
				  error == -EACCES        ? "; take a port from 1024 on" :
							    "");
	error = start.serve_error;
	return error ? reason_set(reason, error, "cannot serve: %s", strerror(-error)) : 0;
}

/* Makes the text. Notes a failure once, not again for each scrape. Returns the status of HTTP; *text: NULL: no memory. */
static unsigned int make_text(struct serving *serving, char **text, size_t *bytes)
{
	struct reason unread, reason;
	json_t *metrics;
	bool is_short;
	FILE *to;
	int error = metrics_gather(serving->exporter->state, &metrics, &unread, &reason);
	const char *failure = error ? reason.text : unread.text;

	if (*failure && strcmp(failure, serving->said.text))
		serving->exporter->note(failure);
	reason_set(&serving->said, 0, "%s", failure);
	*text = NULL;
	to = open_memstream(text, bytes);
	if (to && error)
		fputs(failure, to);
	else if (to)
		metrics_write(to, metrics);
	json_decref(metrics);
	is_short = to && ferror(to);
	if (to && (fclose(to) || is_short)) {
		free(*text);
		*text = NULL;
	}
	return error ? 503 : 200;
}

/*
 * Waits for a word of the web process, and answers a question. The web process may be hostile: however often it asks, this
 * process reads the filters once a second. 0; -errno: the web process is of no use any more.
 */
static int answer(struct serving *serving)
{
	struct web_answer head = {};
	char word, *text;
	size_t bytes;
	int error;

	clock_pause(serving->listens_ms - clock_ms(CLOCK_MONOTONIC));
	if (!await(serving, SILENT_MS))
		return -ETIMEDOUT;
	if (recv(serving->web.fd, &word, 1, MSG_DONTWAIT) != 1)
		return -ECONNRESET;
	if (word == WEB_IS_ALIVE) {
		serving->listens_ms = clock_ms(CLOCK_MONOTONIC) + PAUSE_MS;
		return 0;
	}
	head.status = make_text(serving, &text, &bytes);
	head.bytes = text ? bytes : 0;
	if (!text)
		head.status = 503;
	error = unprivileged_send(serving->web.fd, &head, sizeof(head), text, head.bytes,
				  clock_ms(CLOCK_MONOTONIC) + HANGS_MS);
	free(text);
	serving->listens_ms = clock_ms(CLOCK_MONOTONIC) + FRESH_MS;
	return error;
}

int exporter_run(const struct exporter *exporter, struct reason *reason)
{
	struct serving serving = { .exporter = exporter, .web.fd = -1 };
	struct reason text;
	int error;

	reader = getpid();
	signal(SIGINT, end);
	signal(SIGTERM, end);
	error = start_web(&serving, reason);
	if (!error) {
		reason_set(&text, 0, "serving http://%s/metrics", exporter->where);
		exporter->note(text.text);
	}
	while (!error) {
		error = answer(&serving);
		if (!error)
			continue;
		unprivileged_stop(&serving.web);
		exporter->note(error == -ETIMEDOUT ? "the process that serves HTTP hangs; starts another one" :
						     "the process that serves HTTP has ended; starts another one");
		clock_pause(FRESH_MS);
		error = start_web(&serving, reason);
	}
	unprivileged_stop(&serving.web);
	return error;
}
