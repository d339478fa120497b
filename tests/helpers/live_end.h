/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An end of a veth pair, NETNS:IFACE, for programs that send or meet live traffic. What fails ends them. */
#ifndef XDP_CUCKOO_TESTS_LIVE_END_H
#define XDP_CUCKOO_TESTS_LIVE_END_H

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noreturn)) static inline void live_die(const char *what, int error)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(error < 0 ? -error : error));
	exit(2);
}

/* Goes to the network namespace of `place`; returns the index of its interface. */
static inline int live_enter(const char *place)
{
	const char *iface = strchr(place, ':');
	char path[256];
	int fd, ifindex;

	if (!iface)
		live_die(place, EINVAL);
	snprintf(path, sizeof(path), "/run/netns/%.*s", (int)(iface - place), place);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		live_die(path, errno);
	close(fd);
	ifindex = if_nametoindex(iface + 1);
	if (!ifindex)
		live_die(place, errno);
	return ifindex;
}

#endif
