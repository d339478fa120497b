// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* To be preloaded: the kernel refuses calls by netlink without words, as many drivers do. */
#include <dlfcn.h>
#include <sys/socket.h>

#include <linux/netlink.h>

typedef int set_option(int fd, int level, int name, const void *value, socklen_t length);

int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	set_option *const real = (set_option *)dlsym(RTLD_NEXT, "setsockopt");

	return level == SOL_NETLINK && name == NETLINK_EXT_ACK ? 0 : real(fd, level, name, value, length);
}
