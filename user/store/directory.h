/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The directory of a store, the lock that keeps its writers apart, and the words for a store that
 * does not open. Knows no LMDB.
 */
#ifndef XDP_CUCKOO_STORE_DIR_H
#define XDP_CUCKOO_STORE_DIR_H

#include <stdbool.h>

#include "base/error_reason.h"

/*
 * Opens DIR as a path (O_PATH), and *fd is its descriptor; with `makes`, makes it first, and what is missing
 * above it, all 0700. DIR and the directory above it must belong to this user or root, must not be links,
 * and nobody else may be able to write there; the same goes for the files of a store in it, of which there
 * may be no second link. 0; -EPERM, -ELOOP, -EMLINK where that is not so; other -errno.
 */
int store_dir_open(const char *dir, bool makes, int *fd);

/*
 * Opens a file of a store to be read and written; where there is none it is made, 0600 whatever the umask. 0;
 * -errno, and *fd is -1.
 */
int store_dir_open_file(int dir_fd, const char *name, int *fd);

/*
 * Waits for the exclusive lock of a directory, which *fd holds until it is closed; the kernel closes it
 * when the process dies; base/waiting.h tells who has it. 0; -EBUSY: `waits` is false, and somebody else has it; other -errno. On failure *fd is -1.
 */
int store_dir_lock(int dir_fd, bool waits, int *fd);

/* Says why the store in DIR did not open and what to do. Returns `error`. */
int store_dir_explain(int error, const char *dir, struct reason *reason);

#endif
