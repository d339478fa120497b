/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads the lines of a text file, or all of it. */
#ifndef XDP_CUCKOO_LINE_FILE_H
#define XDP_CUCKOO_LINE_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include <linux/types.h>

#define READER_LINE_BYTES 65536 /* of the longest line, as in line_pipe.h */

struct reader {
	FILE *file;
	const char *name; /* for messages: the path, or "standard input" */
	char *line;       /* the current line */
	bool is_kept;     /* set it, and the next read returns the current line again */
	bool is_cut;      /* the current line is the start of a line that is too long */
	__u64 number;     /* its line number, from 1 */
	__u64 bytes_read;
	__u64 bytes_total; /* 0: not known */
	struct timespec modified;
};

/* `path` "-" is standard input. 0; -errno, then it is closed. */
int reader_open(struct reader *reader, const char *path);
void reader_close(struct reader *reader);

/* Copies what comes next, and does not read it: glibc takes back any number of characters. */
void reader_peek(struct reader *reader, char *text, size_t room);

/* Whether an open file begins with `text`, of at most 31 characters. */
bool reader_begins(struct reader *reader, const char *text);

/* Whether a file was written to since it was opened, so that only a part of it may have been read. */
bool reader_is_changed(const struct reader *reader);

/*
 * Reads the next line into reader->line, without its end and without a byte order mark. 1; 0 at the end;
 * -EIO, -EINTR, -ENOMEM; -EILSEQ: the line has a NUL byte; -EMSGSIZE: the line is too long. Then reader->line
 * has its start, and no other line follows.
 */
int reader_line(struct reader *reader);

/*
 * The next line that is not empty without its comment (from # or ; outside quotes) and white space at both
 * ends.
 */
int reader_next(struct reader *reader);

/*
 * Everything after the current line, of any length; with the current line if it is kept. Ends with a 0 byte.
 * The caller frees it. -ENOMEM; -EIO, -EINTR; -EILSEQ: it has a NUL byte.
 */
int reader_rest(struct reader *reader, char **text, size_t *length);

#endif
