// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "feed/feeds.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

int feed_receive(int fd, __s64 deadline_ms, struct feed_message *message, int *text)
{
	char piece[PIECE_BYTES];
	int error = io_receive_all(fd, message, sizeof(*message), deadline_ms);

	*text = -1;
	if (error)
		return error;
	if (!feed_message_is_sound(message))
		return -EPROTO;
	if (message->outcome != FEED_FETCHED)
		return 0;
	*text = memfd_create("list", MFD_CLOEXEC);
	if (*text < 0)
		return -errno;
	for (__u64 left = message->bytes; left && !error;) {
		const size_t count = left < sizeof(piece) ? left : sizeof(piece);

		error = io_receive_all(fd, piece, count, deadline_ms);
		if (!error)
			error = io_write_all(*text, piece, count);
		left -= count;
	}
	if (error) {
		close(*text);
		*text = -1;
	}
	return error;
}
