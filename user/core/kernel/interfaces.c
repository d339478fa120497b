// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel/interfaces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/in6.h>
#include <linux/rtnetlink.h>
#include <linux/inet_diag.h>

#include "base/memory.h"
#include "base/safe_text.h"
#include "kernel/internal.h"

#define DUMP_TRIES 100 /* interfaces may come and go during a dump */

/* From <linux/netdev.h>, which Debian 12 does not have. */
#define NETDEV_FAMILY "netdev"
#define NETDEV_DEV_GET 1
#define NETDEV_DEV_IFINDEX 1
#define NETDEV_DEV_XDP_FEATURES 3
#define NETDEV_XDP_RX_SG (1 << 5)

struct listing {
	struct interface *interfaces;
	size_t count;
};

void interface_clean_name(char *name)
{
	text_clean(name);
	text_make_utf8(name);
}

const char *interface_mode_name(enum interface_mode mode)
{
	static const char *const names[INTERFACE_MODES] = {
		[INTERFACE_NATIVE] = "native", [INTERFACE_SKB] = "skb",    [INTERFACE_OFFLOAD] = "offload",
		[INTERFACE_TC] = "tc",         [INTERFACE_TC_SENT] = "tc",
	};

	return names[mode];
}

static bool is_of_kind(const struct nlattr *link_info, const char *kind)
{
	const struct nlattr *attribute;

	mnl_attr_for_each_nested(attribute, link_info)
		if (mnl_attr_get_type(attribute) == IFLA_INFO_KIND)
			return !strcmp(mnl_attr_get_str(attribute), kind);
	return false;
}

/* tun, WireGuard, PPP, IP tunnels, modems. */
static bool is_ip_type(unsigned short type)
{
	switch (type) {
	case ARPHRD_NONE:
	case ARPHRD_PPP:
	case ARPHRD_RAWIP:
	case ARPHRD_TUNNEL:
	case ARPHRD_TUNNEL6:
	case ARPHRD_SIT:
	case ARPHRD_IPGRE:
	case ARPHRD_IP6GRE:
		return true;
	default:
		return false;
	}
}

/*
 * Whether a GRE tunnel goes to one peer. Otherwise its packets have the outer header when they come to tc. IFLA_BROADCAST
 * has the address of the peer.
 */
static bool is_one_peer(const struct nlattr *address)
{
	static const __u8 none[sizeof(struct in6_addr)];
	const __u8 *bytes = mnl_attr_get_payload(address);
	const __u16 length = mnl_attr_get_payload_len(address);

	return length && length <= sizeof(none) && memcmp(bytes, none, length) &&
	       !(length == sizeof(__be32) ? (bytes[0] & 0xf0) == 0xe0 : bytes[0] == 0xff);
}

/* The XDP program of each mode. */
static void read_programs(const struct nlattr *xdp, struct interface *interface)
{
	static const __u16 type_of[INTERFACE_XDP_MODES] = {
		[INTERFACE_NATIVE] = IFLA_XDP_DRV_PROG_ID,
		[INTERFACE_SKB] = IFLA_XDP_SKB_PROG_ID,
		[INTERFACE_OFFLOAD] = IFLA_XDP_HW_PROG_ID,
	};
	const struct nlattr *program;

	mnl_attr_for_each_nested(program, xdp)
		for (int mode = 0; mode < INTERFACE_XDP_MODES; mode++)
			if (mnl_attr_get_type(program) == type_of[mode])
				interface->prog_id[mode] = mnl_attr_get_u32(program);
}

static int read_link(const struct nlmsghdr *message, void *context)
{
	const struct ifinfomsg *header = mnl_nlmsg_get_payload(message);
	const struct nlattr *attribute;
	struct rtnl_link_stats64 counts;
	struct interface *interface = context;
	bool is_link_elsewhere = false;

	*interface = (struct interface){
		.index = header->ifi_index,
		.has_ethernet = header->ifi_type == ARPHRD_ETHER || header->ifi_type == ARPHRD_LOOPBACK,
		.has_ip = is_ip_type(header->ifi_type),
	};
	mnl_attr_for_each(attribute, message, sizeof(*header)) {
		const char *payload = mnl_attr_get_payload(attribute);

		switch (mnl_attr_get_type(attribute)) {
		case IFLA_IFNAME:
			strncpy(interface->name, payload, IF_NAMESIZE - 1);
			break;
		case IFLA_MTU:
			interface->mtu = mnl_attr_get_u32(attribute);
			break;
		case IFLA_PARENT_DEV_BUS_NAME:
			interface->is_virtio_net = !strcmp(payload, "virtio");
			break;
		case IFLA_LINKINFO:
			interface->is_tap = is_of_kind(attribute, "tun"); /* the kind of tap, too */
			break;
		case IFLA_BROADCAST:
			if (header->ifi_type == ARPHRD_IPGRE || header->ifi_type == ARPHRD_IP6GRE)
				interface->has_ip = is_one_peer(attribute);
			break;
		case IFLA_MASTER:
			interface->master = mnl_attr_get_u32(attribute);
			break;
		case IFLA_LINK:
			interface->link = mnl_attr_get_u32(attribute);
			break;
		case IFLA_LINK_NETNSID:
			is_link_elsewhere = true;
			break;
		case IFLA_STATS64: /* aligned to 4 bytes only, so copied; newer kernels have more members */
			memcpy(&counts, payload, offsetof(struct rtnl_link_stats64, tx_aborted_errors));
			interface->received = counts.rx_packets;
			/* Drivers count the same loss in one or several of these: the sum could be too high. */
			interface->lost =
				MAX(counts.rx_missed_errors, MAX(counts.rx_over_errors, counts.rx_fifo_errors));
			break;
		case IFLA_XDP:
			read_programs(attribute, interface);
			break;
		}
	}
	if (is_link_elsewhere)
		interface->link = 0;
	return MNL_CB_OK;
}

static int list_link(const struct nlmsghdr *message, void *context)
{
	struct listing *listing = context;

	if (array_grow(&listing->interfaces, listing->count, sizeof(*listing->interfaces))) {
		errno = ENOMEM;
		return MNL_CB_ERROR;
	}
	return read_link(message, &listing->interfaces[listing->count++]);
}

int interfaces_list(struct interface **interfaces, size_t *count)
{
	const struct ifinfomsg all = {};
	struct listing listing = {};
	int error = -EINTR;

	for (int try = 0; try < DUMP_TRIES && error == -EINTR; try++) {
		listing.count = 0;
		error = netlink_dump(NETLINK_ROUTE, RTM_GETLINK, &all, sizeof(all), list_link, &listing);
	}
	if (error) {
		free(listing.interfaces);
		listing = (struct listing){};
	}
	for (size_t i = 0; i < listing.count; i++)
		tc_list(&listing.interfaces[i]);
	*interfaces = listing.interfaces;
	*count = listing.count;
	/* Commands take -EINTR for a signal, but there was none. */
	return error == -EINTR ? -EAGAIN : error;
}

/* The ends of a veth pair are linked to each other, and neither is above. */
static bool is_above(const struct interface *above, const struct interface *below)
{
	return below->master == above->index || (above->link == below->index && below->link != above->index);
}

static bool runs_xdp(const struct interface *interface)
{
	for (int mode = 0; mode < INTERFACE_XDP_MODES; mode++)
		if (interface->prog_id[mode])
			return true;
	return false;
}

void interfaces_keep_running(struct interface *interfaces, size_t *count)
{
	size_t kept = 0;
	bool is_ordered = false;

	for (size_t i = 0; i < *count; i++) {
		if (runs_xdp(&interfaces[i]) || interfaces[i].prog_id[INTERFACE_TC] ||
		    interfaces[i].prog_id[INTERFACE_TC_SENT])
			interfaces[kept++] = interfaces[i];
	}
	*count = kept;
	/* An upper interface comes before those below it. Bounded, because a tunnel's link may close a circle. */
	for (size_t pass = 0; pass < kept && !is_ordered; pass++) {
		is_ordered = true;
		for (size_t i = 0; i < kept; i++)
			for (size_t k = i + 1; k < kept; k++) {
				const struct interface below = interfaces[i];

				if (!is_above(&interfaces[k], &below))
					continue;
				interfaces[i] = interfaces[k];
				interfaces[k] = below;
				is_ordered = false;
			}
	}
	for (size_t i = 0; i < kept; i++)
		for (size_t k = 0; k < kept; k++)
			interfaces[i].is_below |= runs_xdp(&interfaces[k]) && is_above(&interfaces[k], &interfaces[i]);
}

struct names {
	void (*visit)(const char *name, void *context);
	void *context;
};

static int visit_names(const struct nlmsghdr *message, void *context)
{
	const struct names *names = context;
	const struct nlattr *attribute, *name;

	mnl_attr_for_each(attribute, message, sizeof(struct ifinfomsg)) {
		if (mnl_attr_get_type(attribute) == IFLA_IFNAME)
			names->visit(mnl_attr_get_str(attribute), names->context);
		if (mnl_attr_get_type(attribute) != IFLA_PROP_LIST)
			continue;
		mnl_attr_for_each_nested(name, attribute)
			if (mnl_attr_get_type(name) == IFLA_ALT_IFNAME)
				names->visit(mnl_attr_get_str(name), names->context);
	}
	return MNL_CB_OK;
}

void interfaces_names(void (*visit)(const char *name, void *context), void *context)
{
	const struct ifinfomsg all = {};

	netlink_dump(NETLINK_ROUTE, RTM_GETLINK, &all, sizeof(all), visit_names, &(struct names){ visit, context });
}

int interfaces_find(const char *name, struct interface *interface)
{
	char buffer[256];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);

	if (strlen(name) >= INTERFACE_NAME_BYTES)
		return -ENODEV;
	mnl_nlmsg_put_extra_header(request, sizeof(struct ifinfomsg));
	request->nlmsg_type = RTM_GETLINK;
	mnl_attr_put_strz(request, IFLA_ALT_IFNAME, name); /* the kernel searches all names for it */
	return netlink_ask(request, read_link, interface);
}

int interfaces_index(const char *name)
{
	struct interface found;

	return interfaces_find(name, &found) ? 0 : found.index;
}

bool interfaces_are_one(const char *name, const char *other)
{
	struct interface one = {}, two = {};

	return !strcmp(name, other) ||
	       (!interfaces_find(name, &one) && !interfaces_find(other, &two) && one.index == two.index);
}

/* ---- netlink ---- */

#define ANSWER_BYTES 32768
#define REQUEST_BYTES 256

/* A dump needs no NLM_F_ACK, because the kernel marks its end. */
static int ask(int bus, struct nlmsghdr *request, __u16 flags, netlink_visit visit, void *context)
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

int netlink_dump(int bus, __u16 type, const void *header, size_t header_bytes, netlink_visit visit, void *context)
{
	char buffer[REQUEST_BYTES];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);

	memcpy(mnl_nlmsg_put_extra_header(request, header_bytes), header, header_bytes);
	request->nlmsg_type = type;
	return ask(bus, request, NLM_F_DUMP, visit, context);
}

int netlink_ask(struct nlmsghdr *request, netlink_visit visit, void *context)
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

/* The attribute that a generic answer is asked for. */
struct number {
	__u16 type;
	__u64 value;
};

static int read_number(const struct nlmsghdr *message, void *context)
{
	const struct nlattr *attribute;
	struct number *number = context;

	mnl_attr_for_each(attribute, message, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attribute) == number->type)
			number->value = mnl_attr_get_payload_len(attribute) == sizeof(__u16) ?
						mnl_attr_get_u16(attribute) :
						mnl_attr_get_u64(attribute);
	return MNL_CB_OK;
}

bool interfaces_takes_frags(int index, bool if_unknown)
{
	char buffer[REQUEST_BYTES];
	struct nlmsghdr *request = put_generic(buffer, GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
	struct number family = { .type = CTRL_ATTR_FAMILY_ID }, features = { .type = NETDEV_DEV_XDP_FEATURES };

	mnl_attr_put_strz(request, CTRL_ATTR_FAMILY_NAME, NETDEV_FAMILY);
	if (ask(NETLINK_GENERIC, request, NLM_F_ACK, read_number, &family))
		return if_unknown;
	request = put_generic(buffer, family.value, NETDEV_DEV_GET);
	mnl_attr_put_u32(request, NETDEV_DEV_IFINDEX, index);
	if (ask(NETLINK_GENERIC, request, NLM_F_ACK, read_number, &features))
		return if_unknown;
	return features.value & NETDEV_XDP_RX_SG;
}
