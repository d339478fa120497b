/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Gets a URL, by libcurl, which is loaded when it is needed. Only for a process without privileges
 * (base/unprivileged.h): the bytes are hostile. Everything is bounded: bytes as they come and unpacked, time, speed,
 * redirects. A redirect from https to http is refused. Proxies are those of the environment, as curl(1) says.
 */
#ifndef XDP_CUCKOO_HTTP_GET_H
#define XDP_CUCKOO_HTTP_GET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error_reason.h"
#include "store/store.h"

#define HTTP_REDIRECTS_MAX 5
#define HTTP_SLOW_BYTES 64 /* per second, for so long: it hangs */
#define HTTP_SLOW_S 30
#define HTTP_CONNECT_MS 20000

struct http_get {
	const char *url;
	const char *etag, *modified; /* "": not known. The server may answer that the page has not changed since */
	const char *pinned_key;      /* as CURLOPT_PINNEDPUBLICKEY; NULL: any key with a good certificate */
	const char *ca;              /* certificates as PEM text; NULL: those of the system */
	size_t ca_bytes;
	size_t bytes_max;
	__s64 time_ms;
};

struct http_page {
	char *bytes; /* NULL: not modified, or empty */
	size_t count;
	bool is_unmodified;
	__s64 retry_after_s; /* the server asks not to come back before; also after an error */
	char etag[STORE_ETAG_BYTES], modified[STORE_MODIFIED_BYTES];
};

/* 0; -errno, with a reason that does not name the URL. */
int http_get(const struct http_get *get, struct http_page *page, struct reason *reason);
void http_free(struct http_page *page);

#endif
