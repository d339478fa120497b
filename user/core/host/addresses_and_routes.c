// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/if_tunnel.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>

#include "base/memory.h"
#include "host/host.h"
#include "kernel/interfaces.h"

#define DUMP_TRIES 4 /* routes may change during a dump */
#define REQUEST_BYTES 256
/* Of each family. Anybody on the link can announce gateways, and each costs a change many look-ups. */
#define ROUTES_MAX 4096 /* that are read */
#define GATEWAYS_MAX 128
#define TUNNELS_MAX 16
#define LINKS_MAX 16 /* of one way */

/* ---- addresses ---- */

static size_t address_bytes(enum flow_family family)
{
	return family == FLOW_IPV4 ? 4 : 16;
}

bool host_is_loopback(const struct host_address *address)
{
	static const __u8 ipv6[16] = { [15] = 1 };

	if (address->family == FLOW_IPV4)
		return address->bytes.byte[0] == 127;
	return !memcmp(address->bytes.byte, ipv6, sizeof(ipv6));
}

bool host_is_link_local(const struct host_address *address)
{
	const __u8 *byte = address->bytes.byte;

	return address->family == FLOW_IPV6 && byte[0] == 0xfe && (byte[1] & 0xc0) == 0x80;
}

bool host_is_same(const struct host_address *a, const struct host_address *b)
{
	return a->family == b->family && a->proto == b->proto && a->port == b->port &&
	       !memcmp(&a->bytes, &b->bytes, sizeof(a->bytes));
}

static struct host_address address_of(enum flow_family family, const void *bytes)
{
	struct host_address address = { .family = family };

	memcpy(address.bytes.byte, bytes, address_bytes(family));
	return address;
}

struct host_address host_address_of(int family, const void *bytes)
{
	static const __u8 mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (family == AF_INET)
		return address_of(FLOW_IPV4, bytes);
	return memcmp(bytes, mapped, sizeof(mapped)) ? address_of(FLOW_IPV6, bytes) :
						       address_of(FLOW_IPV4, (const __u8 *)bytes + sizeof(mapped));
}

/* A zone (%eth0) is in no packet. */
bool host_read_address(const char *text, struct host_address *address)
{
	char bare[INET6_ADDRSTRLEN];
	__u8 bytes[16];
	int family = AF_INET;

	snprintf(bare, sizeof(bare), "%.*s", (int)strcspn(text, "%"), text);
	if (inet_pton(family, bare, bytes) != 1)
		family = AF_INET6;
	if (family == AF_INET6 && inet_pton(family, bare, bytes) != 1)
		return false;
	*address = host_address_of(family, bytes);
	return true;
}

static int add_address(struct host_addresses *list, const struct host_address *address)
{
	if (array_grow(&list->address, list->count, sizeof(*address)))
		return -ENOMEM;
	list->address[list->count++] = *address;
	return 0;
}

/* For short lists: several sources may name the same address. What one of them says of it holds. */
static int add_address_once(struct host_addresses *list, const struct host_address *address)
{
	for (size_t i = 0; i < list->count; i++) {
		struct host_address *known = &list->address[i];

		if (host_is_same(known, address)) {
			known->is_advertised |= address->is_advertised;
			known->is_default |= address->is_default;
			return 0;
		}
	}
	return add_address(list, address);
}

/* ---- this host's addresses ---- */

/* IFA_ADDRESS is the peer's address where there is an IFA_LOCAL. */
static int read_own_address(const struct nlmsghdr *message, void *own)
{
	const struct ifaddrmsg *header = mnl_nlmsg_get_payload(message);
	const struct nlattr *attribute, *found = NULL;
	struct host_address address;

	mnl_attr_for_each(attribute, message, sizeof(*header)) {
		const __u16 type = mnl_attr_get_type(attribute);

		if (type == IFA_LOCAL || (type == IFA_ADDRESS && !found))
			found = attribute;
	}
	if (!found || (header->ifa_family != AF_INET && header->ifa_family != AF_INET6))
		return MNL_CB_OK;
	address = address_of(header->ifa_family == AF_INET ? FLOW_IPV4 : FLOW_IPV6, mnl_attr_get_payload(found));
	address.length = header->ifa_prefixlen;
	address.interface = header->ifa_index;
	if (host_is_loopback(&address) || !add_address(own, &address))
		return MNL_CB_OK;
	errno = ENOMEM;
	return MNL_CB_ERROR;
}

/* getifaddrs() would read all interfaces besides. */
int host_find_addresses(struct host_addresses *own)
{
	const struct ifaddrmsg all = {};
	const size_t before = own->count;
	int error = -EINTR;

	for (int try = 0; try < DUMP_TRIES && error == -EINTR; try++) {
		own->count = before;
		error = netlink_dump(NETLINK_ROUTE, RTM_GETADDR, &all, sizeof(all), read_own_address, own);
	}
	return error;
}

/* ---- gateways ---- */

#define DEFAULT_BITS 3 /* 2000::/3 holds all global addresses; two routes of /1 are a default, too */

struct route {
	struct host_addresses *gateways;
	int family; /* AF_INET, AF_INET6 */
	bool is_advertised;
	__u8 type;            /* RTN_UNICAST, ... */
	bool is_default_only; /* other routes are skipped */
	unsigned int left;    /* routes that a dump may still read */
	size_t before;        /* gateways of the other family */
	bool is_full;
	bool is_way; /* to one peer: its IPv4 gateways, which ARP finds, do not count */
	bool has_gateway;
	unsigned int link[LINKS_MAX]; /* interfaces of a way, by which packets leave */
	size_t links;
};

static void add_link(struct route *route, unsigned int link)
{
	size_t i = 0;

	while (i < route->links && route->link[i] != link)
		i++;
	if (!route->is_way || !link || i < route->links)
		return;
	if (i < LINKS_MAX)
		route->link[route->links++] = link;
	else
		route->is_full = true;
}

/* The functions of this section return MNL_CB_X; after MNL_CB_ERROR errno is ENOMEM. */
static int add_gateway(struct route *route, int family, const void *bytes, size_t length)
{
	const enum flow_family flow_family = family == AF_INET ? FLOW_IPV4 : FLOW_IPV6;
	struct host_address address;

	if ((family != AF_INET && family != AF_INET6) || length != address_bytes(flow_family))
		return MNL_CB_OK;
	route->has_gateway = true;
	if (route->is_way && flow_family == FLOW_IPV4)
		return MNL_CB_OK;
	if (route->gateways->count - route->before >= GATEWAYS_MAX) {
		route->is_full = true;
		return MNL_CB_OK;
	}
	address = address_of(flow_family, bytes);
	address.is_advertised = route->is_advertised;
	address.is_default = route->is_default_only;
	return add_address_once(route->gateways, &address) ? MNL_CB_ERROR : MNL_CB_OK;
}

static int read_nexthop(const struct nlmsghdr *message, void *context);

/* Reads a nexthop object. With net.ipv4.nexthop_compat_mode=0 routes name only such objects, no gateways. */
static int ask_nexthop(struct route *route, __u32 id)
{
	char buffer[REQUEST_BYTES];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);

	mnl_nlmsg_put_extra_header(request, sizeof(struct nhmsg));
	request->nlmsg_type = RTM_GETNEXTHOP;
	mnl_attr_put_u32(request, NHA_ID, id);
	if (netlink_ask(request, read_nexthop, route) != -ENOMEM)
		return MNL_CB_OK;
	errno = ENOMEM;
	return MNL_CB_ERROR;
}

static int read_nexthop(const struct nlmsghdr *message, void *context)
{
	const struct nhmsg *header = mnl_nlmsg_get_payload(message);
	struct route *route = context;
	const struct nlattr *attribute;
	int more = MNL_CB_OK;

	mnl_attr_for_each(attribute, message, sizeof(*header)) {
		const size_t length = mnl_attr_get_payload_len(attribute);
		const struct nexthop_grp *member = mnl_attr_get_payload(attribute);

		/* Its family may differ from that of the route. */
		if (mnl_attr_get_type(attribute) == NHA_GATEWAY)
			more = add_gateway(route, header->nh_family, member, length);
		if (mnl_attr_get_type(attribute) == NHA_OIF)
			add_link(route, mnl_attr_get_u32(attribute));
		/* The kernel allows no group in a group. */
		if (mnl_attr_get_type(attribute) == NHA_GROUP)
			for (size_t i = 0; i < length / sizeof(*member) && more > MNL_CB_STOP; i++)
				more = ask_nexthop(route, member[i].id);
		if (more <= MNL_CB_STOP)
			break;
	}
	return more;
}

static int read_hops(const struct nlattr *attribute, struct route *route);

/* An attribute of a route, or of one hop of a multipath route. */
static int read_gateway(const struct nlattr *attribute, void *context)
{
	const __u16 length = mnl_attr_get_payload_len(attribute);
	const void *payload = mnl_attr_get_payload(attribute);
	const struct rtvia *via = payload;
	struct route *route = context;

	switch (mnl_attr_get_type(attribute)) {
	case RTA_GATEWAY:
		return add_gateway(route, route->family, payload, length);
	case RTA_VIA: /* a gateway of another family than the route */
		return length <= sizeof(*via) ?
			       MNL_CB_OK :
			       add_gateway(route, via->rtvia_family, via->rtvia_addr, length - sizeof(*via));
	case RTA_MULTIPATH:
		return read_hops(attribute, route);
	case RTA_OIF:
		add_link(route, mnl_attr_get_u32(attribute));
		return MNL_CB_OK;
	case RTA_NH_ID:
		return ask_nexthop(route, mnl_attr_get_u32(attribute));
	default:
		return MNL_CB_OK;
	}
}

static int read_hops(const struct nlattr *attribute, struct route *route)
{
	const struct rtnexthop *hop = mnl_attr_get_payload(attribute);
	int left = mnl_attr_get_payload_len(attribute), more = MNL_CB_OK;

	while (more > MNL_CB_STOP && left >= (int)sizeof(*hop) && RTNH_OK(hop, left)) {
		add_link(route, hop->rtnh_ifindex);
		more = mnl_attr_parse_payload(RTNH_DATA(hop), hop->rtnh_len - sizeof(*hop), read_gateway, route);
		left -= RTNH_ALIGN(hop->rtnh_len);
		hop = RTNH_NEXT(hop);
	}
	return more;
}

static int read_route(const struct nlmsghdr *message, void *context)
{
	const struct rtmsg *header = mnl_nlmsg_get_payload(message);
	struct route *route = context;

	if (route->is_default_only) {
		if (!route->left)
			return MNL_CB_STOP;
		route->left--;
		if (header->rtm_dst_len > DEFAULT_BITS || header->rtm_type != RTN_UNICAST)
			return MNL_CB_OK;
	}
	route->family = header->rtm_family;
	route->is_advertised = header->rtm_protocol == RTPROT_RA;
	route->type = header->rtm_type;
	return mnl_attr_parse(message, sizeof(*header), read_gateway, route);
}

/*
 * Asks the kernel how it would send to the address; about default routes and ways, by which
 * route. `from`: an address of this host, for policy routing, or NULL. `interface`: by this one, or
 * one of its VRF; 0: any.
 */
static int ask_route(const struct host_address *address, const struct host_address *from, unsigned int interface,
		     struct route *route)
{
	char buffer[REQUEST_BYTES];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
	struct rtmsg *header = mnl_nlmsg_put_extra_header(request, sizeof(*header));

	request->nlmsg_type = RTM_GETROUTE;
	header->rtm_family = address->family == FLOW_IPV4 ? AF_INET : AF_INET6;
	header->rtm_dst_len = 8 * address_bytes(address->family);
	header->rtm_flags = route->is_default_only || route->is_way ? RTM_F_FIB_MATCH : 0;
	mnl_attr_put(request, RTA_DST, address_bytes(address->family), &address->bytes);
	if (from) {
		header->rtm_src_len = header->rtm_dst_len;
		mnl_attr_put(request, RTA_SRC, address_bytes(address->family), &from->bytes);
	}
	if (interface)
		mnl_attr_put_u32(request, RTA_OIF, interface);
	return netlink_ask(request, read_route, route);
}

/*
 * A router has a million routes, and a change must not wait until they are read. So first the kernel is asked by which
 * route it would send to an address that nobody announces (240.0.0.1, 3ffe::): that is the default route in use, if there
 * is one. The kernel lists the default routes of a table first (IPv4) or last (IPv6).
 */
int host_find_gateways(bool is_ipv4_only, struct host_addresses *gateways, bool *is_part)
{
	static const struct host_address unannounced[] = { { FLOW_IPV4, .bytes.byte = { 240, 0, 0, 1 } },
							   { FLOW_IPV6, .bytes.byte = { 0x3f, 0xfe } } };
	int unlisted = 0;

	for (size_t i = 0; i < (is_ipv4_only ? 1 : sizeof(unannounced) / sizeof(unannounced[0])); i++) {
		const struct rtmsg all = { .rtm_family = unannounced[i].family == FLOW_IPV4 ? AF_INET : AF_INET6 };
		struct route route = {
			.gateways = gateways, .is_default_only = true, .left = 1, .before = gateways->count
		};
		int error = ask_route(&unannounced[i], NULL, 0, &route) == -ENOMEM ? -ENOMEM : -EINTR;

		for (int try = 0; try < DUMP_TRIES && error == -EINTR; try++) {
			route.left = ROUTES_MAX;
			error = netlink_dump(NETLINK_ROUTE, RTM_GETROUTE, &all, sizeof(all), read_route, &route);
		}
		if (error == -ENOMEM)
			return error;
		*is_part |= !route.left || error == -EINTR || route.is_full;
		if (error && error != -EINTR && error != -EAFNOSUPPORT)
			unlisted = error;
	}
	return unlisted;
}

/* The attribute of a type in another one; NULL: it has none, or there is no other one. */
static const struct nlattr *part_of(const struct nlattr *whole, __u16 type)
{
	const struct nlattr *part, *found = NULL;

	if (whole && type)
		mnl_attr_for_each_nested(part, whole)
			found = mnl_attr_get_type(part) == type ? part : found;
	return found;
}

/*
 * The other end of a tunnel, as the kernel describes the interface. FOU and GUE put a tunnel into UDP;
 * both ends usually have the same port; without them it is 0.
 */
static int read_tunnel(const struct nlmsghdr *message, void *context)
{
	static const struct {
		const char *kind;
		__u8 proto; /* 0: the inner packets tell it */
		__u16 remote, remote_ipv6, port;
	} kinds[] = {
		{ "ipip", 0, IFLA_IPTUN_REMOTE, 0, IFLA_IPTUN_ENCAP_DPORT },
		{ "sit", 0, IFLA_IPTUN_REMOTE, 0, IFLA_IPTUN_ENCAP_DPORT },
		{ "ip6tnl", 0, IFLA_IPTUN_REMOTE, 0, IFLA_IPTUN_ENCAP_DPORT },
		{ "gre", IPPROTO_GRE, IFLA_GRE_REMOTE, 0, IFLA_GRE_ENCAP_DPORT },
		{ "gretap", IPPROTO_GRE, IFLA_GRE_REMOTE, 0, IFLA_GRE_ENCAP_DPORT },
		{ "erspan", IPPROTO_GRE, IFLA_GRE_REMOTE, 0, IFLA_GRE_ENCAP_DPORT },
		{ "ip6gre", IPPROTO_GRE, IFLA_GRE_REMOTE, 0, IFLA_GRE_ENCAP_DPORT },
		{ "ip6gretap", IPPROTO_GRE, IFLA_GRE_REMOTE, 0, IFLA_GRE_ENCAP_DPORT },
		{ "ip6erspan", IPPROTO_GRE, IFLA_GRE_REMOTE, 0, IFLA_GRE_ENCAP_DPORT },
		{ "vxlan", IPPROTO_UDP, IFLA_VXLAN_GROUP, IFLA_VXLAN_GROUP6, IFLA_VXLAN_PORT },
		{ "geneve", IPPROTO_UDP, IFLA_GENEVE_REMOTE, IFLA_GENEVE_REMOTE6, IFLA_GENEVE_PORT },
	};
	const struct nlattr *link, *info = NULL;

	mnl_attr_for_each(link, message, sizeof(struct ifinfomsg))
		info = mnl_attr_get_type(link) == IFLA_LINKINFO ? link : info;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct nlattr *kind = part_of(info, IFLA_INFO_KIND), *data = part_of(info, IFLA_INFO_DATA);
		const struct nlattr *ipv4 = part_of(data, kinds[i].remote), *port = part_of(data, kinds[i].port);
		const struct nlattr *remote = ipv4 ? ipv4 : part_of(data, kinds[i].remote_ipv6);
		struct host_address *end = context;
		__u8 proto;

		if (!remote || strcmp(mnl_attr_get_str(kind), kinds[i].kind))
			continue;
		proto = kinds[i].proto ? kinds[i].proto : end->family == FLOW_IPV4 ? IPPROTO_IPIP : IPPROTO_IPV6;
		*end = host_address_of(mnl_attr_get_payload_len(remote) == 4 ? AF_INET : AF_INET6,
				       mnl_attr_get_payload(remote));
		end->port = port ? mnl_attr_get_u16(port) : 0;
		end->proto = end->port ? IPPROTO_UDP : proto;
	}
	return MNL_CB_OK;
}

/* Adds the other end of the tunnel by which this host reaches `inner`, if the interface is one. 0; -ENOMEM. */
static int find_tunnel(unsigned int link, const struct host_address *inner, struct host_addresses *tunnels,
		       bool *is_part)
{
	static const union flow_addr none;
	char buffer[REQUEST_BYTES];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
	struct ifinfomsg *header = mnl_nlmsg_put_extra_header(request, sizeof(*header));
	struct host_address end = { .family = inner->family };
	int error;

	request->nlmsg_type = RTM_GETLINK;
	header->ifi_index = link;
	error = netlink_ask(request, read_tunnel, &end);
	*is_part |= error && error != -ENODEV; /* it went meanwhile */
	if (error || !memcmp(&end.bytes, &none, sizeof(none)))
		return error == -ENOMEM ? error : 0;
	error = add_address_once(tunnels, &end);
	if (tunnels->count > TUNNELS_MAX) {
		tunnels->count = TUNNELS_MAX;
		*is_part = true;
	}
	return error;
}

int host_find_way(struct host_connection *connection, const struct host_addresses *own, struct host_addresses *gateways,
		  struct host_addresses *tunnels, bool *is_part)
{
	const struct host_address *from = connection->own_port ? &connection->own : NULL;
	unsigned int interface = 0;
	int error = 0;

	connection->is_on_link = host_is_link_local(&connection->peer);
	for (size_t i = 0; i < own->count && from; i++)
		if (host_is_same(from, &own->address[i]))
			interface = own->address[i].interface;
	/* In a VRF only the interface leads to the right table. */
	for (int i = 0; i <= !!interface && error != -ENOMEM; i++) {
		struct route route = { .gateways = gateways, .is_way = true, .before = gateways->count };

		error = ask_route(&connection->peer, from, i ? interface : 0, &route);
		connection->is_on_link |= !error && route.type == RTN_UNICAST && !route.has_gateway;
		for (size_t k = 0; k < route.links && !error; k++)
			error = find_tunnel(route.link[k], &connection->peer, tunnels, is_part);
		*is_part |= route.is_full;
	}
	return error == -ENOMEM ? error : 0;
}

bool host_is_local(const struct host_address *address)
{
	struct host_addresses gateways = {};
	struct route route = { .gateways = &gateways };
	const int error = ask_route(address, NULL, 0, &route);

	free(gateways.address);
	return !error && (route.type == RTN_LOCAL || route.type == RTN_BROADCAST || route.type == RTN_MULTICAST ||
			  route.type == RTN_ANYCAST);
}

bool host_forwards(enum flow_family family)
{
	FILE_CLOSED FILE *setting = fopen(family == FLOW_IPV6 ? "/proc/sys/net/ipv6/conf/all/forwarding" :
								"/proc/sys/net/ipv4/conf/all/forwarding",
					  "re");
	const bool is_on = setting && fgetc(setting) != '0';
	struct if_nameindex *names = if_nameindex();
	char path[64 + IF_NAMESIZE];
	bool is_port = false; /* of a bridge */

	for (const struct if_nameindex *i = names; i && i->if_index && !is_port; i++) {
		snprintf(path, sizeof(path), "/sys/class/net/%s/brport", i->if_name);
		is_port = !access(path, F_OK);
	}
	if (names)
		if_freenameindex(names);
	return is_port || is_on;
}

/* ---- name servers ---- */

/* With systemd-resolved, the first file names itself and the second the servers that it asks. */
int host_find_name_servers(struct host_addresses *servers)
{
	static const char *const paths[] = { "/etc/resolv.conf", "/run/systemd/resolve/resolv.conf" };
	char line[256], word[64];
	struct host_address address;
	int error = 0;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]) && !error; i++) {
		FILE_CLOSED FILE *file = fopen(paths[i], "re");

		while (file && !error && fgets(line, sizeof(line), file))
			if (sscanf(line, " nameserver %63s", word) == 1 && host_read_address(word, &address) &&
			    !host_is_loopback(&address))
				error = add_address_once(servers, &address);
	}
	return error;
}
