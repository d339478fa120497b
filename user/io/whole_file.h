/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes a file completely or not at all. The text goes to a temporary file in the same directory, which replaces the old
 * file once it is on disk. Owner and mode stay. A symbolic link stays too, and the file it leads to is
 * replaced. Pipes and other files that are not regular, and links of /proc like /dev/stdout, are written
 * directly.
 */
#ifndef XDP_CUCKOO_WHOLE_FILE_H
#define XDP_CUCKOO_WHOLE_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

struct whole_file {
	FILE *to;
	char path[PATH_MAX];      /* after all links */
	char temporary[PATH_MAX]; /* path of the temporary file; "": the file is written directly */
};

/* Whether the path names standard output: "-", or a link like /dev/stdout. */
bool whole_file_is_output(const char *path);

/* 0; -errno. */
int whole_file_open(struct whole_file *file, const char *path);

/*
 * `error`: 0, or the error of the caller's writing; then the old file stays. 0; `error`; else -errno of this
 * function.
 */
int whole_file_close(struct whole_file *file, int error);

#endif
