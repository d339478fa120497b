// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "interfaces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

struct listing {
	struct interface *interfaces;
	size_t count;
};

const char *interface_mode_name(enum interface_mode mode)
{
	static const char *const names[INTERFACE_MODES] = {
		[INTERFACE_NATIVE] = "native",
		[INTERFACE_SKB] = "skb",
		[INTERFACE_OFFLOAD] = "offload",
	};

	return names[mode];
}

/* The kernel gives the program of each mode in an attribute of its own, since 4.19. */
static int read_xdp(const struct nlattr *attribute, void *context)
{
	static const __u16 type_of[INTERFACE_MODES] = {
		[INTERFACE_NATIVE] = IFLA_XDP_DRV_PROG_ID,
		[INTERFACE_SKB] = IFLA_XDP_SKB_PROG_ID,
		[INTERFACE_OFFLOAD] = IFLA_XDP_HW_PROG_ID,
	};
	struct interface *interface = context;

	for (int mode = 0; mode < INTERFACE_MODES; mode++)
		if (mnl_attr_get_type(attribute) == type_of[mode])
			interface->prog_id[mode] = mnl_attr_get_u32(attribute);
	return MNL_CB_OK;
}

static int read_attribute(const struct nlattr *attribute, void *context)
{
	struct interface *interface = context;

	if (mnl_attr_get_type(attribute) == IFLA_IFNAME)
		strncpy(interface->name, mnl_attr_get_str(attribute), IF_NAMESIZE - 1);
	else if (mnl_attr_get_type(attribute) == IFLA_XDP)
		return mnl_attr_parse_nested(attribute, read_xdp, interface);
	return MNL_CB_OK;
}

static int read_link(const struct nlmsghdr *message, void *context)
{
	const struct ifinfomsg *header = mnl_nlmsg_get_payload(message);
	struct listing *listing = context;
	struct interface *grown =
		realloc(listing->interfaces, (listing->count + 1) * sizeof(*grown));

	if (!grown)
		return MNL_CB_ERROR;
	listing->interfaces = grown;
	grown[listing->count] = (struct interface){ .index = header->ifi_index };
	return mnl_attr_parse(message, sizeof(*header), read_attribute, &grown[listing->count++]);
}

static int dump(struct mnl_socket *socket, struct listing *listing)
{
	char buffer[32768];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
	struct ifinfomsg *header;
	int received, more = MNL_CB_OK;

	request->nlmsg_type = RTM_GETLINK;
	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	header = mnl_nlmsg_put_extra_header(request, sizeof(*header));
	header->ifi_family = AF_UNSPEC;
	if (mnl_socket_sendto(socket, request, request->nlmsg_len) < 0)
		return -errno;
	while (more > MNL_CB_STOP) {
		received = mnl_socket_recvfrom(socket, buffer, sizeof(buffer));
		if (received < 0)
			return -errno;
		more = mnl_cb_run(buffer, received, 0, mnl_socket_get_portid(socket), read_link,
				  listing);
	}
	return more < 0 ? -errno : 0;
}

int interfaces_list(struct interface **interfaces, size_t *count)
{
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	struct listing listing = {};
	int error;

	*interfaces = NULL;
	*count = 0;
	if (!socket)
		return -errno;
	error = mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0 ? -errno : dump(socket, &listing);
	mnl_socket_close(socket);
	if (error) {
		free(listing.interfaces);
		return error;
	}
	*interfaces = listing.interfaces;
	*count = listing.count;
	return 0;
}
