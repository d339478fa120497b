// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/privileges.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/capability.h>
#include <sys/prctl.h>

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
};

static bool is_kept(cap_value_t capability, unsigned int needs)
{
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (kept[i].capability == capability && kept[i].needs & needs)
			return true;
	return false;
}

static int limit_set(cap_t from, cap_t to, cap_flag_t set, cap_value_t capability)
{
	cap_flag_value_t value;

	if (cap_get_flag(from, capability, set, &value))
		return -errno;
	return cap_set_flag(to, set, 1, &capability, value) ? -errno : 0;
}

/* Copies the needed capabilities that `from` has to `to`. None becomes inheritable. */
static int limit(cap_t from, cap_t to, unsigned int needs)
{
	const cap_value_t count = cap_max_bits();
	int error = 0;

	for (cap_value_t capability = 0; capability < count && !error; capability++) {
		if (!is_kept(capability, needs))
			continue;
		error = limit_set(from, to, CAP_PERMITTED, capability);
		if (!error)
			error = limit_set(from, to, CAP_EFFECTIVE, capability);
	}
	return error;
}

/* This needs CAP_SETPCAP. Dropping that from the bounding set does not take it away from this process yet. */
static int limit_bounding_set(cap_t from, unsigned int needs)
{
	const cap_value_t count = cap_max_bits();
	cap_flag_value_t may = CAP_CLEAR;

	if (cap_get_flag(from, CAP_SETPCAP, CAP_EFFECTIVE, &may))
		return -errno;
	for (cap_value_t capability = 0; capability < count && may == CAP_SET; capability++)
		if (!is_kept(capability, needs) && cap_drop_bound(capability))
			return -errno;
	return 0;
}

int privileges_gain_none(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}

int privileges_keep(unsigned int needs)
{
	cap_t from = cap_get_proc(), to = cap_init();
	int error = from && to ? limit(from, to, needs) : -ENOMEM;

	if (!error)
		error = limit_bounding_set(from, needs);
	if (!error && (cap_reset_ambient() || cap_set_proc(to)))
		error = -errno;
	cap_free(from);
	cap_free(to);
	return error;
}
