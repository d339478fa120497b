// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/unprivileged.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/privileges.h"

#define NOBODY 65534 /* user and group; the kernel's overflow id has the same number, and is not in /etc/passwd alone */

int unprivileged_close_others(int fd)
{
	const unsigned int first = STDERR_FILENO + 1;

	if ((unsigned int)fd > first && close_range(first, fd - 1, 0))
		return -errno;
	return close_range(fd + 1, ~0U, 0) ? -errno : 0;
}

/*
 * A terminal could be made to type into the shell of root: setsid() cuts the process off from it. A change of the user
 * resets what prctl() sets, so prctl() comes after it.
 */
static int give_up(int fd)
{
	int error = unprivileged_close_others(fd);

	if (error)
		return error;
	if (setsid() < 0)
		return -errno;
	if (privileges_has(CAP_SETUID) &&
	    (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
		return -errno;
	error = privileges_keep(0);
	if (!error)
		error = privileges_gain_none();
	if (error)
		return error;
	return prctl(PR_SET_PDEATHSIG, SIGKILL) || prctl(PR_SET_DUMPABLE, 0) ? -errno : 0;
}

__attribute__((noreturn)) static void be_unprivileged(void (*run)(const void *context, int fd), const void *context,
						      int fd, pid_t parent)
{
	const int error = give_up(fd);

	/* A parent that ended before prctl() kills nobody. */
	if (send(fd, &error, sizeof(error), MSG_NOSIGNAL) == sizeof(error) && !error && getppid() == parent)
		run(context, fd);
	_exit(0);
}

int unprivileged_start(struct unprivileged *process, void (*run)(const void *context, int fd), const void *context,
		       struct reason *reason)
{
	const pid_t parent = getpid();
	int fds[2], error = -ECONNRESET;

	*process = (struct unprivileged){ .fd = -1 };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return reason_set(reason, -errno, "cannot make a pair of sockets: %s", strerror(errno));
	process->pid = fork();
	if (!process->pid)
		be_unprivileged(run, context, fds[1], parent);
	close(fds[1]);
	process->fd = fds[0];
	if (process->pid < 0) {
		error = -errno;
		process->pid = 0;
		unprivileged_stop(process);
		return reason_set(reason, error, "cannot start a process: %s", strerror(-error));
	}
	if (recv(process->fd, &error, sizeof(error), MSG_WAITALL) == sizeof(error) && !error)
		return 0;
	unprivileged_stop(process);
	return reason_set(reason, error, "cannot start a process without privileges: %s", strerror(-error));
}

void unprivileged_stop(struct unprivileged *process)
{
	if (process->fd >= 0)
		close(process->fd);
	if (process->pid) {
		kill(process->pid, SIGKILL);
		waitpid(process->pid, NULL, 0);
	}
	*process = (struct unprivileged){ .fd = -1 };
}
