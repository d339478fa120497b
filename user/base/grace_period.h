/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits for a grace period: the time until every XDP program run that has started is over. XDP programs run
 * in an RCU read-side section, in softirq context.
 */
#ifndef XDP_CUCKOO_GRACE_H
#define XDP_CUCKOO_GRACE_H

/* Takes 8-16 ms. 0 or -errno. */
int grace_wait(void);

#endif
