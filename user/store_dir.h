/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The directory of a store, the lock that keeps its writers apart, and the words for a store that
 * does not open. Knows no LMDB.
 */
#ifndef XDP_CUCKOO_STORE_DIR_H
#define XDP_CUCKOO_STORE_DIR_H

#include "reason.h"

/* Makes DIR (0700) and what is missing above it (0755). 0, also where it is there; -errno. */
int store_dir_make(const char *dir);

/*
 * Waits for the exclusive lock of DIR, which *fd holds until it is closed; the kernel closes it
 * when the process dies. 0; -errno, and *fd is -1.
 */
int store_dir_lock(const char *dir, int *fd);

/* Says why the store in DIR did not open and what to do. Returns `error`. */
int store_dir_explain(int error, const char *dir, struct reason *reason);

#endif
