// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "io/waiting_timer.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

#include "base/waiting.h"

#define SILENT_S 1

static void (*teller)(const char *text);

/* The wait under way. */
static struct {
	waiting_describe describe; /* NULL: there is none */
	int fd;
	timer_t timer;
	bool has_timer;
} waiting;

static void report(int signal)
{
	const int before = errno;
	struct reason text;

	(void)signal;
	if (waiting.describe) {
		waiting.describe(waiting.fd, &text);
		teller(text.text);
	}
	errno = before;
}

/* Not SIGALRM, since the caller of this program may have set an alarm for it. A child of fork() has no timers. */
static void begin(waiting_describe describe, int fd)
{
	const struct sigaction action = { .sa_handler = report, .sa_flags = SA_RESTART };
	const struct itimerspec silent = { .it_value.tv_sec = SILENT_S };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };

	waiting.describe = describe;
	waiting.fd = fd;
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
