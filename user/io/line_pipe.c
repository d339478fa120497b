// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "io/line_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/safe_text.h"

#define READ_BYTES 131072 /* twice what a pipe holds */

int feed_open(struct feed *feed, const char *path)
{
	bool is_stdin = !strcmp(path, "-");
	int error;

	*feed = (struct feed){ .name = is_stdin ? "standard input" : path };
	feed->fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	error = feed->fd < 0 ? -errno : signals_take(&feed->signals);
	if (error)
		feed_close(feed);
	return error;
}

void feed_close(struct feed *feed)
{
	if (feed->fd > STDIN_FILENO)
		close(feed->fd);
	signals_give_back(&feed->signals);
	free(feed->bytes);
	*feed = (struct feed){};
}

int feed_wait(struct feed *feed, int timeout_ms)
{
	struct pollfd files[] = {
		{ .fd = feed->signals.fd, .events = POLLIN },
		{ .fd = feed->fd, .events = POLLIN },
	};

	if (poll(files, 2, timeout_ms) < 0)
		return -errno;
	if (files[0].revents)
		return -EINTR;
	return files[1].revents != 0;
}

int feed_read(struct feed *feed)
{
	ssize_t got;

	/* One byte more, for the 0 after a last line without a line end. */
	if (feed->room <= feed->used + READ_BYTES) {
		const size_t room = 2 * feed->room + 2 * READ_BYTES;
		char *grown = realloc(feed->bytes, room);

		if (!grown)
			return -ENOMEM;
		feed->bytes = grown;
		feed->room = room;
	}
	got = read(feed->fd, feed->bytes + feed->used, READ_BYTES);
	if (got < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	feed->used += got;
	feed->is_ended = !got;
	return 0;
}

/* Takes the line from `next` to `end`, and writes its 0 there. */
static int take(struct feed *feed, char *end, size_t *offset)
{
	const bool is_cut = feed->is_cut;
	const size_t start = feed->next;

	*offset = start;
	feed->next = end - feed->bytes + 1;
	if (feed->next > feed->used)
		feed->next = feed->used;
	feed->number++;
	feed->is_cut = false;
	*end = '\0';
	if (is_cut)
		return -EMSGSIZE;
	if (feed->number == 1)
		*offset = text_behind_mark(feed->bytes + start) - feed->bytes;
	return strlen(feed->bytes + start) == (size_t)(end - feed->bytes) - start ? 1 : -EILSEQ;
}

int feed_next(struct feed *feed, size_t *offset)
{
	size_t rest = feed->used - feed->next;
	char *start, *end;

	if (!feed->bytes)
		return 0;
	start = feed->bytes + feed->next;
	end = memchr(start, '\n', rest);
	if (end || (feed->is_ended && (rest || feed->is_cut)))
		return take(feed, end ? end : start + rest, offset);
	if (rest > FEED_LINE_BYTES) {
		feed->is_cut = true;
		feed->used = feed->next;
	}
	return 0;
}

bool feed_has_rest(const struct feed *feed)
{
	struct pollfd file = { .fd = feed->fd, .events = POLLIN };

	return feed->next < feed->used || (!feed->is_ended && poll(&file, 1, 0) > 0 && file.revents & POLLIN);
}

void feed_forget(struct feed *feed)
{
	if (!feed->next)
		return;
	feed->used -= feed->next;
	memmove(feed->bytes, feed->bytes + feed->next, feed->used);
	feed->next = 0;
}
