/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes a file completely or not at all. The text goes to a temporary file in the same directory, which replaces the old
 * file once it is on disk. Owner and mode stay. A symbolic link stays too, and the file it leads to is
 * replaced. Pipes and other files that are not regular, and links of /proc like /dev/stdout, are written
 * directly. Also writes all bytes of a buffer, and reads a small file at once.
 */
#ifndef XDP_CUCKOO_WHOLE_FILE_H
#define XDP_CUCKOO_WHOLE_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include <linux/types.h>

#include "base/error_reason.h"

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

/* All bytes, despite short counts and signals. 0; -errno: how many were written is not known. */
int io_write_all(int fd, const void *bytes, size_t count);

/*
 * Reads a regular file from its start. The text ends with a 0 byte, and the caller frees it. 0; -EINVAL: not a regular
 * file; -EFBIG: it has more than `most` bytes; -EIO: it was cut short meanwhile; -ENOMEM, -errno. Then *text is NULL.
 */
int io_read_whole(int fd, size_t most, char **text, size_t *length);

/*
 * Reads a file of certificates, a password or the like, which `what` = PATH of the configuration names; at most 4 MiB. Its
 * mode may have no bit of `forbidden`; with S_IRGRP there, it must also belong to root or this user. The caller frees
 * *text, which is NULL after an error. 0; -errno with the reason, which shows nothing of the text.
 */
int io_read_secret(const char *what, const char *path, mode_t forbidden, char **text, struct reason *reason);

#endif
