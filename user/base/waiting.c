// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/waiting.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/membarrier.h>

#define SILENT_S 1

static void (*teller)(const char *text); /* NULL: nobody wants to know */
static const char *name;

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

void waiting_tell(void (*tell)(const char *text))
{
	teller = tell;
}

/* The new thread blocks all signals, so that they reach the waiting thread. */
void waiting_begin(waiting_describe describe, int fd)
{
	sigset_t all, before;

	if (!teller)
		return;
	waiting.describe = describe;
	waiting.fd = fd;
	waiting.is_over = false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	waiting.is_started = !pthread_create(&waiting.thread, NULL, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void waiting_end(void)
{
	if (!waiting.is_started)
		return;
	pthread_mutex_lock(&lock);
	waiting.is_over = true;
	pthread_cond_signal(&over);
	pthread_mutex_unlock(&lock);
	pthread_join(waiting.thread, NULL);
	waiting.is_started = false;
}

void waiting_be_called(const char *what)
{
	name = what;
}

const char *waiting_name(void)
{
	return name ? name : program_invocation_short_name;
}

/* ---- grace periods ---- */

/*
 * Runs on each CPU in turn: when a CPU runs this task, its earlier softirq work is over. This is only the fallback,
 * because this task may not be allowed to run on every CPU.
 */
static int visit_every_cpu(void)
{
	cpu_set_t allowed, one;
	int error = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return -errno;
	for (int cpu = 0; cpu < CPU_SETSIZE && !error; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		error = sched_setaffinity(0, sizeof(one), &one) ? -errno : 0;
	}
	sched_setaffinity(0, sizeof(allowed), &allowed);
	return error;
}

/* MEMBARRIER_CMD_GLOBAL is synchronize_rcu(). Kernels with nohz_full CPUs refuse it with EINVAL. */
int grace_wait(void)
{
	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return 0;
	return errno == EINVAL || errno == ENOSYS ? visit_every_cpu() : -errno;
}
