// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "feed/http_get.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <zlib.h>

#include "base/version.h"
#include "config/config.h"
#include "host/host.h"

#define ENCODING_BYTES 32
struct transfer {
	const struct http_get *get;
	struct http_page *page;
	CURL *curl;
	struct curl_slist *headers;
	size_t room;
	bool is_secure;            /* the last request went by https */
	bool has_asked, is_public; /* there was a request; the first went to a public address */
	__s64 left_ms;
	const char *inner; /* why a redirect is not followed; NULL: it is */
	bool is_downgraded, is_too_large, is_out_of_memory;
	char error[CURL_ERROR_SIZE];
};

/* If it does not return `count`, libcurl ends the transfer. */
static size_t take_bytes(char *bytes, size_t size, size_t count, void *context)
{
	struct transfer *transfer = context;
	struct http_page *page = transfer->page;

	(void)size; /* is 1 */
	if (page->count + count > transfer->get->bytes_max) {
		transfer->is_too_large = true;
		return 0;
	}
	if (page->count + count >= transfer->room) {
		const size_t room = 2 * (page->count + count) + 1;
		char *grown = realloc(page->bytes, room);

		transfer->is_out_of_memory = !grown;
		if (!grown)
			return 0;
		page->bytes = grown;
		transfer->room = room;
	}
	memcpy(page->bytes + page->count, bytes, count);
	page->count += count;
	page->bytes[page->count] = '\0';
	return count;
}

/* What is special about an address; NULL: nothing, it is public. */
static const char *special_of(const char *address)
{
	struct reason ignored;
	struct rule rule;

	return rule_parse(address, &rule, &ignored) ? "not known" : guard_special(&rule, NULL);
}

/*
 * A provider must not reach by this host what only this host can reach. So it may redirect to an address that is not
 * public only if its own address is not public either. With a proxy, `address` is the proxy's.
 */
static bool may_go_to(struct transfer *transfer, const char *address)
{
	const char *inner = special_of(address);

	if (!transfer->has_asked || !transfer->is_public || !inner)
		return true;
	transfer->inner = inner;
	return false;
}

static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *to)
{
	const void *address = to->family == AF_INET ? (void *)&((struct sockaddr_in *)&to->addr)->sin_addr :
						      (void *)&((struct sockaddr_in6 *)&to->addr)->sin6_addr;
	char text[INET6_ADDRSTRLEN] = "";

	(void)purpose;
	inet_ntop(to->family, address, text, sizeof(text));
	if (!may_go_to(context, text))
		return CURL_SOCKET_BAD;
	return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

static char servers[HOST_SERVERS_BYTES];

const char *http_servers(void)
{
	return servers;
}

/* If there are too many, those from before are forgotten. A server at a socket has no address. */
static void note_server(const char *address, int port)
{
	char server[INET6_ADDRSTRLEN + 16];
	const char *found;

	snprintf(server, sizeof(server), "%s %d ", address, port);
	if (!*address || strspn(address, "0123456789abcdefABCDEF.:") != strlen(address))
		return;
	/* Another one may end with it. */
	for (found = servers; (found = strstr(found, server)); found++)
		if (found == servers || found[-1] == ' ')
			return;
	if (strlen(servers) + strlen(server) >= sizeof(servers))
		*servers = '\0';
	strcat(servers, server);
}

/* Called before each request, also after a redirect: open_socket() is not called if a connection is used again. */
static int check_request(void *context, char *to, char *from, int to_port, int from_port)
{
	struct transfer *transfer = context;
	const bool was_secure = transfer->is_secure;
	char *url = NULL;

	(void)from, (void)from_port;
	curl_easy_getinfo(transfer->curl, CURLINFO_EFFECTIVE_URL, &url);
	transfer->is_secure = url && !strncasecmp(url, "https:", 6);
	transfer->is_downgraded = was_secure && !transfer->is_secure;
	if (transfer->is_downgraded || !may_go_to(transfer, to))
		return CURL_PREREQFUNC_ABORT;
	transfer->is_public |= !transfer->has_asked && !special_of(to);
	transfer->has_asked = true;
	note_server(to, to_port);
	return CURL_PREREQFUNC_OK;
}

static void add_header(struct transfer *transfer, const char *name, const char *value, size_t length)
{
	char text[HTTP_HEADER_BYTES];
	struct curl_slist *longer;

	if (!length)
		return;
	snprintf(text, sizeof(text), "%s%.*s", name, (int)length, value);
	longer = curl_slist_append(transfer->headers, text);
	explicit_bzero(text, sizeof(text));
	transfer->is_out_of_memory |= !longer;
	if (longer)
		transfer->headers = longer;
}

/* The part of the options that a redirect changes. */
static void set_address(struct transfer *transfer, const char *url)
{
	const struct http_get *get = transfer->get;
	const bool is_home = get->headers && url_is_same_server(get->home, url);
	const long connect_ms = transfer->left_ms < HTTP_CONNECT_MS ? transfer->left_ms : HTTP_CONNECT_MS;
	CURLcode failed;

	curl_slist_free_all(transfer->headers);
	transfer->headers = NULL;
	if (get->post)
		add_header(transfer, "Content-Type: ", "application/json", strlen("application/json"));
	add_header(transfer, "If-None-Match: ", get->etag, strlen(get->etag));
	add_header(transfer, "If-Modified-Since: ", get->modified, strlen(get->modified));
	for (const char *line = is_home ? get->headers : ""; *line; line += *line == '\n') {
		add_header(transfer, "", line, strcspn(line, "\n"));
		line += strcspn(line, "\n");
	}
	failed = curl_easy_setopt(transfer->curl, CURLOPT_URL, url);
	failed |= curl_easy_setopt(transfer->curl, CURLOPT_HTTPHEADER, transfer->headers);
	failed |= curl_easy_setopt(transfer->curl, CURLOPT_TIMEOUT_MS, (long)transfer->left_ms);
	failed |= curl_easy_setopt(transfer->curl, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
	/* A proxy would see the headers. */
	failed |= curl_easy_setopt(transfer->curl, CURLOPT_NOPROXY,
				       is_home && strncasecmp(url, "https:", 6) ? "*" : NULL);
	transfer->is_out_of_memory |= failed != 0;
}

static void set_options(struct transfer *transfer)
{
	const struct http_get *get = transfer->get;
	const struct {
		CURLoption option;
		const char *pem;
	} pems[] = { { CURLOPT_CAINFO_BLOB, get->ca },
		     { CURLOPT_SSLCERT_BLOB, get->cert },
		     { CURLOPT_SSLKEY_BLOB, get->cert_key } };
	CURLcode failed = 0;

#define SET(option, value) failed |= curl_easy_setopt(transfer->curl, option, value)
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_PREREQFUNCTION, check_request);
	SET(CURLOPT_PREREQDATA, transfer);
	SET(CURLOPT_OPENSOCKETFUNCTION, open_socket);
	SET(CURLOPT_OPENSOCKETDATA, transfer);
	SET(CURLOPT_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_SSL_VERIFYHOST, 2L);
	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	for (size_t i = 0; i < sizeof(pems) / sizeof(*pems); i++)
		if (pems[i].pem)
			SET(pems[i].option,
			    &((struct curl_blob){ (void *)pems[i].pem, strlen(pems[i].pem), CURL_BLOB_COPY }));
	if (get->socket)
		SET(CURLOPT_UNIX_SOCKET_PATH, get->socket);
	if (get->post)
		SET(CURLOPT_POSTFIELDS, get->post);
	if (get->pinned_key)
		SET(CURLOPT_PINNEDPUBLICKEY, get->pinned_key);
	SET(CURLOPT_USERAGENT, "xdp-cuckoo/" VERSION);
	SET(CURLOPT_ACCEPT_ENCODING, "gzip");
	SET(CURLOPT_HTTP_CONTENT_DECODING, 0L); /* unpack() does it */
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_LOW_SPEED_LIMIT, (long)HTTP_SLOW_BYTES);
	SET(CURLOPT_LOW_SPEED_TIME, (long)HTTP_SLOW_S);
	SET(CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)get->bytes_max);
	SET(CURLOPT_ERRORBUFFER, transfer->error);
	SET(CURLOPT_WRITEFUNCTION, take_bytes);
	SET(CURLOPT_WRITEDATA, transfer);
#undef SET
	transfer->is_out_of_memory |= failed != 0;
}

/* Copies a header of the last answer. Leaves out a header that does not fit. */
static void take_header(struct transfer *transfer, const char *name, char *value, size_t room)
{
	struct curl_header *header;

	if (!curl_easy_header(transfer->curl, name, 0, CURLH_HEADER, -1, &header) && strlen(header->value) < room)
		strcpy(value, header->value);
}

static int say_transfer(const struct transfer *transfer, CURLcode code, struct reason *reason)
{
	const char *text = *transfer->error ? transfer->error : curl_easy_strerror(code);

	if (transfer->is_out_of_memory)
		return reason_set(reason, -ENOMEM, "not enough memory");
	if (transfer->is_too_large || code == CURLE_FILESIZE_EXCEEDED)
		return reason_set(reason, -EFBIG, "it is larger than %zu MiB", transfer->get->bytes_max >> 20);
	/* libcurl reports headers that are too long in the same way. */
	if (code == CURLE_OUT_OF_MEMORY)
		return reason_set(reason, -EPROTO, "its headers are too large, or there is not enough memory");
	if (transfer->is_downgraded)
		return reason_set(reason, -EPROTO, "it redirects from https to http, which is not followed");
	if (transfer->inner)
		return reason_set(reason, -EPROTO, "it redirects to an address that is %s, which is not followed",
				  transfer->inner);
	if (code == CURLE_UNSUPPORTED_PROTOCOL)
		return reason_set(reason, -EPROTO, "it redirects to a URL that is not http or https");
	return reason_set(reason, -EIO, "%s", text);
}

/*
 * Whether the body may be a part of the list that ends within a line. In HTTP/1 only the end of the connection ends a body
 * whose server sends no length. Half a line may be another rule: of 203.0.113.0/24 remains 203.0.113.0/2.
 */
static bool may_be_cut(const struct transfer *transfer)
{
	const struct http_page *page = transfer->page;
	struct curl_header *ignored;
	long version = 0;

	curl_easy_getinfo(transfer->curl, CURLINFO_HTTP_VERSION, &version);
	return version <= CURL_HTTP_VERSION_1_1 && page->count && page->bytes[page->count - 1] != '\n' &&
	       curl_easy_header(transfer->curl, "Content-Length", 0, CURLH_HEADER, -1, &ignored) &&
	       curl_easy_header(transfer->curl, "Transfer-Encoding", 0, CURLH_HEADER, -1, &ignored);
}

/*
 * libcurl takes a gzip body that ends early for a whole one, so it does not unpack. Here the end of the gzip data, with
 * its checksum, must be there, and nothing after it.
 */
static int unpack(struct transfer *transfer, struct reason *reason)
{
	struct http_page *page = transfer->page;
	char encoding[ENCODING_BYTES] = "", piece[65536], *packed = page->bytes;
	z_stream stream = { .next_in = (Bytef *)packed, .avail_in = page->count };
	int status;

	take_header(transfer, "Content-Encoding", encoding, sizeof(encoding));
	if (!*encoding || !strcasecmp(encoding, "identity"))
		return may_be_cut(transfer) ?
			       reason_set(reason, -EPROTO,
					  "it ends within a line, and its server does not send its length: "
					  "it may be cut") :
			       0;
	if (strcasecmp(encoding, "gzip") && strcasecmp(encoding, "x-gzip"))
		return reason_set(reason, -EPROTO, "its Content-Encoding is '%s', not gzip", encoding);
	page->bytes = NULL;
	page->count = transfer->room = 0;
	status = inflateInit2(&stream, MAX_WBITS + 16); /* of gzip */
	while (status == Z_OK && !transfer->is_too_large && !transfer->is_out_of_memory) {
		stream.next_out = (Bytef *)piece;
		stream.avail_out = sizeof(piece);
		status = inflate(&stream, Z_NO_FLUSH);
		take_bytes(piece, 1, sizeof(piece) - stream.avail_out, transfer);
	}
	inflateEnd(&stream);
	free(packed);
	transfer->is_out_of_memory |= status == Z_MEM_ERROR;
	if (transfer->is_too_large || transfer->is_out_of_memory)
		return say_transfer(transfer, CURLE_OK, reason);
	if (status != Z_STREAM_END || stream.avail_in)
		return reason_set(reason, -EPROTO, "its gzip data is damaged or incomplete");
	return 0;
}

static int transfer_run(struct transfer *transfer, struct reason *reason)
{
	const struct http_get *get = transfer->get;
	struct http_page *page = transfer->page;
	curl_off_t retry_after_s = 0, spent_us = 0;
	const char *what;
	long status = 0;
	CURLcode code;

	set_options(transfer);
	set_address(transfer, get->url);
	/* Not CURLOPT_FOLLOWLOCATION: it sends the headers on to other servers. */
	for (unsigned int redirects = 0;; redirects++) {
		char *url = NULL;

		if (transfer->is_out_of_memory)
			return reason_set(reason, -ENOMEM, "not enough memory");
		code = curl_easy_perform(transfer->curl);
		if (code)
			return say_transfer(transfer, code, reason);
		curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &status);
		curl_easy_getinfo(transfer->curl, CURLINFO_REDIRECT_URL, &url);
		if (!url || status == 304)
			break;
		if (redirects == HTTP_REDIRECTS_MAX)
			return reason_set(reason, -EPROTO, "it redirects more than %d times", HTTP_REDIRECTS_MAX);
		curl_easy_getinfo(transfer->curl, CURLINFO_TOTAL_TIME_T, &spent_us);
		transfer->left_ms -= spent_us / 1000;
		transfer->left_ms = transfer->left_ms > 1 ? transfer->left_ms : 1;
		page->count = 0;
		set_address(transfer, url);
	}
	curl_easy_getinfo(transfer->curl, CURLINFO_RETRY_AFTER, &retry_after_s);
	page->retry_after_s = retry_after_s > 0 ? retry_after_s : 0;
	page->is_unmodified = status == 304 && (*get->etag || *get->modified);
	what = status == 404 || status == 410 ? ": there is no such page" :
	       status == 401 || status == 403 ? ": it refuses this host" :
	       status == 429                  ? ": this host comes too often" :
	       status >= 500                  ? ": it has a problem" :
						"";
	if (status != 200 && !(get->post && status == 201) && !page->is_unmodified)
		return page->retry_after_s ?
			       reason_set(reason, -EAGAIN, "the server answers %ld%s; it asks to wait for %lld s",
					  status, what, (long long)page->retry_after_s) :
			       reason_set(reason, status == 404 ? -ENOENT : -EIO, "the server answers %ld%s", status,
					  what);
	take_header(transfer, "ETag", page->etag, sizeof(page->etag));
	take_header(transfer, "Last-Modified", page->modified, sizeof(page->modified));
	return page->is_unmodified ? 0 : unpack(transfer, reason);
}

int http_get(const struct http_get *get, struct http_page *page, struct reason *reason)
{
	static CURL *curl; /* keeps its connections until the process ends */
	struct transfer transfer = { .get = get, .page = page, .left_ms = get->time_ms };
	int error;

	*page = (struct http_page){};
	if (!curl) {
		if (!curl_global_init(CURL_GLOBAL_DEFAULT))
			curl = curl_easy_init();
		if (!curl)
			return reason_set(reason, -ENOMEM, "not enough memory");
	}
	curl_easy_reset(curl);
	transfer.curl = curl;
	error = transfer_run(&transfer, reason);
	curl_slist_free_all(transfer.headers);
	return error;
}

void http_free(struct http_page *page)
{
	free(page->bytes);
	page->bytes = NULL;
}
