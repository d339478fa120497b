/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counts of a store, for a process that must survive a bad store. A child process reads the store, and only
 * the child dies or hangs if the file is cut short or the disk fails.
 */
#ifndef XDP_CUCKOO_STORE_SUMMARY_H
#define XDP_CUCKOO_STORE_SUMMARY_H

#include "store/store.h"

/* A struct store_list without its source. */
struct store_summary_list {
	char name[ABI_NAME_BYTES];
	__u64 rules;
	__s64 imported_s;
};

struct store_summary {
	struct store_info info;
	size_t lists;
	struct store_summary_list list[STORE_LISTS_MAX];
};

/* 0; -ENOENT: there is no store; other -errno. */
int store_summary_read(const char *dir, struct store_summary *summary, struct reason *reason);

#endif
