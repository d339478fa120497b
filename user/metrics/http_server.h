/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A small HTTP server without threads, for GET and HEAD. Its owner polls, calls http_server_run() and makes
 * the pages. A request has at most 4 KiB. A connection serves one request and lasts at most 5 seconds. There
 * are at most 16 connections: a new one closes the oldest.
 */
#ifndef XDP_CUCKOO_HTTP_SERVER_H
#define XDP_CUCKOO_HTTP_SERVER_H

#include <stddef.h>

#define HTTP_SERVER_LIBRARY "libmicrohttpd.so.12" /* loaded when a server opens */

struct http_server;

struct http_page {
	unsigned int status; /* HTTP status: 200, 404, ... */
	const char *type;    /* "text/plain", ... */
	const char *text;    /* borrowed until the next page */
	size_t bytes;
};

/* Makes the page for a path. The path does not contain '?' and the text after it. */
typedef void http_server_pages(const char *path, void *context, struct http_page *page);

/*
 * Takes over `listener`, a listening, non-blocking socket. 0; -ENOMEM; -ELIBACC: HTTP_SERVER_LIBRARY is not
 * installed. http_server_close() accepts NULL.
 */
int http_server_open(int listener, http_server_pages *pages, void *context, struct http_server **server);
void http_server_close(struct http_server *server);

/* The descriptor to poll for reading, and for how long at most; -1: no limit. */
int http_server_fd(const struct http_server *server);
int http_server_timeout_ms(const struct http_server *server);

/* Serves what is ready. Never waits. */
void http_server_run(struct http_server *server);

#endif
