/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reports which process this one waits for, if that takes longer than a second. */
#ifndef XDP_CUCKOO_WAITING_THREAD_H
#define XDP_CUCKOO_WAITING_THREAD_H

/*
 * From now on, `tell` is called once for each wait of base/waiting.h that lasts longer than a second. A
 * thread of its own calls it, while the waiting thread does nothing else. If that thread cannot be started,
 * nothing is reported.
 */
void waiting_thread_tell(void (*tell)(const char *text));

#endif
