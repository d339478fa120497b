/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls that may wait for another process, so that the tool can say for whom: who waits without a word looks hung.
 * Lower layers do not print, and a library starts no thread: here is only where the two meet, io/waiting_thread.c tells.
 */
#ifndef XDP_CUCKOO_WAITING_H
#define XDP_CUCKOO_WAITING_H

#include "base/error_reason.h"

/* Says from the file `fd` for whom: "waiting for ...". */
typedef void (*waiting_describe)(int fd, struct reason *text);

struct waiting_watcher {
	void (*begin)(waiting_describe describe, int fd);
	void (*end)(void);
};

/* Who watches over such calls; NULL, as at first: nobody. */
void waiting_watch(const struct waiting_watcher *watcher);

/* Around such a call, of which a process makes one at a time. */
void waiting_begin(waiting_describe describe, int fd);
void waiting_end(void);

/* What this process is doing, for those that will wait for it; the text must stay. At first: the program's name. */
void waiting_be_called(const char *what);
const char *waiting_name(void);

#endif
