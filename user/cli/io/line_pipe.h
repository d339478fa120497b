/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads lines from a file or pipe as they arrive. The caller knows whether a line is at hand. SIGINT and SIGTERM
 * end a wait, never the work between two waits.
 */
#ifndef XDP_CUCKOO_LINE_PIPE_H
#define XDP_CUCKOO_LINE_PIPE_H

#include <stdbool.h>
#include <stddef.h>

#include <linux/types.h>

#include "io/signals.h"

#define LINE_PIPE_BYTES 65536 /* of the longest line */

struct line_pipe {
	int fd;
	struct signals signals;
	const char *name; /* for messages: the path, or "standard input" */
	char *bytes;
	size_t room, used;
	size_t next;   /* offset of the next line */
	__u64 number;  /* of the last line taken, from 1 */
	bool is_ended; /* nothing follows `bytes` */
	bool is_cut;   /* the line at `next` is too long, and its start is dropped */
};

/* `path` "-" is standard input. 0; -errno: then it is closed. line_pipe_close() accepts a zeroed structure. */
int line_pipe_open(struct line_pipe *pipe, const char *path);
void line_pipe_close(struct line_pipe *pipe);

/* 1: there is input, or its end; 0: nothing came within `timeout_ms` (-1: no limit); -EINTR: a signal. */
int line_pipe_wait(struct line_pipe *pipe, int timeout_ms);

/* Reads once. Waits, unless line_pipe_wait() has returned 1. 0; -errno. */
int line_pipe_read(struct line_pipe *pipe);

/*
 * Takes the next whole line. 1: the line, ended by a 0 byte, is at `bytes` + *offset until line_pipe_forget(). 0:
 * no whole line is at hand. -EMSGSIZE, -EILSEQ: a line was taken, but it is too long, or has a NUL byte. The
 * last line may lack its line end. A byte order mark before the first line is skipped.
 */
int line_pipe_next(struct line_pipe *pipe, size_t *offset);

/* Whether a line, or a part of one, is at hand. */
bool line_pipe_has_rest(const struct line_pipe *pipe);

/* Drops the lines that were taken. */
void line_pipe_forget(struct line_pipe *pipe);

#endif
