/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One connection to one broker: commands out, replies in, in order. No call waits beyond its deadline. Knows no
 * keys and no fleet.
 */
#ifndef XDP_CUCKOO_CONNECTION_H
#define XDP_CUCKOO_CONNECTION_H

#include "fleet/redis_codec.h"
#include "fleet/fleet.h"
#include "fleet/tls.h"

#define CONNECTION_TIMEOUT_MS 10000
#define CONNECTION_WHERE_BYTES HOST_WHERE_BYTES

struct connection {
	int fd; /* -1: closed */
	struct tls *tls;
	struct codec codec;
	char where[CONNECTION_WHERE_BYTES]; /* for messages: HOST:PORT or a path */
	char *out;                          /* commands that are not sent yet */
	size_t out_used, out_room;
	size_t unread; /* bytes that are no whole reply yet */
};

/*
 * Connects to `where`: HOST, HOST:PORT, [IPv6]:PORT, or the path of a socket; with TLS if `certificates` (PEM) is
 * not NULL. 0; -EINVAL: `where` is no such thing; other -errno. connection_close() accepts a struct whose fd is -1.
 */
int connection_open(struct connection *connection, const char *where, const char *certificates, int timeout_ms,
		    struct reason *reason);
void connection_close(struct connection *connection);

/* Whether the other end is on this host. */
bool connection_is_local(const struct connection *connection);

/* Queues a command. 0; -ENOMEM. connection_put() takes words up to NULL. */
int connection_put_words(struct connection *connection, int count, const char *const *words, const size_t *lengths);
int connection_put(struct connection *connection, ...) __attribute__((sentinel));

/*
 * Sends what is queued, and takes the next reply, which the caller frees. After an error the connection is of no
 * more use. -ETIMEDOUT: no byte has moved for timeout_ms, or it took ten times as long; -ECONNRESET; -EPROTO: the
 * bytes are no Redis; -EMSGSIZE: the reply is too large; other -errno.
 */
int connection_get(struct connection *connection, redisReply **reply, int timeout_ms, struct reason *reason);

/* connection_get(), but a reply that is an error is -EREMOTEIO. The reason has its text. */
int connection_expect(struct connection *connection, redisReply **reply, int timeout_ms, struct reason *reason);

/* One command and its reply. */
int connection_ask(struct connection *connection, redisReply **reply, struct reason *reason, ...)
	__attribute__((sentinel));

#endif
