/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SIGINT and SIGTERM as something to wait for beside other files: they end a wait, never the work between two.
 */
#ifndef XDP_CUCKOO_SIGNALS_H
#define XDP_CUCKOO_SIGNALS_H

#include <signal.h>

struct signals {
	int fd; /* readable when one has come; they are blocked meanwhile */
	sigset_t mask_before;
};

/* 0; -errno, then signals_give_back() is still to be called; it accepts a zeroed one. */
int signals_take(struct signals *signals);
void signals_give_back(struct signals *signals);

#endif
