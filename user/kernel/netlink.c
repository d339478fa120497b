// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel/netlink.h"

#include <errno.h>

#include <linux/genetlink.h>
#include <linux/rtnetlink.h>

#define ANSWER_BYTES 32768
#define REQUEST_BYTES 256

/* A dump needs no NLM_F_ACK, because the kernel marks its end. */
static int ask(int bus, struct nlmsghdr *request, __u16 flags, mnl_cb_t visit, void *context)
{
	struct mnl_socket *socket = mnl_socket_open2(bus, SOCK_CLOEXEC);
	char buffer[ANSWER_BYTES];
	int more = MNL_CB_OK, error;

	if (!socket)
		return -errno;
	request->nlmsg_flags = NLM_F_REQUEST | flags;
	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    mnl_socket_sendto(socket, request, request->nlmsg_len) < 0)
		more = MNL_CB_ERROR;
	while (more > MNL_CB_STOP) {
		const ssize_t received = mnl_socket_recvfrom(socket, buffer, sizeof(buffer));

		more = received < 0 ? MNL_CB_ERROR :
				      mnl_cb_run(buffer, received, 0, mnl_socket_get_portid(socket), visit, context);
	}
	error = more < 0 ? -errno : 0;
	mnl_socket_close(socket);
	return error;
}

int netlink_dump(__u16 type, __u8 family, size_t header_bytes, mnl_cb_t visit, void *context)
{
	char buffer[REQUEST_BYTES];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
	struct rtgenmsg *header = mnl_nlmsg_put_extra_header(request, header_bytes);

	request->nlmsg_type = type;
	header->rtgen_family = family;
	return ask(NETLINK_ROUTE, request, NLM_F_DUMP, visit, context);
}

int netlink_ask(struct nlmsghdr *request, mnl_cb_t visit, void *context)
{
	return ask(NETLINK_ROUTE, request, NLM_F_ACK, visit, context);
}

static struct nlmsghdr *put_generic(char *buffer, __u16 family, __u8 command)
{
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
	struct genlmsghdr *header = mnl_nlmsg_put_extra_header(request, sizeof(*header));

	request->nlmsg_type = family;
	header->cmd = command;
	header->version = 1;
	return request;
}

static int read_family(const struct nlmsghdr *message, void *id)
{
	const struct nlattr *attribute;

	mnl_attr_for_each(attribute, message, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attribute) == CTRL_ATTR_FAMILY_ID)
			*(__u16 *)id = mnl_attr_get_u16(attribute);
	return MNL_CB_OK;
}

int netlink_ask_generic(const char *family, __u8 command, __u16 attribute, __u32 number, mnl_cb_t visit, void *context)
{
	char buffer[REQUEST_BYTES];
	struct nlmsghdr *request = put_generic(buffer, GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
	__u16 id = 0;
	int error;

	mnl_attr_put_strz(request, CTRL_ATTR_FAMILY_NAME, family);
	error = ask(NETLINK_GENERIC, request, NLM_F_ACK, read_family, &id);
	if (error)
		return error;
	request = put_generic(buffer, id, command);
	mnl_attr_put_u32(request, attribute, number);
	return ask(NETLINK_GENERIC, request, NLM_F_ACK, visit, context);
}
