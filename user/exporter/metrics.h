/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The metrics of all running filters: gathered, and served over HTTP. */
#ifndef XDP_CUCKOO_METRICS_H
#define XDP_CUCKOO_METRICS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#include "base/error_reason.h"
#include "counters/counters.h"
#include "io/metrics_text.h"
#include "lists/flow_report.h"
#include "store/store.h"

/* The metrics of all running filters in this network namespace: names, types, meanings and values. */

/*
 * Returns an array for metrics_write() in *metrics. `state`: the directory of all stores; NULL: the default.
 * *unread names the first filter or store that could not be read; "": all could. 0; -ENOMEM; -EPERM, -EPROTO:
 * no filter could be read; other -errno.
 */
int metrics_gather(const char *state, json_t **metrics, struct reason *unread, struct reason *reason);

/*
 * Counts of a store and of its lists, for a process that must survive a bad store. A child process reads the store, and only
 * the child dies or hangs if the file is cut short or the disk fails.
 */

/* With more rules, what they counted is not summed: that would take too long for a scrape. */
#define STORE_SUMMARY_RULES_MAX 500000

struct store_summary {
	struct store_info info;
	struct store_lists lists;
	struct store_feeds feeds;
	struct flow_report flows[1 + STORE_LISTS_MAX]; /* of each list; see flow_report.second */
	bool has_counts; /* the filters of the name count by rule, and the counts came in time */
	struct list_counts counts;
};

/* `name` is that of the running filters. 0; -ENOENT: there is no store; other -errno. */
int store_summary_read(const char *dir, const char *name, struct store_summary *summary, struct reason *reason);

/*
 * A small HTTP server without threads, for GET and HEAD. A request has at most 4 KiB. A connection serves one request and
 * lasts at most 5 seconds. There are at most 16 connections: a new one closes the oldest.
 */

struct http_address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	};
	socklen_t bytes;
};

/* Reads 192.0.2.1:9917, [2001:db8::1]:9917 or [fe80::1%eth0]:9917, but no host names. 0; -EINVAL. */
int http_address_parse(const char *text, struct http_address *address);

/* Whether only processes of this host can connect. */
bool http_address_is_loopback(const struct http_address *address);

/* Returns a listening, non-blocking socket, or -errno. [::] means all addresses, of IPv4 too. */
int http_address_listen(const struct http_address *address);

struct http_server;

struct http_page {
	unsigned int status; /* HTTP status: 200, 404, ... */
	const char *type;    /* "text/plain", ... */
	const char *text;    /* borrowed until the next page */
	size_t bytes;
};

/* Makes the page for a path. The path does not contain '?' and the text after it. */
typedef void http_server_pages(const char *path, void *context, struct http_page *page);

/* 0; -ENOMEM. The end of the process closes the server. */
int http_server_open(int listener, http_server_pages *pages, void *context, struct http_server **server);

/* Serves until it cannot wait for clients: -errno. Calls `often` with the context of the pages every `often_ms` at least. */
int http_server_run(struct http_server *server, int often_ms, void (*often)(void *context));

/*
 * Serves metrics over HTTP, until a signal comes. This process reads filters and stores, and needs privileges. Another one
 * without privileges has the listening socket and talks to the clients. It can only ask for the text of the metrics, once
 * a second. If it ends or hangs, this process starts another one.
 */

struct exporter {
	const char *state; /* the directory of all stores; NULL: the default */
	const char *where; /* the address, for messages */
	struct http_address address;
	void (*note)(const char *text);
};

/* SIGINT and SIGTERM end this process with 0, whatever it waits for. -errno. */
int exporter_run(const struct exporter *exporter, struct reason *reason);

#endif
