/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SIGINT and SIGTERM as a file to poll together with others: they end a wait, never the work between two waits. And a
 * signal of a timer, which reports a wait that takes longer than a second, and ends it after SIGINT or SIGTERM.
 */
#ifndef XDP_CUCKOO_SIGNALS_H
#define XDP_CUCKOO_SIGNALS_H

#include <signal.h>

struct signals {
	int fd; /* readable after a signal; until signals_give_back(), both signals are blocked */
	sigset_t mask_before;
};

/* 0; -errno. Call signals_give_back() even after an error; it accepts a zeroed structure. */
int signals_take(struct signals *signals);

/*
 * Waits until a pipe takes PIPE_BUF bytes at once, or another file is ready to be written. After a signal it waits for a
 * second at most. 0; -ETIMEDOUT: a signal came, and nobody reads the pipe.
 */
int signals_await_room(const struct signals *signals, int fd);

void signals_give_back(struct signals *signals);

/*
 * From now on, `tell` is called once for each wait of base/waiting.h that lasts longer than a second. The handler of a signal
 * calls it, so `tell` must not allocate memory. A thread would do as well, but to start one costs more than most waits.
 */
void waiting_timer_tell(void (*tell)(const char *text));

#endif
