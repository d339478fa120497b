/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What this process may do beyond other processes of its user: given up early, but for what the command at
 * hand needs. Nothing is gained here, whoever runs the tool: what is not there is not asked for.
 */
#ifndef XDP_CUCKOO_PRIVILEGES_H
#define XDP_CUCKOO_PRIVILEGES_H

#include "base/error_reason.h"

/* What a command needs capabilities for, as bits. */
enum privilege {
	/*
	 * The running filters: CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON, with which programs need no guards against
	 * speculation, and CAP_SYS_ADMIN, without which no object is found by its id.
	 */
	PRIVILEGE_KERNEL = 1 << 0,
	PRIVILEGE_READ = 1 << 1, /* the store and lists, wherever they are: CAP_DAC_READ_SEARCH */
	/* A file in a directory of another user, who keeps what was theirs: CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_CHOWN. */
	PRIVILEGE_WRITE = 1 << 2,
	PRIVILEGE_SSH = 1 << 3,  /* the environment of sudo's parent: CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH */
	PRIVILEGE_LOOK = 1 << 4, /* the running filters, to read alone: CAP_SYS_ADMIN */
};

/* No program that this process might run gains anything. 0 or -errno. */
int privileges_gain_none(void);

/*
 * Gives up all capabilities but those for `needs`, in every set, the bounding one too where that is allowed.
 * 0 or -errno.
 */
int privileges_keep(unsigned int needs);

#endif
