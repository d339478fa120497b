/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls that may wait for another process: they are marked, so that the tool can report for which one. Grace periods. */
#ifndef XDP_CUCKOO_WAITING_H
#define XDP_CUCKOO_WAITING_H

#include <signal.h>

#include "base/error_reason.h"

/*
 * Finds the other process by the file `fd`, and sets the text: "waiting for ...". It may interrupt the waiting call at any
 * place. So if that call allocates memory, as LMDB does, this function must not; flock() does not.
 */
typedef void (*waiting_describe)(int fd, struct reason *text);

/*
 * Reports the waits. In the tool it is io/signals.c. In the library there is none, since a library takes no
 * signals.
 */
struct waiting_watcher {
	void (*begin)(waiting_describe describe, int fd);
	void (*end)(void);
};
void waiting_watch(const struct waiting_watcher *watcher);

/* Call these before and after a call that may wait. A process makes only one such call at a time. */
void waiting_begin(waiting_describe describe, int fd);
void waiting_end(void);

/* Set when a signal shall end the process, perhaps by its handler: then nothing waits for a lock. */
extern volatile sig_atomic_t waiting_is_over;

/*
 * flock(), marked as above, until it has the lock. 0; -EINTR: waiting_is_over, for LOCK_EX; other
 * -errno. LOCK_SH is waited for in the middle of a change, which no signal may leave half done.
 */
int waiting_lock(int fd, int operation, waiting_describe describe);

/* Gives the lock back and closes `fd`. -1: there is none. */
void waiting_unlock(int fd);

/* Sets the name that other processes report while they wait for this one. `what` must stay valid. */
void waiting_be_called(const char *what);
const char *waiting_name(void);

/* Waits until every run of an XDP program that has started is over: 8 to 16 ms. 0 or -errno. */
int grace_wait(void);

#endif
