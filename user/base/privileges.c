// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/privileges.h"

#include <errno.h>
#include <stddef.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static const struct {
	unsigned int needs;
	cap_value_t capability;
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

static bool is_kept(cap_value_t capability, unsigned int needs)
{
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (kept[i].capability == capability && kept[i].needs & needs)
			return true;
	return false;
}

int privileges_gain_none(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}

bool privileges_has(int capability)
{
	cap_flag_value_t value = CAP_CLEAR;
	cap_t capabilities = cap_get_proc();

	if (capabilities && cap_get_flag(capabilities, capability, CAP_EFFECTIVE, &value))
		value = CAP_CLEAR;
	cap_free(capabilities);
	return value == CAP_SET;
}

int privileges_keep(unsigned int needs)
{
	const cap_value_t count = cap_max_bits();
	cap_flag_value_t may_limit_bounds = CAP_CLEAR;
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	cap_t capabilities = cap_get_proc();
	int error = 0;

	/* Before Linux 5.11, BPF maps and programs count as locked memory. libbpf raises the limit too late for us. */
	if (needs & (PRIVILEGE_KERNEL | PRIVILEGE_LOOK) && setrlimit(RLIMIT_MEMLOCK, &limit) &&
	    !getrlimit(RLIMIT_MEMLOCK, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_MEMLOCK, &limit);
	}
	if (!capabilities || cap_get_flag(capabilities, CAP_SETPCAP, CAP_EFFECTIVE, &may_limit_bounds) ||
	    cap_clear_flag(capabilities, CAP_INHERITABLE))
		error = -errno;
	for (cap_value_t capability = 0; capability < count && !error; capability++) {
		if (is_kept(capability, needs))
			continue;
		/* Dropping CAP_SETPCAP from the bounding set does not take it away from this process yet. */
		if ((may_limit_bounds == CAP_SET && cap_drop_bound(capability)) ||
		    cap_set_flag(capabilities, CAP_PERMITTED, 1, &capability, CAP_CLEAR) ||
		    cap_set_flag(capabilities, CAP_EFFECTIVE, 1, &capability, CAP_CLEAR))
			error = -errno;
	}
	if (!error && (cap_reset_ambient() || cap_set_proc(capabilities)))
		error = -errno;
	cap_free(capabilities);
	return error;
}
