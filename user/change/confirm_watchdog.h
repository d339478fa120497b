/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A separate process that waits for `confirm`, and undoes the change or load if it does not come in time. It
 * survives the end of its parent, the session and the terminal. If it dies itself, the filter passes
 * everything from the deadline on, and the next command undoes a change of rules. It reports failures to
 * syslog.
 */
#ifndef XDP_CUCKOO_CONFIRM_WATCHDOG_H
#define XDP_CUCKOO_CONFIRM_WATCHDOG_H

#include <stddef.h>

#include <linux/types.h>

#include "base/error_reason.h"

#define WATCHDOG_MS_MAX (24 * 3600 * 1000LL) /* longest time to confirm */

/* The change of rules, or the load, that it undoes. */
struct watchdog {
	const char *state, *name; /* of the store; `state` may be NULL */
	__s64 deadline_ms;        /* from watchdog_deadline() */
	__u64 pending_id;         /* of the change, from store_pending(); 0: a load */
	int *ifindex;             /* for a load: the interfaces that got the program */
	size_t ifindex_count;
	__u32 confirm_by; /* for a load: as in the filter's config */
};

/* The deadline that is `left_ms` from now, on CLOCK_BOOTTIME; and the time left until a deadline. */
__s64 watchdog_deadline(__s64 left_ms);
__s64 watchdog_left(__s64 deadline_ms);

/* Makes this process survive a closed terminal or pipe. Call it before watchdog_start(). */
void watchdog_ignore_hangup(void);

/*
 * Starts the process. Close store and filters before: it must not hold them while it waits. 0; -errno with
 * the reason.
 */
int watchdog_start(const struct watchdog *watchdog, struct reason *reason);

#endif
