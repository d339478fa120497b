// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/connection.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define READ_BYTES 65536
#define REPLY_BYTES_MAX (16 << 20)
#define SLOW_FACTOR 10 /* a link that is slow, but not silent, gets up to so many times the timeout */

/* ---- waiting ---- */

/* 0; -ETIMEDOUT; -errno. */
static int wait_for(int fd, short events, __s64 deadline_ms)
{
	struct pollfd file = { .fd = fd, .events = events };
	int ready;

	do {
		const __s64 left_ms = deadline_ms - fleet_now_ms();

		ready = poll(&file, 1, left_ms > 0 ? left_ms : 0);
	} while (ready < 0 && errno == EINTR);
	return ready < 0 ? -errno : ready ? 0 : -ETIMEDOUT;
}

/* ---- opening ---- */

/* A connected socket that does not block; -errno. */
static int connect_to(const struct sockaddr *address, socklen_t length, __s64 deadline_ms)
{
	const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
	socklen_t size = sizeof(int);
	int error = 0;

	if (fd < 0)
		return -errno;
	if (address->sa_family != AF_UNIX) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	}
	if (connect(fd, address, length)) {
		error = -errno;
		if (error == -EINPROGRESS)
			error = wait_for(fd, POLLOUT, deadline_ms);
		if (!error && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size))
			error = errno;
		error = error > 0 ? -error : error;
	}
	if (!error)
		return fd;
	close(fd);
	return error;
}

static int connect_path(const char *path, __s64 deadline_ms, struct reason *reason)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return reason_set(reason, -EINVAL, "broker '%s': the path of a socket has at most %zu bytes", path,
				  sizeof(address.sun_path) - 1);
	strcpy(address.sun_path, path);
	fd = connect_to((const struct sockaddr *)&address, sizeof(address), deadline_ms);
	return fd < 0 ? reason_set(reason, fd, "cannot connect to the broker at '%s': %s", path, strerror(-fd)) : fd;
}

/* Tries each address of the host, and gives each its share of the time. */
static int connect_host(const char *host, const char *port, __s64 deadline_ms, struct reason *reason)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	int fd = -ENOENT, left = 0;
	int failed = getaddrinfo(host, port, &hints, &found);

	if (failed)
		return reason_set(reason, -EHOSTUNREACH, "cannot find the broker '%s': %s", host, gai_strerror(failed));
	for (const struct addrinfo *address = found; address; address = address->ai_next)
		left++;
	for (const struct addrinfo *address = found; address && fd < 0; address = address->ai_next, left--) {
		const __s64 now_ms = fleet_now_ms();

		fd = connect_to(address->ai_addr, address->ai_addrlen, now_ms + (deadline_ms - now_ms) / left);
	}
	freeaddrinfo(found);
	return fd < 0 ? reason_set(reason, fd, "cannot connect to the broker at %s port %s: %s", host, port,
				   strerror(-fd)) :
			fd;
}

int connection_open(struct connection *connection, const char *where, const char *certificates, int timeout_ms,
		    struct reason *reason)
{
	const __s64 deadline_ms = fleet_now_ms() + timeout_ms;
	char host[HOST_WHERE_BYTES] = "localhost", port[8];
	struct reason why;
	short events = 0;
	int error, fd;

	*connection = (struct connection){ .fd = -1 };
	snprintf(connection->where, sizeof(connection->where), "%s", where);
	if (*where != '/' && host_split(where, host, port))
		return reason_set(reason, -EINVAL,
				  "broker '%s': must be HOST, HOST:PORT, [IPv6]:PORT or the path of a socket", where);
	fd = *where == '/' ? connect_path(where, deadline_ms, reason) : connect_host(host, port, deadline_ms, reason);
	if (fd < 0)
		return fd;
	connection->fd = fd;
	error = codec_open(&connection->codec, reason);
	if (!error && certificates)
		error = tls_open(fd, host, certificates, &connection->tls, reason);
	if (!error && certificates) {
		while ((error = tls_shake_hands(connection->tls, &events, &why)) == -EAGAIN) {
			error = wait_for(fd, events, deadline_ms);
			if (error) {
				reason_set(&why, 0, "TLS: %s; does this port speak TLS?", strerror(-error));
				break;
			}
		}
		if (error)
			reason_set(reason, error, "the broker at %s: %s", connection->where, why.text);
	}
	if (error)
		connection_close(connection);
	return error;
}

void connection_close(struct connection *connection)
{
	if (connection->fd < 0)
		return;
	tls_close(connection->tls);
	codec_close(&connection->codec);
	close(connection->fd);
	free(connection->out);
	*connection = (struct connection){ .fd = -1 };
}

bool connection_is_local(const struct connection *connection)
{
	struct sockaddr_storage here = {}, there = {};
	socklen_t here_length = sizeof(here), there_length = sizeof(there);
	char host[2][64];

	if (getsockname(connection->fd, (struct sockaddr *)&here, &here_length) ||
	    getpeername(connection->fd, (struct sockaddr *)&there, &there_length))
		return false;
	return here.ss_family == AF_UNIX || (!getnameinfo((struct sockaddr *)&here, here_length, host[0],
							  sizeof(host[0]), NULL, 0, NI_NUMERICHOST) &&
					     !getnameinfo((struct sockaddr *)&there, there_length, host[1],
							  sizeof(host[1]), NULL, 0, NI_NUMERICHOST) &&
					     !strcmp(host[0], host[1]));
}

/* ---- commands ---- */

/* Takes over the bytes of a command. `length` negative: there was no memory for them. */
static void put_bytes(struct connection *connection, char *bytes, long length)
{
	size_t room = connection->out_room ? connection->out_room : 1024;
	char *grown;

	while (length > 0 && room < connection->out_used + length)
		room *= 2;
	grown = room > connection->out_room ? realloc(connection->out, room) : connection->out;
	if (grown) {
		connection->out = grown;
		connection->out_room = room;
	}
	connection->is_short |= !grown || length < 0;
	if (!connection->is_short) {
		memcpy(grown + connection->out_used, bytes, length);
		connection->out_used += length;
	}
	redisFreeCommand(bytes);
}

void connection_put_words(struct connection *connection, int count, const char *const *words,
			  const size_t *lengths)
{
	char *bytes = NULL;
	const int length = redisFormatCommandArgv(&bytes, count, (const char **)words, lengths);

	put_bytes(connection, bytes, length);
}

static void put_print(struct connection *connection, const char *format, va_list values)
{
	char *bytes = NULL;
	const int length = redisvFormatCommand(&bytes, format, values);

	put_bytes(connection, bytes, length);
}

void connection_put(struct connection *connection, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	put_print(connection, format, values);
	va_end(values);
}

/* ---- bytes ---- */

/* When the connection counts as silent: bytes that move give it more time, up to `last_ms`. */
static __s64 silent_ms(int timeout_ms, __s64 last_ms)
{
	const __s64 next_ms = fleet_now_ms() + timeout_ms;

	return next_ms < last_ms ? next_ms : last_ms;
}

static int flush(struct connection *connection, int timeout_ms, __s64 last_ms)
{
	__s64 deadline_ms = silent_ms(timeout_ms, last_ms);
	size_t sent = 0;
	int error = 0;

	while (sent < connection->out_used && !error) {
		const char *bytes = connection->out + sent;
		const size_t left = connection->out_used - sent;
		short events = POLLOUT;
		ssize_t written;

		if (connection->tls) {
			written = tls_write(connection->tls, bytes, left, &events);
		} else {
			written = send(connection->fd, bytes, left, MSG_NOSIGNAL);
			written = written < 0 ? -errno : written;
		}
		if (written > 0) {
			sent += written;
			deadline_ms = silent_ms(timeout_ms, last_ms);
		} else if (written == -EAGAIN)
			error = wait_for(connection->fd, events, deadline_ms);
		else if (written != -EINTR)
			error = written ? written : -ECONNRESET;
	}
	connection->out_used = 0;
	return error;
}

/* Reads what has come; waits until something has. */
static int read_more(struct connection *connection, __s64 deadline_ms)
{
	char bytes[READ_BYTES];
	ssize_t got;
	int error;

	do {
		short events = POLLIN;

		if (connection->tls) {
			got = tls_read(connection->tls, bytes, sizeof(bytes), &events);
		} else {
			got = read(connection->fd, bytes, sizeof(bytes));
			got = got < 0 ? -errno : got;
		}
		error = got == -EAGAIN ? wait_for(connection->fd, events, deadline_ms) : 0;
	} while (!error && (got == -EAGAIN || got == -EINTR));
	if (error)
		return error;
	if (got <= 0)
		return got ? got : -ECONNRESET;
	connection->unread += got;
	if (connection->unread > REPLY_BYTES_MAX)
		return -EMSGSIZE;
	return codec_feed(&connection->codec, bytes, got);
}

int connection_get(struct connection *connection, redisReply **reply, int timeout_ms, struct reason *reason)
{
	const __s64 last_ms = fleet_now_ms() + SLOW_FACTOR * timeout_ms;
	int error;

	*reply = NULL;
	if (connection->is_short)
		return reason_set(reason, -ENOMEM, "not enough memory");
	error = flush(connection, timeout_ms, last_ms);
	while (!error && !(error = codec_next(&connection->codec, reply)) && !*reply)
		error = read_more(connection, silent_ms(timeout_ms, last_ms));
	connection->unread = 0;
	if (error == -ETIMEDOUT)
		return reason_set(reason, error, "the broker at %s does not answer", connection->where);
	if (error == -EMSGSIZE)
		return reason_set(reason, error, "an answer of the broker at %s has over %d MB or %d elements",
				  connection->where, REPLY_BYTES_MAX >> 20, CODEC_ELEMENTS_MAX);
	if (error == -EPROTO)
		return reason_set(reason, error, "what answers at %s is no Redis%s", connection->where,
				  connection->tls ? "" : "; if it speaks TLS, set ca = FILE");
	return error ? reason_set(reason, error, "the connection to the broker at %s is lost: %s", connection->where,
				  strerror(-error)) :
		       0;
}

int connection_expect(struct connection *connection, redisReply **reply, struct reason *reason)
{
	int error = connection_get(connection, reply, CONNECTION_TIMEOUT_MS, reason);

	if (error || (*reply)->type != REDIS_REPLY_ERROR)
		return error;
	error = reason_set(reason, -EREMOTEIO, "the broker at %s refuses: %s%s", connection->where, (*reply)->str,
			   strcmp((*reply)->str, "ERR Function not found") ?
				   "" :
				   "; load the functions of this version: xdp-cuckoo fleet init");
	codec_free(reply);
	return error;
}

int connection_ask(struct connection *connection, redisReply **reply, struct reason *reason, const char *format, ...)
{
	CODEC_FREED redisReply *unwanted = NULL;
	va_list values;

	va_start(values, format);
	put_print(connection, format, values);
	va_end(values);
	return connection_expect(connection, reply ? reply : &unwanted, reason);
}
