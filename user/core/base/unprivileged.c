// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/unprivileged.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>

#include "base/memory.h"
#include "base/clock.h"
#include "base/privileges.h"

#define NOBODY 65534 /* user and group: the kernel's overflow id */

int unprivileged_close_others(int fd)
{
	const unsigned int first = STDERR_FILENO + 1;

	if ((unsigned int)fd > first && close_range(first, fd - 1, 0))
		return -errno;
	return close_range(fd + 1, ~0U, 0) ? -errno : 0;
}

#define STATEMENT(code, value) (struct sock_filter) BPF_STMT(code, value)
#define SKIP(comparison, value, if_true, if_false) \
	(struct sock_filter) BPF_JUMP(BPF_JMP | (comparison) | BPF_K, value, if_true, if_false)
#define SKIP_UNLESS(comparison, value) SKIP(comparison, value, 0, 1)
#define RETURN(what) STATEMENT(BPF_RET | BPF_K, what)
#define LOAD_AT(offset) STATEMENT(BPF_LD | BPF_W | BPF_ABS, offset)
#define LOAD(member) LOAD_AT(offsetof(struct seccomp_data, member))
#define LOW_HALF (__BYTE_ORDER == __BIG_ENDIAN ? sizeof(__u32) : 0)
#define LOAD_ARGUMENT(i) \
	LOAD_AT(offsetof(struct seccomp_data, args) + (i) * sizeof(__u64) + LOW_HALF)
#define FILTER_LENGTH 224

/*
 * All such processes run as one user: none may signal another, also not by way of a file, nor set its
 * limits. A call is denied if its argument has the value, or with `is_only` if it has another:
 * abort() signals itself.
 */
static struct sock_filter *deny_others(struct sock_filter *to)
{
	const struct {
		unsigned int call, argument, value;
		bool is_only;
	} rows[] = { { __NR_tgkill, 0, getpid(), true },  { __NR_prlimit64, 0, 0, true },
		     { __NR_fcntl, 1, F_SETOWN, false },  { __NR_fcntl, 1, F_SETOWN_EX, false },
		     { __NR_ioctl, 1, FIOSETOWN, false }, { __NR_ioctl, 1, SIOCSPGRP, false } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const bool is_only = rows[i].is_only;

		*to++ = SKIP(BPF_JEQ, rows[i].call, 0, 4);
		*to++ = LOAD_ARGUMENT(rows[i].argument);
		*to++ = SKIP(BPF_JEQ, rows[i].value, is_only, !is_only);
		*to++ = RETURN(SECCOMP_RET_ERRNO | EACCES);
		*to++ = LOAD(nr);
	}
	return to;
}

/*
 * What the process never does: to run programs, to touch other processes or the kernel, to change files. A list of what it
 * may do would change with each version of the libraries. A kernel without seccomp filters (EINVAL) runs the process all
 * the same.
 */
static int forbid_calls(void)
{
	static const unsigned int killed[] = {
		__NR_execve,     __NR_execveat,         __NR_ptrace,      __NR_process_vm_readv, __NR_process_vm_writev,
		__NR_bpf,        __NR_perf_event_open,  __NR_userfaultfd, __NR_io_uring_setup,   __NR_mount,
		__NR_umount2,    __NR_pivot_root,       __NR_chroot,      __NR_unshare,          __NR_setns,
		__NR_keyctl,     __NR_add_key,          __NR_request_key, __NR_init_module,      __NR_finit_module,
		__NR_kexec_load, __NR_open_by_handle_at
	};
	/* A library continues when one of these fails. openat2() is here because this filter cannot read its flags. */
	static const unsigned int denied[] = {
		__NR_openat2,   __NR_truncate, __NR_unlinkat, __NR_renameat, __NR_renameat2, __NR_linkat,
		__NR_symlinkat, __NR_mkdirat,  __NR_mknodat,  __NR_fchmodat, __NR_fchownat,
		/* What touches other processes of the same user. */
		__NR_kill, __NR_tkill, __NR_rt_sigqueueinfo, __NR_rt_tgsigqueueinfo,
		__NR_pidfd_send_signal, __NR_setpriority, __NR_ioprio_set, __NR_sched_setaffinity,
		__NR_sched_setscheduler, __NR_sched_setparam, __NR_sched_setattr,
#ifdef __NR_open
		__NR_fork,      __NR_vfork,
		__NR_open,      __NR_creat,    __NR_unlink,   __NR_rename,   __NR_link,      __NR_symlink,
		__NR_mkdir,     __NR_rmdir,    __NR_mknod,    __NR_chmod,    __NR_chown,     __NR_lchown
#endif
	};
	static const int families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };
	struct sock_filter filter[FILTER_LENGTH], *to = filter;
	struct sock_fprog program = { .filter = filter };

	/* Other ABIs of the same kernel have other numbers. */
#if defined(__x86_64__) || defined(__aarch64__)
	*to++ = LOAD(arch);
#ifdef __x86_64__
	*to++ = SKIP(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0);
#else
	*to++ = SKIP(BPF_JEQ, AUDIT_ARCH_AARCH64, 1, 0);
#endif
	*to++ = RETURN(SECCOMP_RET_KILL_PROCESS);
#endif
	*to++ = LOAD(nr);
	*to++ = SKIP_UNLESS(BPF_JGE, 0x40000000); /* x32 */
	*to++ = RETURN(SECCOMP_RET_KILL_PROCESS);
	for (size_t i = 0; i < sizeof(killed) / sizeof(killed[0]); i++) {
		*to++ = SKIP_UNLESS(BPF_JEQ, killed[i]);
		*to++ = RETURN(SECCOMP_RET_KILL_PROCESS);
	}
	for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++) {
		*to++ = SKIP_UNLESS(BPF_JEQ, denied[i]);
		*to++ = RETURN(SECCOMP_RET_ERRNO | EACCES);
	}
	to = deny_others(to);
	*to++ = SKIP(BPF_JEQ, __NR_openat, 0, 4);
	*to++ = LOAD_ARGUMENT(2);
	*to++ = SKIP_UNLESS(BPF_JSET, O_ACCMODE | O_CREAT | O_TRUNC);
	*to++ = RETURN(SECCOMP_RET_ERRNO | EACCES);
	*to++ = RETURN(SECCOMP_RET_ALLOW);
	/* A process would outlive this one. A filter cannot read the flags of clone3(). */
	*to++ = SKIP_UNLESS(BPF_JEQ, __NR_clone3);
	*to++ = RETURN(SECCOMP_RET_ERRNO | ENOSYS);
	*to++ = SKIP(BPF_JEQ, __NR_clone, 0, 4);
	*to++ = LOAD_ARGUMENT(0);
	*to++ = SKIP(BPF_JSET, CLONE_THREAD, 1, 0);
	*to++ = RETURN(SECCOMP_RET_ERRNO | EACCES);
	*to++ = RETURN(SECCOMP_RET_ALLOW);
	*to++ = SKIP(BPF_JEQ, __NR_socket, 1, 0);
	*to++ = RETURN(SECCOMP_RET_ALLOW);
	*to++ = LOAD_ARGUMENT(0);
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		*to++ = SKIP_UNLESS(BPF_JEQ, families[i]);
		*to++ = RETURN(SECCOMP_RET_ALLOW);
	}
	*to++ = RETURN(SECCOMP_RET_ERRNO | EAFNOSUPPORT);
	program.len = to - filter;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) && errno != EINVAL ? -errno : 0;
}

/*
 * The user of the package, if /etc/passwd has it, otherwise nobody. Name services of a network are not asked: the process
 * still has all privileges.
 */
static void find_user(uid_t *user, gid_t *group)
{
	FILE_CLOSED FILE *file = fopen("/etc/passwd", "re");
	const struct passwd *entry;

	*user = NOBODY;
	*group = NOBODY;
	while (file && (entry = fgetpwent(file)))
		if (!strcmp(entry->pw_name, UNPRIVILEGED_USER) && entry->pw_uid && entry->pw_gid) {
			*user = entry->pw_uid;
			*group = entry->pw_gid;
		}
}

/*
 * A terminal could be made to type into the shell of root: setsid() cuts the process off from it. A change of the user
 * resets what prctl() sets, so prctl() comes after it.
 */
static int give_up(int fd, size_t memory)
{
	const struct rlimit no_core = {};
	struct rlimit data = {};
	FILE_CLOSED FILE *file = NULL;
	unsigned long copied = 0;
	uid_t user;
	gid_t group;
	int error = unprivileged_close_others(fd);

	if (error)
		return error;
	if (setsid() < 0)
		return -errno;
	find_user(&user, &group);
	if (privileges_has(CAP_SETUID) &&
	    (setgroups(0, NULL) || setresgid(group, group, group) || setresuid(user, user, user)))
		return -errno;
	/*
	 * No core dump: memory may hold secrets. A process that attackers make grow fails to allocate before this host lacks
	 * memory. Its copy of the parent's memory does not count.
	 */
	file = fopen("/proc/self/statm", "re");
	if (file && fscanf(file, "%*u %*u %*u %*u %*u %lu", &copied) != 1)
		copied = 0;
	data.rlim_cur = data.rlim_max = memory + copied * sysconf(_SC_PAGESIZE);
	if (setrlimit(RLIMIT_CORE, &no_core) || setrlimit(RLIMIT_DATA, &data))
		return -errno;
	error = privileges_keep(0);
	if (!error)
		error = privileges_gain_none();
	if (error)
		return error;
	return prctl(PR_SET_PDEATHSIG, SIGKILL) || prctl(PR_SET_DUMPABLE, 0) ? -errno : forbid_calls();
}

__attribute__((noreturn)) static void be_unprivileged(void (*run)(const void *context, int fd), const void *context,
						      size_t memory, int fd, pid_t parent)
{
	const int error = give_up(fd, memory);

	/* The parent's handlers speak of its own store. */
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	/* A parent that ended before prctl() kills nobody. */
	if (send(fd, &error, sizeof(error), MSG_NOSIGNAL) == sizeof(error) && !error && getppid() == parent)
		run(context, fd);
	_exit(0);
}

int unprivileged_start(struct unprivileged *process, void (*run)(const void *context, int fd), const void *context,
		       size_t memory, struct reason *reason)
{
	const pid_t parent = getpid();
	int fds[2], error = -ECONNRESET;

	*process = (struct unprivileged){ .fd = -1 };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return reason_set(reason, -errno, "cannot make a pair of sockets: %s", strerror(errno));
	process->pid = fork();
	if (!process->pid)
		be_unprivileged(run, context, memory, fds[1], parent);
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

static int move_all(int fd, void *bytes, size_t count, bool is_sent, __s64 deadline_ms)
{
	struct pollfd file = { .fd = fd, .events = is_sent ? POLLOUT : POLLIN };

	for (char *next = bytes; count;) {
		const ssize_t moved = is_sent ? send(fd, next, count, MSG_NOSIGNAL | MSG_DONTWAIT) :
						recv(fd, next, count, MSG_DONTWAIT);
		const bool must_wait = moved < 0 && errno == EAGAIN;
		const __s64 left_ms = must_wait ? deadline_ms - clock_ms(CLOCK_MONOTONIC) : 0;

		if (!moved || (moved < 0 && errno == EPIPE))
			return -ECONNRESET;
		if (must_wait && left_ms <= 0)
			return -ETIMEDOUT;
		if (must_wait)
			poll(&file, 1, left_ms < INT_MAX ? left_ms : INT_MAX);
		else if (moved < 0 && errno != EINTR)
			return -errno;
		next += moved > 0 ? moved : 0;
		count -= moved > 0 ? moved : 0;
	}
	return 0;
}

int unprivileged_send(int fd, const void *head, size_t head_bytes, const void *text, size_t text_bytes,
		      __s64 deadline_ms)
{
	int error = move_all(fd, (void *)head, head_bytes, true, deadline_ms);

	return error ? error : move_all(fd, (void *)text, text_bytes, true, deadline_ms);
}

int unprivileged_receive(int fd, void *bytes, size_t count, __s64 deadline_ms)
{
	return move_all(fd, bytes, count, false, deadline_ms);
}

const char *unprivileged_failure(int error)
{
	return error == -ETIMEDOUT  ? "hangs" :
	       error == -EPROTO     ? "sent nonsense" :
	       error == -ECONNRESET ? "has ended early" :
				      strerror(-error);
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
