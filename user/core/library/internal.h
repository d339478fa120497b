/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the library share. No other folder includes this. */
#ifndef XDP_CUCKOO_LIBRARY_INTERNAL_H
#define XDP_CUCKOO_LIBRARY_INTERNAL_H

/* Only these functions are visible in the library. */
#pragma GCC visibility push(default)
#include "library/xdp-cuckoo.h"
#pragma GCC visibility pop

#include <pthread.h>

#include "change/change.h"
#include "host/host.h"

struct xdp_cuckoo_filter {
	char name[ABI_NAME_BYTES];
	char *state; /* absolute, or NULL */
	unsigned int flags;
	bool is_open, is_visiting;
	__u64 rate; /* of rules with XDP_CUCKOO_RATE, whose struct has no room for it; 0: none */
	struct reason reason;
	struct reason warning; /* the reason after a call that succeeds; or "" */
	/* The current change. Only the thread `changer` may use it. */
	bool is_changing;
	pthread_t changer;
	int refused; /* -errno that has ended it early; 0: none */
	struct session session;
	struct guard guard;
	/* The samples; listener.fd 0: this handle does not sample. */
	struct listener listener;
	int renew_fd; /* a timer, which makes listener.fd readable when the lease needs renewal */
};

/*
 * Every public function that uses a filter calls public_enter() first and public_leave() last.
 * public_enter(): 0; -errno: the filter cannot be used now. public_leave() returns `error`. If that
 * is 0, the reason becomes the warning, if there is one.
 */
int public_enter(struct xdp_cuckoo_filter *filter);
int public_leave(struct xdp_cuckoo_filter *filter, int error);

/* The same for functions that change something and are refused within a change. */
int public_enter_alone(struct xdp_cuckoo_filter *filter);

/* -EINVAL: descriptor 0, 1 or 2 is closed. Call it before files are opened. */
int public_check_files(struct reason *reason);

/* Opens filter->session, with the guard unless XDP_CUCKOO_FORCE is set. Closing accepts a closed session. */
int public_open_session(struct xdp_cuckoo_filter *filter);
void public_close_session(struct xdp_cuckoo_filter *filter);

/*
 * A step is a change of its own, unless a change is under way. public_begin_step() takes the place of
 * public_enter(), and if it returns 0, public_end_step() that of public_leave(). `from` NULL: the step needs no
 * rule.
 */
int public_begin_step(struct xdp_cuckoo_filter *filter, const struct xdp_cuckoo_rule *from, struct rule *rule,
		      bool *is_own);
int public_end_step(struct xdp_cuckoo_filter *filter, bool is_own, int error);

/* Gets the store of the current change, or opens the store to read; then public_close_store() closes it. */
int public_open_store(struct xdp_cuckoo_filter *filter, struct store **store);
void public_close_store(const struct xdp_cuckoo_filter *filter, struct store *store);

/*
 * Finds the number of a list, or STORE_BY_HAND. 0; -ENOENT: there is no such list; -EINVAL: the name is not
 * valid; other -errno. public_open_list() is change_open_list() for a name of the caller.
 */
int public_find_list(struct xdp_cuckoo_filter *filter, struct store *store, const char *name, unsigned int *number);
int public_open_list(struct xdp_cuckoo_filter *filter, const char *name, const char *source);

/*
 * Converts a rule of the caller, who may have made mistakes; and back. 0; -EINVAL with the reason. The rate is in
 * filter->rate; `filter` may be NULL. public_check_rate(): -EINVAL: it is missing, and the rule is to be added.
 */
int public_read_rule(const struct xdp_cuckoo_filter *filter, const struct xdp_cuckoo_rule *from, struct rule *rule,
		     struct reason *reason);
void public_write_rule(struct xdp_cuckoo_filter *filter, const struct rule *from, struct xdp_cuckoo_rule *rule);
int public_check_rate(const struct rule *rule, struct reason *reason);

#endif
