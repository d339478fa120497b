// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "io/signals.h"

#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define READER_MS 1000

/* A signalfd misses no signal; a handler could run just before the wait starts. */
int signals_take(struct signals *signals)
{
	sigset_t set;
	int error;

	*signals = (struct signals){};
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &set, &signals->mask_before))
		return -errno;
	signals->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals->fd > 0)
		return 0;
	error = -errno;
	sigprocmask(SIG_SETMASK, &signals->mask_before, NULL);
	return error;
}

int signals_await_room(const struct signals *signals, int fd)
{
	struct pollfd files[] = { { .fd = fd, .events = POLLOUT }, { .fd = signals->fd, .events = POLLIN } };
	int ready = poll(files, 2, -1);

	if (ready > 0 && !files[0].revents)
		ready = poll(files, 1, READER_MS);
	return ready < 0 ? -errno : ready ? 0 : -ETIMEDOUT;
}

void signals_give_back(struct signals *signals)
{
	struct signalfd_siginfo seen;

	if (signals->fd <= 0)
		return;
	/* A signal that was seen must not end the process when the mask is restored. */
	while (read(signals->fd, &seen, sizeof(seen)) > 0)
		;
	close(signals->fd);
	sigprocmask(SIG_SETMASK, &signals->mask_before, NULL);
	*signals = (struct signals){};
}
