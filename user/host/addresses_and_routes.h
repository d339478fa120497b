/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How this host is reached: addresses, default gateways, name servers, the SSH session. Reads them from the
 * network namespace, from files and from processes; skips what it cannot read. Knows neither rules nor
 * filters.
 */
#ifndef XDP_CUCKOO_ADDRESSES_AND_ROUTES_H
#define XDP_CUCKOO_ADDRESSES_AND_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

#include "flow.h"

struct host_address {
	enum flow_family family;
	union flow_addr bytes; /* the rest is 0 */
	bool is_advertised;    /* for a gateway: its own router advertisements made the route */
};

struct host_addresses {
	struct host_address *address; /* the caller frees it, also after an error */
	size_t count;
};

/* The TCP connection of an SSH session, as in packets from the peer. */
struct host_ssh {
	struct host_address peer, server;
	__be16 peer_port, server_port;
};

/*
 * Each function adds what it finds. host_find_own(): the addresses of all interfaces except 127.0.0.0/8 and
 * ::1. host_find_gateways(): the gateways of default routes in all tables, also of multipath routes and
 * nexthop objects. host_find_name_servers(): the servers in /etc/resolv.conf, and those that
 * systemd-resolved asks, except servers on this host. 0; -ENOMEM.
 */
int host_find_own(struct host_addresses *own);
int host_find_gateways(struct host_addresses *gateways);
int host_find_name_servers(struct host_addresses *servers);

/* Whether this host now sends packets to the peer without a gateway. */
bool host_is_on_link(const struct host_address *peer);

/* Whether packets to the address are for this host: its own, broadcast, multicast. */
bool host_is_local(const struct host_address *address);

/* Whether this host forwards or bridges packets, so that packets to any address may come. */
bool host_forwards(enum flow_family family);

/* fe80::/10 */
bool host_is_link_local(const struct host_address *address);

/* The SSH session of this process: SSH_CONNECTION of the process or of its nearest parent with one. */
bool host_find_ssh(struct host_ssh *ssh);

#endif
