/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Gives up the capabilities that a command does not need. */
#ifndef XDP_CUCKOO_PRIVILEGES_H
#define XDP_CUCKOO_PRIVILEGES_H

#include <stdbool.h>

#include <linux/capability.h>

/* What a command needs capabilities for, as bits. */
enum privilege {
	/*
	 * To change running filters. Without CAP_PERFMON the verifier adds guards against speculation; without
	 * CAP_SYS_ADMIN no object can be found by its id.
	 */
	PRIVILEGE_KERNEL = 1 << 0,
	PRIVILEGE_READ = 1 << 1,  /* to read the store and lists anywhere */
	PRIVILEGE_WRITE = 1 << 2, /* to write files in another user's directory without changing their owner */
	PRIVILEGE_SSH = 1 << 3,   /* to read the environment of sudo's parent */
	PRIVILEGE_LOOK = 1 << 4,  /* to read running filters */
	PRIVILEGE_CHILD = 1 << 5, /* to start and to end a process of the user nobody: see unprivileged.h */
};

/* No program that this process runs can gain privileges, even if it is setuid. 0 or -errno. */
int privileges_gain_none(void);

/* Whether a capability (CAP_...) is effective. */
bool privileges_has(int capability);

/*
 * Keeps only the capabilities for `needs`, in every set; in the bounding set if CAP_SETPCAP allows it. 0 or
 * -errno.
 */
int privileges_keep(unsigned int needs);

/*
 * Keeps the capabilities that any need has, and passes them on to a program that this process starts, whoever the user is.
 * 0 or -errno.
 */
int privileges_pass_on(void);

#endif
