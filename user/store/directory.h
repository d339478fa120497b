/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The directory of a store; the lock that lets only one process write; the error texts for a store that
 * cannot be opened. Knows no LMDB.
 */
#ifndef XDP_CUCKOO_STORE_DIR_H
#define XDP_CUCKOO_STORE_DIR_H

#include <stdbool.h>

#include "base/error_reason.h"

/*
 * Opens DIR as a path (O_PATH). With `makes`, creates it and its missing parents first, with mode 0700. DIR
 * and its parent must belong to this user or root, must not be symbolic links, and nobody else may write
 * there. The files of a store in DIR must meet the same conditions and have only one hard link. 0; -EPERM,
 * -ELOOP, -EMLINK: a condition is not met; other -errno.
 */
int store_dir_open(const char *dir, bool makes, int *fd);

/*
 * Opens a file of a store for reading and writing. Creates it if necessary, with mode 0600 whatever the
 * umask is. 0; -errno, and *fd is -1.
 */
int store_dir_open_file(int dir_fd, const char *name, int *fd);

/*
 * Takes the exclusive lock of a directory. *fd holds it until it is closed, or the process ends. While it
 * waits, base/waiting.h reports which process has the lock. 0; -EBUSY: `waits` is false and another process
 * has it; other -errno. On failure *fd is -1.
 */
int store_dir_lock(int dir_fd, bool waits, int *fd);

/* Says why the store in DIR cannot be opened, and what to do. Returns `error`. */
int store_dir_explain(int error, const char *dir, struct reason *reason);

#endif
