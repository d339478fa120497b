/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Flows that must not be blocked by mistake, because this host is reached and administered by them. Knows
 * the host's addresses, routes, name servers and SSH session; not the store.
 */
#ifndef XDP_CUCKOO_HOST_H
#define XDP_CUCKOO_HOST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error_reason.h"
#include "rule/rule.h"
#include "flow.h"

struct guard_flow {
	struct rule flow; /* for query_test() */
	char what[96];    /* what a rule would block, for example "the default gateway 192.0.2.1" */
};

struct guard {
	struct guard_flow *flows;
	size_t count;
	int error;               /* of guard_open(), while it collects them */
	const struct rule *only; /* those flows that this rule may change; NULL: all */
	struct reason missing;   /* which flows may be missing, and why; or "" */
};

/* The rules that messages advise to pass. No rule passes packets from everybody: that would void every list. */
#define GUARD_ADVICE_MAX 16
struct guard_advice {
	struct rule keeper[GUARD_ADVICE_MAX];
	size_t count;
	const struct guard_flow *own[FLOW_FAMILIES]; /* packets to an address of this host; NULL: they are not blocked */
};

/* Adds what keeps the flow, unless another rule keeps it. */
void guard_advise(struct guard_advice *advice, const struct guard_flow *flow);

/* Whether a pass rule lets somebody begin connections to a service, so that a host is reached that drops the rest. */
bool guard_lets_in(const struct rule *pass);

/* The commands, on one line to paste. `option`: of session_name_option(). Returns `text`. */
#define GUARD_ADVICE_BYTES 1200
const char *guard_advice_text(const struct guard_advice *advice, const char *option, char text[GUARD_ADVICE_BYTES]);

/*
 * Collects these flows of this network namespace: the connection of the SSH session of this process, and the next login from
 * there; packets from the
 * default gateways and the name servers (/etc/resolv.conf), also to this host's addresses only; BGP sessions; the servers that
 * feed it, see host_find_servers(); the other ends of tunnels through which these are reached, see host_find_way(); neighbour discovery of IPv6 gateways, of these peers on the link, and of all neighbours
 * together; DHCPv6 and router advertisements; packets from and to this host's addresses, except 127.0.0.0/8 and ::1. What
 * cannot be found is left out. `state`: where a reader of lists has written; NULL: HOST_STATE_DIR. 0; -ENOMEM.
 * guard_close() accepts a zeroed struct. guard_open_for(): only what a change of this one blocking rule needs, which must stay
 * until guard_close().
 */
int guard_open(struct guard *guard, const char *state, struct reason *reason);
int guard_open_for(const struct rule *only, struct guard *guard, const char *state, struct reason *reason);
void guard_close(struct guard *guard);

/* Whether the rule may change what happens to one of the flows. */
bool guard_concerns(const struct guard *guard, const struct rule *rule);

/*
 * What a drop rule seldom means to drop: addresses that are "private (RFC 1918)", ...; NULL: it is fine. `own`: empty at first; it
 * keeps the addresses of this host for the next call, and the caller frees them. NULL: for rules of a source alone.
 */
struct host_addresses;
const char *guard_special(const struct rule *rule, struct host_addresses *own);

/*
 * Whether the rule names a destination that no packet received here has: it is no address of this host, and this
 * host forwards nothing to it.
 */
bool guard_is_elsewhere(const struct rule *rule);

#define GUARD_ELSEWHERE /* the rule */ \
	"'%s' describes received packets, and this host receives none to that address: it is not its own, and it does " \
	"not forward to it; to block what it sends there, write src, and load the filter with --outgoing"

/*
 * ---- addresses and routes ----
 *
 * How this host is reached: addresses, default gateways, name servers, the SSH session. Reads them from the
 * network namespace, from files and from processes; skips what it cannot read. Knows neither rules nor
 * filters.
 */

struct host_address {
	enum flow_family family;
	union flow_addr bytes; /* the rest is 0 */
	bool is_advertised;    /* for a gateway: its own router advertisements made the route */
	bool is_default;       /* for a gateway: of a default route */
	__u8 length;           /* of the prefix on the link of an address of this host */
	__u8 proto;            /* for the other end of a tunnel: of its packets */
	__be16 port;           /* and to which port they come; 0: they have none */
	unsigned int interface; /* index; for an address of this host */
};

struct host_addresses {
	struct host_address *address; /* the caller frees it, also after an error */
	size_t count;
	bool is_read, is_part; /* for guard_special() */
};

/* A TCP connection of this host. */
struct host_connection {
	struct host_address peer, own;
	__be16 peer_port, own_port;
	bool is_on_link; /* host_find_way() sets it: this host sends to the peer without a gateway */
	char what[64]; /* the peer is, for example "the fleet's broker"; "": not known */
};

struct host_connections {
	struct host_connection *connection;
	size_t count; /* the caller frees the array, also after an error */
};

/*
 * Each function adds what it finds. host_find_addresses(): the addresses of all interfaces except 127.0.0.0/8 and
 * ::1. host_find_gateways(): the gateways of default routes in all tables, also of multipath routes and nexthop
 * objects; is_ipv4_only: those of IPv4 addresses, which IPv6 routes do not have. If there are thousands of routes or hundreds of
 * gateways, it finds at least those by which this host would send now, and sets *is_part. host_find_name_servers(): the servers in /etc/resolv.conf, and those that
 * systemd-resolved asks, except servers on this host. 0; -ENOMEM; other -errno: the kernel does not tell all of them.
 */
int host_find_addresses(struct host_addresses *own);
int host_find_gateways(bool is_ipv4_only, struct host_addresses *gateways, bool *is_part);
int host_find_name_servers(struct host_addresses *servers);

/*
 * Finds how this host now sends to the peer, from the own address if there is an own port. Sets is_on_link, and adds all
 * IPv6 gateways of the route and, if it leads into tunnels, their other ends, as the interfaces name
 * them: not of WireGuard, which has its peers elsewhere, nor of what a bridge or a VLAN is on. Sets
 * *is_part if there are too many, or the kernel does not tell. 0; -ENOMEM.
 */
int host_find_way(struct host_connection *connection, const struct host_addresses *own, struct host_addresses *gateways,
		  struct host_addresses *tunnels, bool *is_part);

/* Whether packets to the address are for this host: its own, broadcast, multicast. */
bool host_is_local(const struct host_address *address);

/* Whether this host forwards or bridges packets, so that packets to any address may come. */
bool host_forwards(enum flow_family family);

#define HOST_MULTICAST_LEN_MAX 8 /* of ff00::/8; 224.0.0.0/4 */

/* fe80::/10 */
bool host_is_link_local(const struct host_address *address);

bool host_is_loopback(const struct host_address *address);

/* Also of the other ends of tunnels, which may be several to one address. */
bool host_is_same(const struct host_address *a, const struct host_address *b);

/* `family`: AF_INET or AF_INET6. An IPv4 address that is mapped into IPv6 (RFC 4291 section 2.5.5.2) is IPv4, as in packets. */
struct host_address host_address_of(int family, const void *bytes);
bool host_read_address(const char *text, struct host_address *address);

/* ---- connections ---- */

/* The SSH session of this process: SSH_CONNECTION of the process or of its nearest parent with one. */
bool host_find_ssh(struct host_connection *ssh);

#define HOST_BGP_PORT 179

/*
 * Adds what it finds in this network namespace, without loopback: `servers` are connections to HOST_BGP_PORT that root, or
 * the user that listens there, has begun; `peers` are connections that peers have begun, and that the BGP speaker here has
 * accepted as those of peers. No more than the first 128 of each. 0; -ENOMEM; other -errno: the kernel does not tell.
 */
int host_find_bgp(struct host_connections *peers, struct host_connections *servers);

#define HOST_CONFIG_DIR "/etc/xdp-cuckoo"
#define HOST_STATE_DIR "/var/lib/xdp-cuckoo"
#define HOST_BROKER_PORT 6379 /* of Redis, where the configuration names no port */
#define HOST_WHERE_BYTES 256

/* Cuts HOST, HOST:PORT or [IPv6]:PORT into host and port. 0; -EINVAL. */
int host_split(const char *where, char host[HOST_WHERE_BYTES], char port[8]);

/*
 * Adds the servers that files *.conf in HOST_CONFIG_DIR name by address (own_port 0): brokers, and those of lists by URL and of
 * CrowdSec; connections of this host to these brokers; if a broker has a name, all connections to its port; and the servers
 * that a reader of lists has written in the last HOST_SERVERS_S. No name is looked up. 0; -ENOMEM.
 * host_also_read(): from now on also those of this file. The path is not copied.
 */
void host_also_read(const char *path);
int host_find_servers(const char *state, struct host_connections *servers);

#define HOST_SERVERS_S (30 * 86400)
#define HOST_SERVERS_BYTES 512
#define HOST_SERVERS_FILE "servers-" /* and the list: the name of such a file */

#endif
