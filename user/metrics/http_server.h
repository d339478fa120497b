/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A small HTTP server without threads. Its owner polls for it and calls http_server_run(), and makes the
 * pages. Clients can only read, with GET and HEAD. Only this module uses libmicrohttpd, and loads it when a
 * server opens.
 *
 * Clients cannot exceed these limits: a request has at most 4 KiB; a connection serves one request and lasts
 * at most 5 seconds; there are at most 16 connections. A further one is accepted, and the oldest is closed.
 */
#ifndef XDP_CUCKOO_HTTP_SERVER_H
#define XDP_CUCKOO_HTTP_SERVER_H

#include <stddef.h>

#define HTTP_SERVER_LIBRARY "libmicrohttpd.so.12"

struct http_server;

struct http_page {
	unsigned int status; /* HTTP status: 200, 404, ... */
	const char *type;    /* "text/plain", ... */
	const char *text;    /* borrowed until the next page */
	size_t bytes;
};

/* Makes the page for a path: as in the request, but without '?' and what follows. */
typedef void http_server_pages(const char *path, void *context, struct http_page *page);

/*
 * `listener`: a listening, non-blocking socket. http_server_close() closes it, and accepts NULL. 0; -ENOMEM;
 * -ELIBACC: HTTP_SERVER_LIBRARY is not installed.
 */
int http_server_open(int listener, http_server_pages *pages, void *context, struct http_server **server);
void http_server_close(struct http_server *server);

/* The descriptor to poll for reading, and for how long at most; -1: no limit. */
int http_server_fd(const struct http_server *server);
int http_server_timeout_ms(const struct http_server *server);

/* Serves what is ready. Never waits. */
void http_server_run(struct http_server *server);

#endif
