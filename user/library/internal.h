/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the public functions share; nobody else includes it. */
#ifndef XDP_CUCKOO_XDP_CUCKOO_INTERNAL_H
#define XDP_CUCKOO_XDP_CUCKOO_INTERNAL_H

/* All else in the library is hidden. */
#pragma GCC visibility push(default)
#include "library/xdp-cuckoo.h"
#pragma GCC visibility pop

#include <pthread.h>

#include "change/change.h"
#include "host/protected_flows.h"

struct xdp_cuckoo_filter {
	char name[ABI_NAME_BYTES];
	char *state; /* absolute, or NULL */
	unsigned int flags;
	bool is_open, is_visiting;
	struct reason reason;
	/* The change under way; `changer` begins and ends it. */
	bool is_changing;
	pthread_t changer;
	int refused; /* what ended it early */
	struct apply apply;
	struct guard guard;
};

/*
 * Each public function that uses a filter is between these two. public_enter(): 0, or why it cannot be used now.
 * public_leave() returns `error`, of which the reason is kept.
 */
int public_enter(struct xdp_cuckoo_filter *filter);
int public_leave(struct xdp_cuckoo_filter *filter, int error);

/* The same for what is no part of a change, and changes something itself. */
int public_enter_alone(struct xdp_cuckoo_filter *filter);

/* Opens `filter->apply`, with the guard unless that is switched off. public_close() accepts one that is not open. */
int public_open_apply(struct xdp_cuckoo_filter *filter);
void public_close_apply(struct xdp_cuckoo_filter *filter);

/* The store: that of the change under way, or one to read, which public_close_store() closes. -ENOENT; other -errno. */
int public_open_store(struct xdp_cuckoo_filter *filter, struct store **store);
void public_close_store(const struct xdp_cuckoo_filter *filter, struct store *store);

/* Whether what runs has the filter's name; what nobody has set up has every name. */
bool public_is_running(const struct xdp_cuckoo_filter *filter, const struct kernel_filter *running);

/* From a rule that somebody else made, and back. -EINVAL with the reason. */
int public_read_rule(const struct xdp_cuckoo_rule *from, struct rule *rule, struct reason *reason);
void public_write_rule(const struct rule *from, struct xdp_cuckoo_rule *rule);

#endif
