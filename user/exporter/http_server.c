// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "exporter/metrics.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/types.h>
#include <microhttpd.h>

#include "base/clock.h"
#include "kernel/interfaces.h"

#define CONNECTIONS 16
#define CONNECTION_MS 5000
#define REQUEST_BYTES 4096 /* the headers of the answer count too */
#define WAITING 64         /* connections that are not accepted yet */
#define HOST_BYTES (INET6_ADDRSTRLEN + 1 + INTERFACE_NAME_BYTES)

/* ---- addresses ---- */

static int parse_port(const char *text, in_port_t *port)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	*port = htons(number);
	return *text >= '0' && *text <= '9' && !*end && number >= 1 && number <= 65535 ? 0 : -EINVAL;
}

int http_address_parse(const char *text, struct http_address *address)
{
	const char *colon = strrchr(text, ':');
	const bool is_v6 = *text == '[' && colon > text && colon[-1] == ']';
	const size_t length = colon ? colon - text - 2 * is_v6 : 0;
	struct interface interface;
	char host[HOST_BYTES], *zone;

	*address = (struct http_address){};
	if (!length || length >= sizeof(host))
		return -EINVAL;
	snprintf(host, sizeof(host), "%.*s", (int)length, text + is_v6);
	if (!is_v6) {
		address->v4.sin_family = AF_INET;
		address->bytes = sizeof(address->v4);
		return inet_pton(AF_INET, host, &address->v4.sin_addr) == 1 ?
			       parse_port(colon + 1, &address->v4.sin_port) :
			       -EINVAL;
	}
	zone = strchr(host, '%'); /* for example %eth0 */
	if (zone) {
		*zone++ = '\0';
		if (interfaces_find(zone, &interface))
			return -EINVAL;
		address->v6.sin6_scope_id = interface.index;
	}
	address->v6.sin6_family = AF_INET6;
	address->bytes = sizeof(address->v6);
	return inet_pton(AF_INET6, host, &address->v6.sin6_addr) == 1 ? parse_port(colon + 1, &address->v6.sin6_port) :
									-EINVAL;
}

bool http_address_is_loopback(const struct http_address *address)
{
	if (address->any.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
	return ntohl(address->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

int http_address_listen(const struct http_address *address)
{
	const int yes = 1, no = 0;
	const int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error;

	if (fd < 0)
		return -errno;
	/* With SO_REUSEADDR a restarted server gets the address at once. Without V6ONLY, [::] includes IPv4. */
	if (!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) &&
	    (address->any.sa_family != AF_INET6 || !setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no))) &&
	    !bind(fd, &address->any, address->bytes) && !listen(fd, WAITING))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

/* ---- the server ---- */

struct connection {
	int fd;       /* -1: unused */
	bool is_shut; /* shut down, but libmicrohttpd has not closed it yet */
	__s64 since_ms;
};

struct http_server {
	struct MHD_Daemon *daemon;
	http_server_pages *pages;
	void *context;
	struct connection connection[CONNECTIONS + 1]; /* one more than allowed, until the oldest is closed */
	bool has_room; /* a connection has ended, and libmicrohttpd must run again to accept others */
};

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
		connection->fd = MHD_get_connection_info(of, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
		connection->is_shut = false;
		connection->since_ms = clock_ms(CLOCK_MONOTONIC);
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
	response = MHD_create_response_from_buffer(page.bytes, (void *)page.text, MHD_RESPMEM_MUST_COPY);
	if (!response)
		return MHD_NO;
	if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, page.type) &&
	    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") &&
	    (page.status != MHD_HTTP_METHOD_NOT_ALLOWED ||
	     MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD")))
		result = MHD_queue_response(connection, page.status, response);
	MHD_destroy_response(response);
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
	struct http_server *new = NULL;

	*server = new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	*new = (struct http_server){ .pages = pages, .context = context };
	for (size_t i = 0; i < CONNECTIONS + 1; i++)
		new->connection[i].fd = -1;
	new->daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, answer_request, new, MHD_OPTION_LISTEN_SOCKET,
				       listener, MHD_OPTION_CONNECTION_LIMIT, (unsigned int)CONNECTIONS + 1,
				       MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES,
				       MHD_OPTION_NOTIFY_CONNECTION, track_connection, new,
				       MHD_OPTION_UNESCAPE_CALLBACK, leave_escapes, NULL, MHD_OPTION_STRICT_FOR_CLIENT,
				       1, MHD_OPTION_END);
	return new->daemon ? 0 : -ENOMEM;
}

int http_server_run(struct http_server *server, int often_ms, void (*often)(void *context))
{
	struct pollfd file = { .events = POLLIN };
	MHD_UNSIGNED_LONG_LONG of_library;
	struct connection *oldest;
	unsigned int count;
	__s64 left_ms;

	file.fd = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	do {
		often(server->context);
		/* Shuts the connections that have lasted too long. */
		while ((oldest = find_oldest(server, &count)) &&
		       oldest->since_ms + CONNECTION_MS <= clock_ms(CLOCK_MONOTONIC))
			shut(oldest);
		left_ms = oldest ? oldest->since_ms + CONNECTION_MS - clock_ms(CLOCK_MONOTONIC) : often_ms;
		if (MHD_get_timeout(server->daemon, &of_library) == MHD_YES && (__s64)of_library < left_ms)
			left_ms = of_library;
		if (server->has_room || left_ms < 0)
			left_ms = 0;
		if (poll(&file, 1, left_ms < often_ms ? left_ms : often_ms) < 0 && errno != EINTR)
			return -errno;
		server->has_room = false;
	} while (MHD_run(server->daemon) == MHD_YES);
	return -EIO;
}
