/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stores that this process has open. LMDB allows a process to open each store only once. It detects
 * other users by record locks, which do not work between threads and vanish when any descriptor of the file
 * is closed. So threads wait for each other here, also for reading. Knows directories, not their contents.
 */
#ifndef XDP_CUCKOO_OPEN_ONCE_H
#define XDP_CUCKOO_OPEN_ONCE_H

#include <stdbool.h>

struct open_once;

/*
 * Waits until no other thread has the store in that directory open. 0; -EBUSY: another thread has it, and
 * `waits` is false; -EDEADLK: this thread has it; other -errno. open_once_end() accepts NULL.
 */
int open_once_begin(int dir_fd, bool waits, struct open_once **opened);
void open_once_end(struct open_once *opened);

#endif
