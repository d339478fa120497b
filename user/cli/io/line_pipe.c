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

int line_pipe_open(struct line_pipe *pipe, const char *path)
{
	bool is_stdin = !strcmp(path, "-");
	int error;

	*pipe = (struct line_pipe){ .name = is_stdin ? "standard input" : path };
	pipe->fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	error = pipe->fd < 0 ? -errno : signals_take(&pipe->signals);
	if (error)
		line_pipe_close(pipe);
	return error;
}

void line_pipe_close(struct line_pipe *pipe)
{
	if (pipe->fd > STDIN_FILENO)
		close(pipe->fd);
	signals_give_back(&pipe->signals);
	free(pipe->bytes);
	*pipe = (struct line_pipe){};
}

int line_pipe_wait(struct line_pipe *pipe, int timeout_ms)
{
	struct pollfd files[] = {
		{ .fd = pipe->signals.fd, .events = POLLIN },
		{ .fd = pipe->fd, .events = POLLIN },
	};

	if (poll(files, 2, timeout_ms) < 0)
		return -errno;
	if (files[0].revents)
		return -EINTR;
	return files[1].revents != 0;
}

int line_pipe_read(struct line_pipe *pipe)
{
	ssize_t got;

	/* One byte more, for the 0 after a last line without a line end. */
	if (pipe->room <= pipe->used + READ_BYTES) {
		const size_t room = 2 * pipe->room + 2 * READ_BYTES;
		char *grown = realloc(pipe->bytes, room);

		if (!grown)
			return -ENOMEM;
		pipe->bytes = grown;
		pipe->room = room;
	}
	got = read(pipe->fd, pipe->bytes + pipe->used, READ_BYTES);
	if (got < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	pipe->used += got;
	pipe->is_ended = !got;
	return 0;
}

int line_pipe_next(struct line_pipe *pipe, size_t *offset)
{
	const size_t rest = pipe->used - pipe->next;
	const bool is_cut = pipe->is_cut;
	char *start, *end;

	if (!pipe->bytes)
		return 0;
	start = pipe->bytes + pipe->next;
	end = memchr(start, '\n', rest);
	if (!end && pipe->is_ended && (rest || is_cut))
		end = start + rest;
	if (!end) {
		if (rest > LINE_PIPE_BYTES) {
			pipe->is_cut = true;
			pipe->used = pipe->next;
		}
		return 0;
	}
	*offset = pipe->next;
	pipe->next = end - pipe->bytes + 1;
	if (pipe->next > pipe->used)
		pipe->next = pipe->used;
	pipe->number++;
	pipe->is_cut = false;
	*end = '\0';
	if (is_cut || end - start > LINE_PIPE_BYTES)
		return -EMSGSIZE;
	if (pipe->number == 1)
		*offset = text_behind_mark(start) - pipe->bytes;
	return strlen(start) == (size_t)(end - start) ? 1 : -EILSEQ;
}

bool line_pipe_has_rest(const struct line_pipe *pipe)
{
	struct pollfd file = { .fd = pipe->fd, .events = POLLIN };

	return pipe->next < pipe->used || (!pipe->is_ended && poll(&file, 1, 0) > 0 && file.revents & POLLIN);
}

void line_pipe_forget(struct line_pipe *pipe)
{
	if (!pipe->next)
		return;
	pipe->used -= pipe->next;
	memmove(pipe->bytes, pipe->bytes + pipe->next, pipe->used);
	pipe->next = 0;
}
