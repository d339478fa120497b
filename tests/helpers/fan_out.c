// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Connects COUNT times to a broker over TLS, waits on each connection for the next entry of a stream, then adds one, and
 * prints after how many ms the last connection had it.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/broker.h"

#define STREAM "fan_out"
#define BLOCK_MS "60000"

static int fail(const char *text)
{
	fprintf(stderr, "fan_out: %s\n", text);
	return 1;
}

/* Sends the command and takes no reply. */
static int begin_to_wait(struct connection *connection, struct reason *reason)
{
	redisReply *reply;
	int error;

	connection_put(connection, "XREAD BLOCK " BLOCK_MS " STREAMS " STREAM " $");
	error = connection_get(connection, &reply, 0, reason);
	return error == -ETIMEDOUT ? 0 : error ? error : -EPROTO;
}

int main(int argc, char **argv)
{
	const size_t count = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	struct fleet_options options = { .brokers = { argc > 1 ? argv[1] : NULL }, .brokers_count = 1 };
	static struct connection *waiting;
	struct reason reason;
	redisReply *reply;
	__s64 start_ms;

	if (!count)
		return fail("usage: fan_out BROKER CA COUNT");
	waiting = calloc(count + 1, sizeof(*waiting));
	if (!waiting)
		return fail("not enough memory");
	options.ca = argv[2];
	if (broker_secrets_keep(&options, &reason))
		return fail(reason.text);
	start_ms = fleet_now_ms();
	for (size_t i = 0; i <= count; i++)
		if (connection_open(&waiting[i], argv[1], broker_certificates(), CONNECTION_TIMEOUT_MS, &reason))
			return fail(reason.text);
	printf("%zu connections in %lld ms\n", count, (long long)(fleet_now_ms() - start_ms));
	for (size_t i = 0; i < count; i++)
		if (begin_to_wait(&waiting[i], &reason))
			return fail(reason.text);
	/* The broker has taken all commands when it has answered a later one. */
	if (connection_ask(&waiting[count], &reply, &reason, "PING"))
		return fail(reason.text);
	codec_free(&reply);
	poll(NULL, 0, 500);
	start_ms = fleet_now_ms();
	if (connection_ask(&waiting[count], &reply, &reason, "XADD " STREAM " * a b"))
		return fail(reason.text);
	codec_free(&reply);
	for (size_t i = 0; i < count; i++) {
		if (connection_get(&waiting[i], &reply, CONNECTION_TIMEOUT_MS, &reason))
			return fail(reason.text);
		if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 1)
			return fail("not the answer to XREAD");
		codec_free(&reply);
	}
	printf("the last answer after %lld ms\n", (long long)(fleet_now_ms() - start_ms));
	return 0;
}
