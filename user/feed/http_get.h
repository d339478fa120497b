/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fetches a URL with libcurl, or posts to it. Call it only in a process without privileges (base/unprivileged.h), because the bytes are hostile. Limits the bytes received, the bytes unpacked, time, speed and
 * redirects. Refuses a redirect from https to http, and gzip data that is not complete. Takes proxies from the environment,
 * as curl(1) does, but not for headers that would go by http. Keeps connections for the next call.
 */
#ifndef XDP_CUCKOO_HTTP_GET_H
#define XDP_CUCKOO_HTTP_GET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error_reason.h"
#include "store/store.h"

#define HTTP_REDIRECTS_MAX 5
#define HTTP_SLOW_BYTES 64 /* per second: a transfer that is slower */
#define HTTP_SLOW_S 30     /* for so long fails */
#define HTTP_CONNECT_MS 20000
#define HTTP_HEADER_BYTES 4096

struct http_get {
	const char *url;
	const char *headers;         /* lines "NAME: VALUE", which only the server of `home` may see; NULL: none */
	const char *home;            /* a URL with the scheme, the host and the port of that server */
	const char *etag, *modified; /* of the last fetch, so that the server sends only a newer page; "": not known */
	const char *pinned_key;      /* as CURLOPT_PINNEDPUBLICKEY; NULL: any key with a good certificate */
	const char *ca;              /* certificates as PEM text; NULL: those of the system */
	const char *cert, *cert_key; /* of this host, as PEM text; NULL: none */
	const char *socket;          /* the path of a socket where the server listens; NULL: the host of the URL */
	const char *post;            /* JSON to send; NULL: only asks */
	size_t bytes_max;
	__s64 time_ms;
};

struct http_page {
	char *bytes; /* NULL: not modified, or empty */
	size_t count;
	bool is_unmodified;
	__s64 retry_after_s; /* how long the server asks to wait; also set after an error */
	char etag[STORE_ETAG_BYTES], modified[STORE_MODIFIED_BYTES];
};

/* 0; -ENOENT: the server answers 404; -errno; with a reason that does not name the URL. */
int http_get(const struct http_get *get, struct http_page *page, struct reason *reason);

/* "ADDRESS PORT ADDRESS PORT ...": the servers that this process has asked, or proxies. Names are resolved by then. */
const char *http_servers(void);

void http_free(struct http_page *page);

#endif
