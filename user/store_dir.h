/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The directory of a store and the lock that keeps its writers apart. Knows no LMDB. */
#ifndef XDP_CUCKOO_STORE_DIR_H
#define XDP_CUCKOO_STORE_DIR_H

/* Makes DIR (0700) and what is missing above it (0755). 0, also where it is there; -errno. */
int store_dir_make(const char *dir);

/*
 * Waits for the exclusive lock of DIR, which *fd holds until it is closed; the kernel closes it
 * when the process dies. 0; -errno, and *fd is -1.
 */
int store_dir_lock(const char *dir, int *fd);

#endif
