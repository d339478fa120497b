/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lines of a file or pipe as they come: tells what is at hand from what is still to be waited for,
 * and SIGINT and SIGTERM end the wait, never the work between two. Knows bytes, not what they say.
 */
#ifndef XDP_CUCKOO_FEED_H
#define XDP_CUCKOO_FEED_H

#include <stdbool.h>
#include <stddef.h>

#include <linux/types.h>

#include "io/signals.h"

#define FEED_LINE_BYTES 65536 /* of the longest line that is kept */

struct feed {
	int fd;
	struct signals signals;
	const char *name; /* for messages: the path, or "standard input" */
	char *bytes;
	size_t room, used;
	size_t next;   /* where the next line starts */
	__u64 number;  /* of the last line taken, from 1 */
	bool is_ended; /* nothing comes behind `bytes` */
	bool is_cut;   /* the line at `next` is too long, and its start is gone */
};

/* `path` "-" is standard input. 0; -errno, then it is closed. feed_close() accepts a zeroed one. */
int feed_open(struct feed *feed, const char *path);
void feed_close(struct feed *feed);

/* 1: there is something to read, or the end; 0: not within `timeout_ms` (-1: any time); -EINTR: a signal. */
int feed_wait(struct feed *feed, int timeout_ms);

/* Reads once; waits where feed_wait() has not said that there is something. 0; -errno. */
int feed_read(struct feed *feed);

/*
 * Takes the next whole line: 1, and it stands, ended by a 0, at `bytes` + *offset until feed_forget(); 0:
 * none is at hand; -EMSGSIZE, -EILSEQ: taken, but too long, or with a NUL byte. The last one may lack its
 * line end, and the first comes without a byte order mark.
 */
int feed_next(struct feed *feed, size_t *offset);

/* Whether something is at hand, be it part of a line. */
bool feed_has_rest(const struct feed *feed);

/* Drops the lines taken. */
void feed_forget(struct feed *feed);

#endif
