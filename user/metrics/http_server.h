/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A small HTTP server without threads: its owner waits for it, beside whatever else, and lets it run. Pages are read, by
 * GET and HEAD, and come from its owner. The only module that knows libmicrohttpd, which is loaded when one opens.
 *
 * Bounded, whatever clients do: a request is 4 KiB at most, a connection serves one and lasts 5 seconds at most, and
 * there are 16; who comes then is let in, and the oldest has to go.
 */
#ifndef XDP_CUCKOO_HTTP_SERVER_H
#define XDP_CUCKOO_HTTP_SERVER_H

#include <stddef.h>

#define HTTP_SERVER_LIBRARY "libmicrohttpd.so.12"

struct http_server;

struct http_page {
	unsigned int status; /* as HTTP has it: 200, 404, ... */
	const char *type;    /* "text/plain", ... */
	const char *text;    /* borrowed until the next page */
	size_t bytes;
};

/* Makes the page at a path, as it came, without what follows a '?'. */
typedef void http_server_pages(const char *path, void *context, struct http_page *page);

/*
 * `listener`: a socket that listens and does not block, closed by http_server_close(), which accepts NULL. 0; -ENOMEM;
 * -ELIBACC: HTTP_SERVER_LIBRARY is not installed.
 */
int http_server_open(int listener, http_server_pages *pages, void *context, struct http_server **server);
void http_server_close(struct http_server *server);

/* The descriptor to wait for until it is readable, and for how long at most; -1: forever. */
int http_server_fd(const struct http_server *server);
int http_server_timeout_ms(const struct http_server *server);

/* Does what is to be done, without waiting for anybody. */
void http_server_run(struct http_server *server);

#endif
