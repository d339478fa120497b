// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics/http_server.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/types.h>
#include <microhttpd.h>

#define CONNECTIONS 16
#define CONNECTION_MS 5000
#define REQUEST_BYTES 4096 /* the headers of the answer count too */

/*
 * The functions of libmicrohttpd. The tool is not linked with it, because that would load TLS libraries too and
 * cost every start 3.5 ms.
 */
/* clang-format off */
#define FUNCTIONS(X) \
	X(get_connection_info) X(create_response_from_buffer) X(add_response_header) X(queue_response) \
	X(destroy_response) X(start_daemon) X(stop_daemon) X(get_daemon_info) X(get_timeout) X(run)
/* clang-format on */

#define MEMBER(name) __typeof__(MHD_##name) *(name);
#define LOAD(name) (mhd.name = (__typeof__(mhd.name))dlsym(library, "MHD_" #name)) &&

static struct {
	FUNCTIONS(MEMBER)
} mhd;

struct connection {
	int fd;       /* -1: unused */
	bool is_shut; /* shut down, but libmicrohttpd has not closed it yet */
	__s64 since_ms;
};

struct http_server {
	struct MHD_Daemon *daemon;
	int listener; /* libmicrohttpd closes it, once it has been started */
	http_server_pages *pages;
	void *context;
	struct connection connection[CONNECTIONS + 1]; /* one more than allowed, until the oldest is closed */
	bool has_room; /* a connection has ended, and libmicrohttpd must run again to accept others */
};

static __s64 now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* libmicrohttpd sees the end of the stream and closes the connection. */
static void shut(struct connection *connection)
{
	connection->is_shut = true;
	shutdown(connection->fd, SHUT_RDWR);
}

/* Returns the oldest connection that is not shut, or NULL. Sets *count to their number. */
static struct connection *find_oldest(struct http_server *server, unsigned int *count)
{
	struct connection *oldest = NULL;

	*count = 0;
	for (size_t i = 0; i < CONNECTIONS + 1; i++) {
		struct connection *connection = &server->connection[i];

		if (connection->fd < 0 || connection->is_shut)
			continue;
		++*count;
		if (!oldest || connection->since_ms < oldest->since_ms)
			oldest = connection;
	}
	return oldest;
}

/* Called when a connection starts and when it ends. */
static void track_connection(void *context, struct MHD_Connection *of, void **of_connection,
			     enum MHD_ConnectionNotificationCode what)
{
	struct http_server *server = context;
	struct connection *oldest, *connection = *of_connection;
	unsigned int count;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		oldest = find_oldest(server, &count);
		if (count == CONNECTIONS)
			shut(oldest);
		for (connection = server->connection; connection->fd >= 0;)
			connection++;
		connection->fd = mhd.get_connection_info(of, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
		connection->is_shut = false;
		connection->since_ms = now_ms();
		*of_connection = connection;
	} else if (connection) {
		connection->fd = -1;
		server->has_room = true;
	}
}

/* If this fails, libmicrohttpd closes the connection. */
static enum MHD_Result answer_request(void *context, struct MHD_Connection *connection, const char *path,
				      const char *method, const char *version, const char *body, size_t *body_bytes,
				      void **state)
{
	static const char refusal[] = "only GET and HEAD\n";
	struct http_server *server = context;
	struct http_page page = { MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", refusal, strlen(refusal) };
	enum MHD_Result result = MHD_NO;
	struct MHD_Response *response;

	(void)version, (void)body, (void)body_bytes, (void)state;
	if (!strcmp(method, MHD_HTTP_METHOD_GET) || !strcmp(method, MHD_HTTP_METHOD_HEAD))
		server->pages(path, server->context, &page);
	response = mhd.create_response_from_buffer(page.bytes, (void *)page.text, MHD_RESPMEM_MUST_COPY);
	if (!response)
		return MHD_NO;
	if (mhd.add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, page.type) &&
	    mhd.add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") &&
	    (page.status != MHD_HTTP_METHOD_NOT_ALLOWED ||
	     mhd.add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD")))
		result = mhd.queue_response(connection, page.status, response);
	mhd.destroy_response(response);
	return result;
}

/* No page has %xx in its path, so escapes stay as they are. A decoded %00 would end the text. */
static size_t leave_escapes(void *server, struct MHD_Connection *connection, char *text)
{
	(void)server, (void)connection;
	return strlen(text);
}

int http_server_open(int listener, http_server_pages *pages, void *context, struct http_server **server)
{
	void *library = dlopen(HTTP_SERVER_LIBRARY, RTLD_NOW | RTLD_LOCAL); /* never unloaded */
	const bool is_loaded = library && FUNCTIONS(LOAD) true;
	struct http_server *new = is_loaded ? calloc(1, sizeof(*new)) : NULL;

	*server = new;
	if (!new) {
		close(listener);
		return is_loaded ? -ENOMEM : -ELIBACC;
	}
	*new = (struct http_server){ .listener = listener, .pages = pages, .context = context };
	for (size_t i = 0; i < CONNECTIONS + 1; i++)
		new->connection[i].fd = -1;
	new->daemon = mhd.start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, answer_request, new, MHD_OPTION_LISTEN_SOCKET,
				       listener, MHD_OPTION_CONNECTION_LIMIT, (unsigned int)CONNECTIONS + 1,
				       MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES,
				       MHD_OPTION_NOTIFY_CONNECTION, track_connection, new,
				       MHD_OPTION_UNESCAPE_CALLBACK, leave_escapes, NULL, MHD_OPTION_STRICT_FOR_CLIENT,
				       1, MHD_OPTION_END);
	if (new->daemon)
		return 0;
	http_server_close(new);
	*server = NULL;
	return -ENOMEM;
}

void http_server_close(struct http_server *server)
{
	if (!server)
		return;
	if (server->daemon)
		mhd.stop_daemon(server->daemon);
	else
		close(server->listener);
	free(server);
}

int http_server_fd(const struct http_server *server)
{
	return mhd.get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

int http_server_timeout_ms(const struct http_server *server)
{
	MHD_UNSIGNED_LONG_LONG of_library;
	__s64 left_ms = INT_MAX;
	unsigned int count;
	const struct connection *oldest = find_oldest((struct http_server *)server, &count);

	if (server->has_room)
		return 0;
	if (oldest)
		left_ms = oldest->since_ms + CONNECTION_MS - now_ms();
	if (mhd.get_timeout(server->daemon, &of_library) == MHD_YES && (__s64)of_library < left_ms)
		left_ms = of_library;
	if (left_ms == INT_MAX)
		return -1;
	return left_ms > 0 ? left_ms : 0;
}

void http_server_run(struct http_server *server)
{
	const __s64 end_ms = now_ms() - CONNECTION_MS;
	struct connection *oldest;
	unsigned int count;

	while ((oldest = find_oldest(server, &count)) && oldest->since_ms <= end_ms)
		shut(oldest);
	server->has_room = false;
	mhd.run(server->daemon);
}
