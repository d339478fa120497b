/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls that may wait for another process: they are marked, so that the tool can report for which one. Grace periods. */
#ifndef XDP_CUCKOO_WAITING_H
#define XDP_CUCKOO_WAITING_H

#include "base/error_reason.h"

/* Finds the other process by the file `fd`, and sets the text: "waiting for ...". */
typedef void (*waiting_describe)(int fd, struct reason *text);

/*
 * From now on, `tell` is called once for each marked wait that lasts longer than a second. A thread of its own calls it,
 * while the waiting thread does nothing else. If that thread cannot be started, nothing is reported. The library never
 * calls this.
 */
void waiting_tell(void (*tell)(const char *text));

/* Call these before and after a call that may wait. A process makes only one such call at a time. */
void waiting_begin(waiting_describe describe, int fd);
void waiting_end(void);

/* Sets the name that other processes report while they wait for this one. `what` must stay valid. */
void waiting_be_called(const char *what);
const char *waiting_name(void);

/* Waits until every run of an XDP program that has started is over: 8 to 16 ms. 0 or -errno. */
int grace_wait(void);

#endif
