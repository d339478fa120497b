/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process of its own that waits for a confirmation and undoes what has not been confirmed, whatever
 * becomes of the terminal, the session and the process that started it. Where it is gone too, the kernel
 * passes everything from the deadline on, and the next command undoes a change of rules. What it cannot undo it
 * tells the system's log: nobody else is there.
 */
#ifndef XDP_CUCKOO_WATCHDOG_H
#define XDP_CUCKOO_WATCHDOG_H

#include <stddef.h>

#include <linux/types.h>

#include "base/error_reason.h"

#define WATCHDOG_MS_MAX (24 * 3600 * 1000LL) /* longest time to confirm */

/* What is undone: a change of rules, or a load. */
struct watchdog {
	const char *state, *name; /* of the store; `state` may be NULL */
	__s64 deadline_ms;        /* as watchdog_deadline() tells it */
	__u64 pending_id;         /* of the change, as store_pending() tells it; 0: a load */
	const int *ifindex;       /* a load's: the interfaces it has put the program on */
	size_t ifindex_count;
	__u32 confirm_by; /* a load's: as in the filter's config */
};

/* The moment that is so far away, by CLOCK_BOOTTIME; and back. */
__s64 watchdog_deadline(__s64 left_ms);
__s64 watchdog_left(__s64 deadline_ms);

/*
 * From here on neither the end of the terminal nor that of whoever reads its output ends this process: it is about to
 * start a watchdog.
 */
void watchdog_ignore_hangup(void);

/*
 * Starts it. To be called without an open store or filter: it shall hold neither while it waits. -errno
 * with the reason.
 */
int watchdog_start(const struct watchdog *watchdog, struct reason *reason);

#endif
