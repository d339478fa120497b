// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/unprivileged.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "base/privileges.h"

#define NOBODY 65534 /* user and group; the kernel's overflow id has the same number, and is not in /etc/passwd alone */

int unprivileged_close_others(int fd)
{
	const unsigned int first = STDERR_FILENO + 1;

	if ((unsigned int)fd > first && close_range(first, fd - 1, 0))
		return -errno;
	return close_range(fd + 1, ~0U, 0) ? -errno : 0;
}

#define KILL_IF(comparison, value) \
	BPF_JUMP(BPF_JMP | (comparison) | BPF_K, value, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define KILL_AT(call) KILL_IF(BPF_JEQ, __NR_##call)
#define ALLOW_FAMILY(family) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, family, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)

/*
 * What the process never does: to run programs, to touch other processes or the kernel. A list of what it may do would
 * change with each version of the libraries. A kernel without seccomp filters (EINVAL) runs the process all the same.
 */
static int forbid_calls(void)
{
	struct sock_filter calls[] = {
#if defined(__x86_64__) || defined(__aarch64__)
		/* Other ABIs of the same kernel have other numbers. */
		LOAD(offsetof(struct seccomp_data, arch)),
#ifdef __x86_64__
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
#else
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_AARCH64, 1, 0),
#endif
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
#endif
		LOAD(offsetof(struct seccomp_data, nr)),
		KILL_IF(BPF_JGE, 0x40000000), /* x32 */
		KILL_AT(execve),
		KILL_AT(execveat),
		KILL_AT(ptrace),
		KILL_AT(process_vm_readv),
		KILL_AT(process_vm_writev),
		KILL_AT(bpf),
		KILL_AT(perf_event_open),
		KILL_AT(userfaultfd),
		KILL_AT(io_uring_setup),
		KILL_AT(mount),
		KILL_AT(umount2),
		KILL_AT(pivot_root),
		KILL_AT(chroot),
		KILL_AT(unshare),
		KILL_AT(setns),
		KILL_AT(keyctl),
		KILL_AT(add_key),
		KILL_AT(request_key),
		KILL_AT(init_module),
		KILL_AT(finit_module),
		KILL_AT(kexec_load),
		KILL_AT(open_by_handle_at),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		LOAD(offsetof(struct seccomp_data, args[0]) + (__BYTE_ORDER == __BIG_ENDIAN ? sizeof(__u32) : 0)),
		ALLOW_FAMILY(AF_UNIX),
		ALLOW_FAMILY(AF_INET),
		ALLOW_FAMILY(AF_INET6),
		ALLOW_FAMILY(AF_NETLINK),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
	};
	const struct sock_fprog program = { sizeof(calls) / sizeof(calls[0]), calls };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) && errno != EINVAL ? -errno : 0;
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
	return prctl(PR_SET_PDEATHSIG, SIGKILL) || prctl(PR_SET_DUMPABLE, 0) ? -errno : forbid_calls();
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
