/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A filter that no packet reaches: a copy of a running one, or the one that a load would make. */
#ifndef XDP_CUCKOO_COPY_FILTER_H
#define XDP_CUCKOO_COPY_FILTER_H

#include "change/change.h"

/* The table that session_open_copy() makes; see session_load(). */
struct copy_wanted {
	bool is_another; /* use the two members below, instead of those of the running filter */
	struct abi_options options;
	__u64 capacity;
};

struct copy_original {
	bool is_running, is_copied;
	bool is_filtering;           /* neither monitor-only, panic nor unconfirmed */
	char interface[IF_NAMESIZE]; /* the first one of the running filter */
};

/*
 * Opens one filter that receives no packets: a copy of the first running filter of the name, or else the
 * filter that a load would make from the store. The copy filters even if the original does not. The running
 * filter is only read. This process is the only writer until session_unlock(). 0; -ENOENT: neither a filter nor
 * a store of the name exists; -ENOMEM; other -errno.
 */
int session_open_copy(struct session *session, const char *state, const char *name, const struct copy_wanted *wanted,
		      struct copy_original *original, struct reason *reason);

#endif
