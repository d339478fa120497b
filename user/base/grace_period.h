/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef XDP_CUCKOO_GRACE_PERIOD_H
#define XDP_CUCKOO_GRACE_PERIOD_H

/* Waits until every run of an XDP program that has started is over: 8 to 16 ms. 0 or -errno. */
int grace_wait(void);

#endif
