// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "netlink.h"

#include <errno.h>

#include <linux/rtnetlink.h>

#define ANSWER_BYTES 32768

static int dump(struct mnl_socket *socket, __u16 type, __u8 family, size_t header_bytes,
		mnl_cb_t visit, void *context)
{
	char buffer[ANSWER_BYTES];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
	struct rtgenmsg *header;
	int received, more = MNL_CB_OK;

	request->nlmsg_type = type;
	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	header = mnl_nlmsg_put_extra_header(request, header_bytes);
	header->rtgen_family = family;
	if (mnl_socket_sendto(socket, request, request->nlmsg_len) < 0)
		return -errno;
	while (more > MNL_CB_STOP) {
		received = mnl_socket_recvfrom(socket, buffer, sizeof(buffer));
		if (received < 0)
			return -errno;
		more = mnl_cb_run(buffer, received, 0, mnl_socket_get_portid(socket), visit, context);
	}
	return more < 0 ? -errno : 0;
}

int netlink_dump(__u16 type, __u8 family, size_t header_bytes, mnl_cb_t visit, void *context)
{
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	int error;

	if (!socket)
		return -errno;
	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0)
		error = -errno;
	else
		error = dump(socket, type, family, header_bytes, visit, context);
	mnl_socket_close(socket);
	return error;
}
