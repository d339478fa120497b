/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A small HTTP server without threads, for GET and HEAD. A request has at most 4 KiB. A connection serves one request and
 * lasts at most 5 seconds. There are at most 16 connections: a new one closes the oldest.
 */
#ifndef XDP_CUCKOO_HTTP_SERVER_H
#define XDP_CUCKOO_HTTP_SERVER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#define HTTP_SERVER_LIBRARY "libmicrohttpd.so.12" /* loaded when a server opens */

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

/* 0; -ENOMEM; -ELIBACC: HTTP_SERVER_LIBRARY is not installed. The end of the process closes the server. */
int http_server_open(int listener, http_server_pages *pages, void *context, struct http_server **server);

/* Serves until it cannot wait for clients: -errno. */
int http_server_run(struct http_server *server);

#endif
