/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs a part of this program in a process of its own that can do little harm: it reads hostile bytes, and sends what it
 * makes of them to this process. It has no capabilities and cannot gain any. If it runs a program or calls what only
 * attackers need (a list in unprivileged.c), the kernel kills it. It can open files only to read. If this process may
 * change users (PRIVILEGE_CHILD), it runs as the user UNPRIVILEGED_USER, or nobody if this host has no such user; else as
 * the same user. So it cannot read files that only root can: this process reads them before.
 */
#ifndef XDP_CUCKOO_UNPRIVILEGED_H
#define XDP_CUCKOO_UNPRIVILEGED_H

#include <stdint.h>
#include <sys/types.h>

#include <linux/types.h>

#include "base/error_reason.h"

#define UNPRIVILEGED_USER "xdp-cuckoo"

struct unprivileged {
	pid_t pid; /* 0: no process */
	int fd;    /* to the process: one end of a pair of stream sockets; -1: closed */
};

/*
 * Starts `run` in such a process, which ends when `run` returns. It has a copy of this process's memory. Of its files it
 * has the three standard ones, and `fd`, the other end of the pair. It has no terminal, and is killed if the thread that
 * started it ends. It dumps no core, and allocates at most `memory` bytes beyond its copy. Returns when the process has given
 * up its privileges. 0; -errno.
 */
int unprivileged_start(struct unprivileged *process, void (*run)(const void *context, int fd), const void *context,
		       size_t memory, struct reason *reason);

/*
 * For a child process: closes all its files but the three standard ones and `fd`. A child that hangs in the kernel would
 * keep them open when its parent has ended. 0; -errno.
 */
int unprivileged_close_others(int fd);

/*
 * How the two speak: a message is a head, a struct that both know, and a text whose length the head has. The receiver
 * trusts nothing: it checks the head before it takes the text. 0; -ETIMEDOUT: not all of it by `deadline_ms` of
 * CLOCK_MONOTONIC; -ECONNRESET: the other end is closed; other -errno. How much was moved is not known after an error.
 */
#define UNPRIVILEGED_NO_DEADLINE INT64_MAX
int unprivileged_send(int fd, const void *head, size_t head_bytes, const void *text, size_t text_bytes,
		      __s64 deadline_ms);
int unprivileged_receive(int fd, void *bytes, size_t count, __s64 deadline_ms);

/* What the process does, by an error of unprivileged_receive(); -EPROTO: what it sent is not sound. */
const char *unprivileged_failure(int error);

/* Ends the process. Accepts a zeroed struct whose fd is -1. */
void unprivileged_stop(struct unprivileged *process);

#endif
