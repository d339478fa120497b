// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* To be preloaded: a kernel without CONFIG_INET_DIAG, which lists no connections. */
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>

#include <linux/netlink.h>

typedef int open_socket(int domain, int type, int protocol);

int socket(int domain, int type, int protocol)
{
	open_socket *const real = (open_socket *)dlsym(RTLD_NEXT, "socket");

	if (domain != AF_NETLINK || protocol != NETLINK_SOCK_DIAG)
		return real(domain, type, protocol);
	errno = EPROTONOSUPPORT;
	return -1;
}
