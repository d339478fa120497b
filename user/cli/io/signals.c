// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "io/signals.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/waiting.h"

#define READER_MS 1000
#define SILENT_S 1

/* ---- signals that end a wait ---- */

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

/* ---- a signal that tells of a wait ---- */

static void (*teller)(const char *text);

/* The wait under way. */
static struct {
	waiting_describe describe; /* NULL: there is none */
	int fd;
	timer_t timer;
	bool has_timer, is_told;
} waiting;

static void report(int signal)
{
	const int before = errno;
	struct reason text;
	sigset_t held;

	(void)signal;
	/* Those that signals_take() blocks. */
	if (!sigpending(&held) && (sigismember(&held, SIGINT) || sigismember(&held, SIGTERM)))
		waiting_is_over = 1;
	else if (waiting.describe && !waiting.is_told) {
		waiting.describe(waiting.fd, &text);
		teller(text.text);
		waiting.is_told = true;
	}
	errno = before;
}

/* Not SIGALRM, since the caller of this program may have set an alarm for it. A child of fork() has no timers. */
static void begin(waiting_describe describe, int fd)
{
	/* Again and again, and without SA_RESTART: a signal may come just before the wait. */
	const struct sigaction action = { .sa_handler = report };
	const struct itimerspec silent = { { SILENT_S, 0 }, { SILENT_S, 0 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };

	waiting.describe = describe;
	waiting.fd = fd;
	waiting.is_told = false;
	waiting.has_timer = !sigaction(SIGRTMIN, &action, NULL) &&
			    !timer_create(CLOCK_MONOTONIC, &event, &waiting.timer);
	if (waiting.has_timer)
		timer_settime(waiting.timer, 0, &silent, NULL);
}

static void end(void)
{
	if (waiting.has_timer)
		timer_delete(waiting.timer);
	waiting.has_timer = false;
	waiting.describe = NULL;
}

void waiting_timer_tell(void (*tell)(const char *text))
{
	static const struct waiting_watcher watcher = { begin, end };

	teller = tell;
	waiting_watch(&watcher);
}
