/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which stores this process has open. LMDB takes each once for a process: what tells it of other users are record
 * locks, which do not keep threads apart, and which are gone when any descriptor of the file is closed. So threads
 * wait for each other here, readers too. Knows directories, not what is in them.
 */
#ifndef XDP_CUCKOO_STORE_CLAIM_H
#define XDP_CUCKOO_STORE_CLAIM_H

#include <stdbool.h>

struct store_claim;

/*
 * Waits until no other thread has the store in that directory. 0; -EBUSY: one has it, and `waits` is false; -EDEADLK:
 * this thread has it; other -errno. store_release() accepts NULL.
 */
int store_claim(int dir_fd, bool waits, struct store_claim **claim);
void store_release(struct store_claim *claim);

#endif
