/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a store tells at a glance, for who must go on whatever the store is like: it is read by a process of its own, which
 * a file that has been cut short, or a disk that fails or hangs, ends in place of the caller.
 */
#ifndef XDP_CUCKOO_STORE_GLANCE_H
#define XDP_CUCKOO_STORE_GLANCE_H

#include "store/store.h"

/* A list as in struct store_list, without its source. */
struct store_glance_list {
	char name[ABI_NAME_BYTES];
	__u64 rules;
	__s64 imported_s;
};

struct store_glance {
	struct store_info info;
	size_t lists;
	struct store_glance_list list[STORE_LISTS_MAX];
};

/*
 * As store_open() to read, store_info() and store_lists(), which see. 0; -ENOENT where there is no store; other -errno
 * with the reason.
 */
int store_glance(const char *dir, struct store_glance *glance, struct reason *reason);

#endif
