// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "feed/feeds.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/safe_text.h"
#include "io/whole_file.h"

#define PIECE_BYTES 65536

int feed_send(int fd, const struct feed_message *message, const char *text)
{
	int error = io_send_all(fd, message, sizeof(*message));

	return error ? error : io_send_all(fd, text, message->bytes);
}

bool feed_message_is_sound(struct feed_message *message)
{
	if (message->retry_after_s > FEED_WAIT_MAX_S)
		message->retry_after_s = FEED_WAIT_MAX_S;
	return message->outcome < FEED_OUTCOMES && message->retry_after_s >= 0 && message->bytes <= FEED_TEXT_MAX &&
	       (message->outcome == FEED_FETCHED || !message->bytes) &&
	       text_is_safe(message->etag, sizeof(message->etag)) &&
	       text_is_safe(message->modified, sizeof(message->modified)) &&
	       text_is_safe(message->servers, sizeof(message->servers)) &&
	       text_is_safe(message->why, sizeof(message->why)) &&
	       text_is_safe(message->first_bad, sizeof(message->first_bad)) &&
	       (message->outcome == FEED_FAILED) == (*message->why != '\0');
}

/* Receives at most `count` bytes. Returns their number; -errno. */
static ssize_t receive_some(int fd, __s64 deadline_ms, void *bytes, size_t count)
{
	struct pollfd file = { .fd = fd, .events = POLLIN };
	ssize_t got;
	int ready;

	do {
		const __s64 left_ms = deadline_ms - clock_ms(CLOCK_MONOTONIC);

		ready = poll(&file, 1, left_ms > 0 ? left_ms : 0);
	} while (ready < 0 && errno == EINTR);
	if (ready <= 0)
		return ready ? -errno : -ETIMEDOUT;
	got = recv(fd, bytes, count, 0);
	return got > 0 ? got : got ? -errno : -ECONNRESET;
}

int feed_receive(int fd, __s64 deadline_ms, struct feed_message *message, int *text)
{
	char piece[PIECE_BYTES];
	size_t used = 0;
	int error = 0;

	*text = -1;
	while (used < sizeof(*message)) {
		const ssize_t got = receive_some(fd, deadline_ms, (char *)message + used, sizeof(*message) - used);

		if (got < 0)
			return got;
		used += got;
	}
	if (!feed_message_is_sound(message))
		return -EPROTO;
	if (message->outcome != FEED_FETCHED)
		return 0;
	*text = memfd_create("list", MFD_CLOEXEC);
	if (*text < 0)
		return -errno;
	for (__u64 left = message->bytes; left && !error;) {
		const ssize_t got = receive_some(fd, deadline_ms, piece, left < sizeof(piece) ? left : sizeof(piece));

		if (got < 0)
			error = got;
		else if (write(*text, piece, got) != got)
			error = -EIO;
		else
			left -= got;
	}
	if (error) {
		close(*text);
		*text = -1;
	}
	return error;
}
