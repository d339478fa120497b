/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a store tells at a glance, for who must go on whatever the store is like: it is read by a process of its own, which
 * a file that has been cut short, or a disk that fails or hangs, ends in place of the caller.
 */
#ifndef XDP_CUCKOO_STORE_GLANCE_H
#define XDP_CUCKOO_STORE_GLANCE_H

#include "store.h"

/* As store_open() to read and store_info(), which see. 0; -ENOENT where there is no store; other -errno with the reason. */
int store_glance(const char *dir, struct store_info *info, struct reason *reason);

#endif
