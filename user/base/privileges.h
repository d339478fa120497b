/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Capabilities. The tool starts with those of its user and gives up early all that its command does not need.
 * It never gains a capability.
 */
#ifndef XDP_CUCKOO_PRIVILEGES_H
#define XDP_CUCKOO_PRIVILEGES_H

#include "base/error_reason.h"

/* Why a command needs capabilities, as bits. */
enum privilege {
	/*
	 * To change running filters: CAP_BPF and CAP_NET_ADMIN; CAP_PERFMON, else the verifier adds guards
	 * against speculation to programs; CAP_SYS_ADMIN, which is needed to find an object by its id.
	 */
	PRIVILEGE_KERNEL = 1 << 0,
	PRIVILEGE_READ = 1 << 1, /* to read the store and lists anywhere: CAP_DAC_READ_SEARCH */
	/*
	 * To write files in another user's directory without changing their owner: CAP_DAC_OVERRIDE,
	 * CAP_FOWNER, CAP_CHOWN.
	 */
	PRIVILEGE_WRITE = 1 << 2,
	PRIVILEGE_SSH = 1 << 3,  /* to read the environment of sudo's parent: CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH */
	PRIVILEGE_LOOK = 1 << 4, /* to read running filters: CAP_SYS_ADMIN */
};

/* No program that this process runs can gain privileges, even if it is setuid. 0 or -errno. */
int privileges_gain_none(void);

/*
 * Gives up all capabilities except those for `needs`, in every set. The bounding set is limited too if
 * CAP_SETPCAP allows it. 0 or -errno.
 */
int privileges_keep(unsigned int needs);

#endif
