/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits for readers in the kernel that may have started before. XDP programs run inside an RCU
 * read-side section, in softirq context.
 */
#ifndef XDP_CUCKOO_GRACE_H
#define XDP_CUCKOO_GRACE_H

/* Returns when every program run that was under way has ended: 8-16 ms. 0 or -errno. */
int grace_wait(void);

#endif
