/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A file that is there whole or not at all: it is written beside its place, which it takes when it has got to
 * the disk. Links stay: the file behind them is replaced, by one of the same owner and mode. What is no regular
 * file, like a pipe, and what a link of /proc stands for, like /dev/stdout, is written as it is.
 */
#ifndef XDP_CUCKOO_WHOLE_FILE_H
#define XDP_CUCKOO_WHOLE_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

struct whole_file {
	FILE *to;
	char path[PATH_MAX];   /* behind all links */
	char beside[PATH_MAX]; /* "": it is written in its place */
};

/* Whether the path names standard output: "-", or a link like /dev/stdout. */
bool whole_file_is_output(const char *path);

/* 0; -errno. */
int whole_file_open(struct whole_file *file, const char *path);

/*
 * `error` is that of writing, if there was one: then what stood at the path stays. 0; `error`, or else -errno of
 * what went wrong here.
 */
int whole_file_close(struct whole_file *file, int error);

#endif
