/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reports which process this one waits for, if that takes longer than a second. */
#ifndef XDP_CUCKOO_WAITING_TIMER_H
#define XDP_CUCKOO_WAITING_TIMER_H

/*
 * From now on, `tell` is called once for each wait of base/waiting.h that lasts longer than a second. The handler of a signal
 * calls it, so `tell` must not allocate memory. A thread would do as well, but to start one costs more than most waits.
 */
void waiting_timer_tell(void (*tell)(const char *text));

#endif
