/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counts of a store, for a process that must survive a bad store. A child process reads it. If the file is
 * cut short, or the disk fails or hangs, only the child dies.
 */
#ifndef XDP_CUCKOO_STORE_GLANCE_H
#define XDP_CUCKOO_STORE_GLANCE_H

#include "store/store.h"

/* A struct store_list without its source. */
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
 * Does store_open() to read, store_info() and store_lists(). 0; -ENOENT: there is no store; other -errno with
 * the reason.
 */
int store_glance(const char *dir, struct store_glance *glance, struct reason *reason);

#endif
