/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lines of a list file that say something: comments (from # or ; outside quotes), blank lines and
 * white space at both ends are taken off. Knows files, not rules.
 */
#ifndef XDP_CUCKOO_READER_H
#define XDP_CUCKOO_READER_H

#include <stdio.h>

#include <linux/types.h>

struct reader {
	FILE *file;
	const char *name; /* for messages: the path, or "standard input" */
	char *line;       /* the current one */
	size_t room;
	__u64 number;     /* its line number, from 1 */
	__u64 bytes_read;
	__u64 bytes_total; /* 0 where it is not known */
};

/* `path` "-" is standard input. 0; -errno, then it is closed. */
int reader_open(struct reader *reader, const char *path);
void reader_close(struct reader *reader);

/* The next line with content in reader->line. 1; 0 at the end; -EIO; -EILSEQ: the line has a NUL byte. */
int reader_next(struct reader *reader);

#endif
