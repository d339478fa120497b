// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/grace_period.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/membarrier.h>

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
