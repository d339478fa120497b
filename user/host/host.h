/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How this host is reached, as its network namespace, its files and its processes say: addresses,
 * default gateways, name servers, the SSH session. Knows neither rules nor filters. What cannot be found
 * out is left out.
 */
#ifndef XDP_CUCKOO_HOST_H
#define XDP_CUCKOO_HOST_H

#include <stdbool.h>
#include <stddef.h>

#include "flow.h"

struct host_address {
	enum flow_family family;
	union flow_addr bytes; /* those behind the address 0 */
	bool is_advertised;    /* of a gateway: its own router advertisements made the route */
};

struct host_addresses {
	struct host_address *address; /* to be freed, in any case */
	size_t count;
};

/* The TCP connection of an SSH session, as packets from the peer have it. */
struct host_ssh {
	struct host_address peer, server;
	__be16 peer_port, server_port;
};

/*
 * Each adds what it finds: the addresses of all interfaces but 127.0.0.0/8 and ::1; the gateways of default
 * routes in every table, those of several hops and of nexthop objects too; the servers in /etc/resolv.conf, and where
 * systemd-resolved stands before them, in its file, but those on this host. 0; -ENOMEM.
 */
int host_find_own(struct host_addresses *own);
int host_find_gateways(struct host_addresses *gateways);
int host_find_name_servers(struct host_addresses *servers);

/* Whether this host sends to it without a gateway, as its routes are now. */
bool host_is_on_link(const struct host_address *peer);

/* fe80::/10 */
bool host_is_link_local(const struct host_address *address);

/* That this process belongs to, by SSH_CONNECTION: its own, or of the nearest process above it. */
bool host_find_ssh(struct host_ssh *ssh);

#endif
