/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The lines of a text file, or all of it. Knows files, not rules. */
#ifndef XDP_CUCKOO_READER_H
#define XDP_CUCKOO_READER_H

#include <stdbool.h>
#include <stdio.h>

#include <linux/types.h>

#define READER_LINE_BYTES 65536 /* of the longest line; as batch has it */

struct reader {
	FILE *file;
	const char *name; /* for messages: the path, or "standard input" */
	char *line;       /* the current one */
	bool is_kept;     /* the current line is also the next */
	bool is_cut;      /* the current line is the start of one that is too long */
	__u64 number;     /* its line number, from 1 */
	__u64 bytes_read;
	__u64 bytes_total; /* 0 where it is not known */
};

/* `path` "-" is standard input. 0; -errno, then it is closed. */
int reader_open(struct reader *reader, const char *path);
void reader_close(struct reader *reader);

/*
 * The next line in reader->line, without its end and a byte order mark. 1; 0 at the end; -EIO,
 * -EINTR, -ENOMEM; -EILSEQ: the line has a NUL byte; -EMSGSIZE: it is too long, its start is there, and no other
 * line comes. reader_keep(): it comes once more.
 */
int reader_line(struct reader *reader);
void reader_keep(struct reader *reader);

/*
 * The next line that says something: without comments (from # or ; outside quotes) and white space
 * at both ends, not empty.
 */
int reader_next(struct reader *reader);

/*
 * All that comes behind the current line, and that itself where it is kept, however long, ended by a
 * 0, to free(). -ENOMEM; -EIO, -EINTR; -EILSEQ: it has a NUL byte.
 */
int reader_rest(struct reader *reader, char **text, size_t *length);

#endif
