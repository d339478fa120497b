/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tells for whom this process waits, where that takes a second. */
#ifndef XDP_CUCKOO_WAITING_THREAD_H
#define XDP_CUCKOO_WAITING_THREAD_H

/*
 * From here on `tell` is called for a call of base/waiting.h that has not ended within a second: once, by a thread of its
 * own, while the one that waits does nothing else. Where no thread can be started, nothing is told.
 */
void waiting_thread_tell(void (*tell)(const char *text));

#endif
