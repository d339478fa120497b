// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "io/waiting_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

#include "base/waiting.h"

#define SILENT_S 1

static void (*teller)(const char *text);

/* The wait under way. */
static struct {
	waiting_describe describe;
	int fd;
	bool is_started, is_over;
	pthread_t thread;
} waiting;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t over = PTHREAD_COND_INITIALIZER;

static void *watch(void *unused)
{
	struct timespec until;
	struct reason text;
	int error = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += SILENT_S;
	pthread_mutex_lock(&lock);
	while (!waiting.is_over && !error)
		error = pthread_cond_clockwait(&over, &lock, CLOCK_MONOTONIC, &until);
	if (!waiting.is_over) {
		waiting.describe(waiting.fd, &text);
		teller(text.text);
	}
	pthread_mutex_unlock(&lock);
	return unused;
}

/* The new thread blocks all signals, so that they reach the waiting thread. */
static void begin(waiting_describe describe, int fd)
{
	sigset_t all, before;

	waiting.describe = describe;
	waiting.fd = fd;
	waiting.is_over = false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	waiting.is_started = !pthread_create(&waiting.thread, NULL, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void end(void)
{
	if (!waiting.is_started)
		return;
	pthread_mutex_lock(&lock);
	waiting.is_over = true;
	pthread_cond_signal(&over);
	pthread_mutex_unlock(&lock);
	pthread_join(waiting.thread, NULL);
}

void waiting_thread_tell(void (*tell)(const char *text))
{
	static const struct waiting_watcher watcher = { begin, end };

	teller = tell;
	waiting_watch(&watcher);
}
