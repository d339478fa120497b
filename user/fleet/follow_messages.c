// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/follow_messages.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/types.h>

static int send_all(int fd, const void *bytes, size_t count)
{
	const char *next = bytes;

	while (count) {
		const ssize_t sent = send(fd, next, count, MSG_NOSIGNAL);

		if (sent < 0 && errno != EINTR)
			return errno == EPIPE ? -ECONNRESET : -errno;
		next += sent > 0 ? sent : 0;
		count -= sent > 0 ? sent : 0;
	}
	return 0;
}

static int receive_all(int fd, void *bytes, size_t count)
{
	char *next = bytes;

	while (count) {
		const ssize_t got = recv(fd, next, count, 0);

		if (!got)
			return -ECONNRESET;
		if (got < 0 && errno != EINTR)
			return -errno;
		next += got > 0 ? got : 0;
		count -= got > 0 ? got : 0;
	}
	return 0;
}

int follow_send(int fd, const struct follow_message *message, const char *text)
{
	int error = message->bytes > FOLLOW_BYTES_MAX ? -EPROTO : send_all(fd, message, sizeof(*message));

	return error ? error : send_all(fd, text, message->bytes);
}

int follow_receive(int fd, struct follow_message *message, char *text)
{
	int error = receive_all(fd, message, sizeof(*message));

	if (!error && message->bytes > FOLLOW_BYTES_MAX)
		error = -EPROTO;
	if (!error)
		error = receive_all(fd, text, message->bytes);
	if (!error)
		text[message->bytes] = '\0';
	return error;
}

const char *follow_state_name(enum follow_state state)
{
	static const char *const names[FOLLOW_STATES] = {
		[FOLLOW_LEVEL] = "level",       [FOLLOW_BEHIND] = "behind",  [FOLLOW_LAGGING] = "lagging",
		[FOLLOW_RESTORED] = "restored", [FOLLOW_WIPED] = "wiped",    [FOLLOW_GAP] = "gap",
		[FOLLOW_DIVERGED] = "diverged", [FOLLOW_OLDER] = "restored", [FOLLOW_NEW] = "new",
		[FOLLOW_BROKEN] = "broken",     [FOLLOW_HELD] = "held",
	};

	return state < FOLLOW_STATES ? names[state] : "unknown";
}
