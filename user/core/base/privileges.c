// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/privileges.h"

#include <errno.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/types.h>

static const struct {
	unsigned int needs;
	int capability;
} kept[] = {
	{ PRIVILEGE_KERNEL, CAP_BPF },
	{ PRIVILEGE_KERNEL, CAP_NET_ADMIN },
	{ PRIVILEGE_KERNEL, CAP_PERFMON },
	{ PRIVILEGE_KERNEL | PRIVILEGE_LOOK, CAP_SYS_ADMIN },
	{ PRIVILEGE_READ | PRIVILEGE_SSH, CAP_DAC_READ_SEARCH },
	{ PRIVILEGE_WRITE, CAP_DAC_OVERRIDE },
	{ PRIVILEGE_WRITE, CAP_FOWNER },
	{ PRIVILEGE_WRITE, CAP_CHOWN },
	{ PRIVILEGE_SSH, CAP_SYS_PTRACE },
	{ PRIVILEGE_CHILD, CAP_SETUID },
	{ PRIVILEGE_CHILD, CAP_SETGID },
	{ PRIVILEGE_CHILD, CAP_KILL },
};

/* The capabilities of this process, as capget(2) has them. libcap would cost every start 0.1 ms. */
struct capabilities {
	struct __user_cap_header_struct header;
	struct __user_cap_data_struct word[_LINUX_CAPABILITY_U32S_3];
};

static int read_capabilities(struct capabilities *now)
{
	*now = (struct capabilities){ .header.version = _LINUX_CAPABILITY_VERSION_3 };
	return syscall(SYS_capget, &now->header, now->word) ? -errno : 0;
}

int privileges_gain_none(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}

bool privileges_has(int capability)
{
	struct capabilities now;

	return !read_capabilities(&now) && now.word[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

/* The kernel refuses the first number that is no capability (EINVAL). 0; -errno. */
static int limit_bounds(__u64 wanted)
{
	for (int i = 0; i < 64; i++) {
		if (wanted >> i & 1 || !prctl(PR_CAPBSET_DROP, i, 0, 0, 0))
			continue;
		return errno == EINVAL ? 0 : -errno;
	}
	return 0;
}

/* 0; -errno. */
static int keep_only(__u64 wanted)
{
	struct capabilities now;
	int error;

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
		return -errno;
	error = read_capabilities(&now);
	if (error)
		return error;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		now.word[i].permitted &= wanted >> 32 * i;
		now.word[i].effective &= wanted >> 32 * i;
		now.word[i].inheritable = 0;
	}
	return syscall(SYS_capset, &now.header, now.word) ? -errno : 0;
}

int privileges_keep(unsigned int needs)
{
	const bool may_limit_bounds = privileges_has(CAP_SETPCAP);
	__u64 wanted = 0;
	int error;

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (kept[i].needs & needs)
			wanted |= 1ULL << kept[i].capability;
	/* Dropping CAP_SETPCAP from the bounding set does not take it away from this process yet. */
	error = may_limit_bounds ? limit_bounds(wanted) : 0;
	return error ? error : keep_only(wanted);
}

int privileges_pass_on(void)
{
	__u64 wanted = 1ULL << CAP_SETPCAP; /* the program limits its bounding set by it */
	struct capabilities now;
	int error;

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		wanted |= 1ULL << kept[i].capability;
	error = keep_only(wanted);
	if (error || read_capabilities(&now))
		return error;
	/* Root's programs have them anyway. Where the kernel refuses, the program says what it lacks. */
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		now.word[i].inheritable = now.word[i].permitted;
	if (!syscall(SYS_capset, &now.header, now.word))
		for (int i = 0; i < 64; i++)
			prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0);
	return 0;
}
