// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/waiting.h"

#include <errno.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/membarrier.h>

static const struct waiting_watcher *watcher;
static const char *name;

void waiting_watch(const struct waiting_watcher *new)
{
	watcher = new;
}

void waiting_begin(waiting_describe describe, int fd)
{
	if (watcher)
		watcher->begin(describe, fd);
}

void waiting_end(void)
{
	if (watcher)
		watcher->end();
}

int waiting_lock(int fd, int operation, waiting_describe describe)
{
	int error;

	waiting_begin(describe, fd);
	do
		error = flock(fd, operation) ? -errno : 0;
	while (error == -EINTR);
	waiting_end();
	return error;
}

/* Closing is not enough: a child that this process has forked meanwhile holds the same lock. */
void waiting_unlock(int fd)
{
	if (fd < 0)
		return;
	flock(fd, LOCK_UN);
	close(fd);
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
 * MEMBARRIER_CMD_GLOBAL is synchronize_rcu(). Kernels with nohz_full CPUs refuse it with EINVAL. Then this task runs on each
 * CPU in turn: when a CPU runs it, the earlier softirq work of that CPU is over. It may not be allowed to run on every CPU.
 */
int grace_wait(void)
{
	cpu_set_t allowed, one;
	int error = 0;

	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return 0;
	if ((errno != EINVAL && errno != ENOSYS) || sched_getaffinity(0, sizeof(allowed), &allowed))
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
