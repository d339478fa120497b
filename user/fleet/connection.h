/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One connection to one broker: commands out, replies in, in order. No call waits beyond its deadline. Knows no
 * keys and no fleet.
 */
#ifndef XDP_CUCKOO_CONNECTION_H
#define XDP_CUCKOO_CONNECTION_H

#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <sys/types.h>

#include "base/memory.h"
#include "fleet/fleet.h"

/*
 * ---- redis_codec.c: the protocol of Redis in bytes ----
 *
 * hiredis reads replies. Knows no sockets.
 */

/* A reply with more elements, in all its arrays together, is too large. */
#define CODEC_ELEMENTS_MAX (1 << 16)

struct codec {
	struct redisReader *reader;
	size_t elements; /* of the reply that is being read */
};

/* 0; -ENOMEM. codec_close() accepts a zeroed struct. */
int codec_open(struct codec *codec, struct reason *reason);
void codec_close(struct codec *codec);

/* Takes bytes from the broker. 0; -EPROTO; -ENOMEM. */
int codec_feed(struct codec *codec, const char *bytes, size_t count);

/*
 * The next whole reply, or NULL in *reply if there is none yet. 0; -EPROTO; -EMSGSIZE: it is too large. codec_free()
 * accepts NULL in *reply, and leaves it there.
 */
int codec_next(struct codec *codec, redisReply **reply);
void codec_free(redisReply **reply);
#define CODEC_FREED CLOSED_BY(codec_free) /* where the block ends */

/* The text of a reply, or of an element of an array. NULL: there is none. */
const char *codec_text(const redisReply *reply);
const char *codec_text_of(const redisReply *array, size_t i);

/* The number of a reply, also of NULL; 0: it is none. */
__s64 codec_number(const redisReply *reply);

/* The value of a line `name` of the answer to INFO; "": it has none. `name` has its colon. Returns `value`. */
#define CODEC_INFO_BYTES 128
const char *codec_info(const char *info, const char *name, char value[CODEC_INFO_BYTES]);

/* ---- tls.c: TLS over a connected socket that does not block, by OpenSSL 3 ---- */

struct tls;

/*
 * Prepares a connection to the host `name` (a name or an address), whose certificate must come from one of
 * `certificates`, a text in PEM. 0; -EINVAL: there is none in it; -ENOMEM. tls_close() accepts NULL.
 */
int tls_open(int fd, const char *name, const char *certificates, struct tls **tls, struct reason *reason);
void tls_close(struct tls *tls);

/*
 * These return a number of bytes, 0 at the end of the stream, or -errno. After -EAGAIN poll the socket for *events and
 * call again. tls_shake_hands() returns 0 when it is done; -EKEYREJECTED: the certificate is refused.
 */
int tls_shake_hands(struct tls *tls, short *events, struct reason *reason);
ssize_t tls_read(struct tls *tls, void *bytes, size_t count, short *events);
ssize_t tls_write(struct tls *tls, const void *bytes, size_t count, short *events);

/* ---- connections ---- */

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
	bool is_short; /* there was no memory for a command */
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

/*
 * Queue a command. The format is like that of printf(): the spaces in it, not those in its values, are between words. If
 * memory is short, the next connection_get() says so.
 */
void connection_put_words(struct connection *connection, int count, const char *const *words,
			  const size_t *lengths);
void connection_put(struct connection *connection, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Sends what is queued, and takes the next reply, which the caller frees. After an error the connection is of no
 * more use. -ETIMEDOUT: no byte has moved for timeout_ms, or it took ten times as long; -ECONNRESET; -EPROTO: the
 * bytes are no Redis; -EMSGSIZE: the reply is too large; other -errno. Then *reply is NULL.
 */
int connection_get(struct connection *connection, redisReply **reply, int timeout_ms, struct reason *reason);

/* connection_get() in CONNECTION_TIMEOUT_MS, but a reply that is an error is -EREMOTEIO. The reason has its text. */
int connection_expect(struct connection *connection, redisReply **reply, struct reason *reason);

/* One command and its reply, which is freed if `reply` is NULL. */
int connection_ask(struct connection *connection, redisReply **reply, struct reason *reason, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
