// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The flows by which this host is reached. */
#include "base/memory.h"
#include "base/safe_text.h"
#include "host/host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/icmp6.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define ADDRESSES_PAIRED_MAX 64 /* each peer is paired with at most so many addresses of this host */
#define FULL_BYTES 1500         /* the longest packet that the usual MTU allows */

/* ---- flows ---- */

static const struct host_address link_local = { FLOW_IPV6, .bytes.byte = { 0xfe, 0x80 } };
/*
 * Only to these is guarded what this host sends itself: Linux takes in nothing else with its own
 * address as source. With accept_local it does, for cards of a host that are wired to each other.
 * Nobody reaches a host so, and each interface has a setting of its own.
 */
static const struct host_address multicast[FLOW_FAMILIES] = { [FLOW_IPV4] = { FLOW_IPV4, .bytes.byte = { 0xe0 } },
							      [FLOW_IPV6] = { FLOW_IPV6, .bytes.byte = { 0xff } } };
static const __u8 multicast_len[FLOW_FAMILIES] = { [FLOW_IPV4] = 4, [FLOW_IPV6] = HOST_MULTICAST_LEN_MAX };

static struct rule flow_of(const struct host_address *src, const struct host_address *dst)
{
	struct rule flow = {};

	if (src) {
		flow.family = src->family;
		flow.src = src->bytes;
		flow.src_len = flow.family == FLOW_IPV4 ? 32 : 128;
	}
	if (dst) {
		flow.family = dst->family;
		flow.dst = dst->bytes;
		flow.dst_len = flow.family == FLOW_IPV4 ? 32 : 128;
	}
	return flow;
}

/* Those of a protocol, to and from these ports. 0: any. */
static struct rule ports_flow(const struct host_address *src, const struct host_address *dst, __u8 proto, __be16 sport,
			      __be16 dport)
{
	struct rule flow = flow_of(src, dst);

	flow.fields = RULE_PROTO | (sport ? RULE_SPORT : 0) | (dport ? RULE_DPORT : 0);
	flow.proto = proto;
	flow.port_kind = sport || dport ? FLOW_PORTS : FLOW_NO_PORTS;
	flow.sport = sport;
	flow.dport = dport;
	return flow;
}

/*
 * Adds a flow; its text is `what` and the address. Rules may compare fragments; these packets are
 * whole. Without memory, sets guard->error, and guard_open_for() reports it.
 */
static void add_flow(struct guard *guard, const struct rule *flow, const char *what, const struct host_address *address)
{
	char text[INET6_ADDRSTRLEN];
	struct guard_flow *added;
	struct rule whole = *flow;

	if (!(flow->fields & RULE_DETAILS)) {
		whole.fields |= RULE_DETAILS;
		whole.details.fragment_mask = FLOW_FRAGMENT_MASK;
		whole.fragment = FLOW_FRAGMENT_NO;
	}
	/* A door at any address of this host counts for a rule that blocks packets from everybody. */
	if (guard->only && !rule_covers(guard->only, &whole) && (guard->only->src_len || whole.src_len))
		return;
	guard->error = guard->error ? guard->error : array_grow(&guard->flows, guard->count, sizeof(*added));
	if (guard->error)
		return;
	inet_ntop(address->family == FLOW_IPV4 ? AF_INET : AF_INET6, &address->bytes, text, sizeof(text));
	added = &guard->flows[guard->count++];
	added->flow = whole;
	snprintf(added->what, sizeof(added->what), "%s %s", what, text);
}

/* The same for packets of one length, because rules may compare lengths. `length`: of the packet in IPv4. */
static void add_packet(struct guard *guard, const struct rule *flow, __u16 length, const char *what,
		       const struct host_address *address)
{
	struct rule packet = *flow;

	packet.fields |= RULE_DETAILS;
	packet.details.fragment_mask = FLOW_FRAGMENT_MASK;
	packet.fragment = FLOW_FRAGMENT_NO;
	packet.details.length_bits = RULE_PORT_BITS;                   /* all: lengths are compared as ports are */
	/* The header is 20 bytes longer, but a full packet of Ethernet has this length in both families. */
	packet.length = flow->family == FLOW_IPV6 ? MIN(length + 20, FULL_BYTES) : length;
	add_flow(guard, &packet, what, address);
}

/* The usual lengths of messages, as add_packet() takes them. Discovery: without and with an address of the link. */
static const __u16 discovery_bytes[] = { 44, 52, 0 }, advertisement_bytes[] = { 36, 44, 76, 84, 100, 108, 0 },
		   lease_bytes[] = { 108, 116, 136, 180, 0 }, name_bytes[] = { 80, 120, 200, 0 },
		   tunnel_bytes[] = { 112, FULL_BYTES, 0 };

/* Messages of any length, and those of each usual one. `lengths` ends with 0. */
static void add_messages(struct guard *guard, const struct rule *flow, const __u16 *lengths, const char *what,
			 const struct host_address *address)
{
	add_flow(guard, flow, what, address);
	for (; *lengths; lengths++)
		add_packet(guard, flow, *lengths, what, address);
}

/* ---- neighbour discovery (RFC 4861); IPv4 uses ARP, which no rule can match ---- */

static struct rule discovery_flow(const struct host_address *src, const struct host_address *dst, __u8 type)
{
	struct rule flow = flow_of(src, dst);

	flow.fields = RULE_PROTO | RULE_SPORT | RULE_DPORT;
	flow.proto = IPPROTO_ICMPV6;
	flow.port_kind = FLOW_ICMP;
	flow.sport = htons(type);
	return flow;
}

/*
 * A neighbour first asks the multicast group for the owner of the address (RFC 4291 section 2.7.1), and later the address
 * itself, to check that it is still there.
 */
static void guard_solicitations(struct guard *guard, const struct host_address *neighbour, const char *what,
				const struct host_address *src, unsigned int src_len, const struct host_address *own)
{
	struct host_address group = { FLOW_IPV6, .bytes.byte = { 0xff, 0x02, [11] = 1, [12] = 0xff } };
	const struct host_address *const asked[] = { &group, own };

	memcpy(&group.bytes.byte[13], &own->bytes.byte[13], 3);
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		struct rule flow = discovery_flow(src, asked[i], ND_NEIGHBOR_SOLICIT);

		flow.src_len = src_len;
		add_messages(guard, &flow, discovery_bytes, what, neighbour);
	}
}

/*
 * This host finds the neighbour by the neighbour's answers. The neighbour finds this host by its own questions, which
 * it asks from the address that it sends from, or from any link-local address.
 */
static void guard_discovery(struct guard *guard, const struct host_address *neighbour, const char *name,
			    const struct host_address *own)
{
	const struct rule answer = discovery_flow(neighbour, own, ND_NEIGHBOR_ADVERT);
	char what[64];

	snprintf(what, sizeof(what), "neighbour advertisements of %s", name);
	add_messages(guard, &answer, discovery_bytes, what, neighbour);
	snprintf(what, sizeof(what), "neighbour solicitations of %s", name);
	guard_solicitations(guard, neighbour, what, neighbour, 128, own);
	if (!host_is_link_local(neighbour))
		guard_solicitations(guard, neighbour, what, &link_local, 10, own);
	/* flow_exchange() leaves packets that are sent to a group as they are. */
	snprintf(what, sizeof(what), "neighbour solicitations to %s", name);
	guard_solicitations(guard, neighbour, what, own, 128, neighbour);
}

/* ---- gateways, name servers, connections ---- */

static const struct host_address all_nodes = { FLOW_IPV6, .bytes.byte = { 0xff, 0x02, [15] = 1 } };

/*
 * What an address of this host needs of the neighbours on its link together: no list may have all.
 * Whether it needs something.
 */
static bool guard_link(struct guard *guard, const struct host_address *own)
{
	const struct host_address link = { FLOW_IPV6, .bytes = rule_network(&own->bytes, own->length) };
	static const char what[] = "neighbour discovery on the link of";
	struct rule flow = discovery_flow(&link, own, ND_NEIGHBOR_ADVERT);

	if (own->family != FLOW_IPV6 || own->length == 128)
		return false;
	flow.src_len = own->length;
	add_messages(guard, &flow, discovery_bytes, what, own);
	guard_solicitations(guard, own, what, &link, own->length, own);
	if (!host_is_link_local(own))
		return true;
	flow = discovery_flow(&link, &all_nodes, ND_ROUTER_ADVERT);
	flow.src_len = own->length;
	add_messages(guard, &flow, advertisement_bytes, "router advertisements on the link of", own);
	flow = ports_flow(&link, own, IPPROTO_UDP, htons(547), htons(546));
	flow.src_len = own->length;
	add_messages(guard, &flow, lease_bytes, "DHCPv6 on the link of", own);
	return true;
}

static void guard_gateway(struct guard *guard, const struct host_address *gateway, const struct host_address *own)
{
	const char *name = gateway->is_default ? "the default gateway" : "the gateway";
	struct rule flow = flow_of(gateway, own);
	char what[64];

	add_flow(guard, &flow, name, gateway);
	/* Without these advertisements the route through the gateway ends. */
	if (!own && gateway->is_advertised) {
		flow = discovery_flow(gateway, &all_nodes, ND_ROUTER_ADVERT);
		snprintf(what, sizeof(what), "router advertisements of %s", name);
		add_messages(guard, &flow, advertisement_bytes, what, gateway);
	}
	if (own && gateway->family == FLOW_IPV6)
		guard_discovery(guard, gateway, name, own);
}

static void guard_name_server(struct guard *guard, const struct host_address *server, const struct host_address *own)
{
	static const char what[] = "answers of the name server";
	const struct rule tcp = ports_flow(server, own, IPPROTO_TCP, htons(53), 0);
	const struct rule udp = ports_flow(server, own, IPPROTO_UDP, htons(53), 0);

	add_flow(guard, &tcp, what, server);
	add_messages(guard, &udp, name_bytes, what, server);
}

static void guard_tunnel(struct guard *guard, const struct host_address *end, const struct host_address *own)
{
	const struct rule flow = ports_flow(end, own, end->proto, 0, end->port);

	add_messages(guard, &flow, tunnel_bytes, "the other end of the tunnel,", end);
}

/* `format`: with %s for the error, if there is one. */
static void miss(struct guard *guard, int error, const char *format)
{
	if (*guard->missing.text)
		text_append(guard->missing.text, REASON_BYTES, "; ");
	text_append(guard->missing.text, REASON_BYTES, format, strerror(-error));
}

/* The addresses of this host that are paired with the peer: of its family, first those on its link. How many. */
static size_t pair(const struct host_addresses *own, const struct host_address *peer,
		   const struct host_address *paired[ADDRESSES_PAIRED_MAX])
{
	size_t count = 0;

	for (int is_far = 0; is_far < 2; is_far++)
		for (size_t i = 0; i < own->count; i++) {
			const struct host_address *address = &own->address[i];
			const union flow_addr link = rule_network(&address->bytes, address->length);

			if (address->family != peer->family ||
			    is_far == rule_is_network_of(&link, address->length, &peer->bytes))
				continue;
			if (count < ADDRESSES_PAIRED_MAX)
				paired[count++] = address;
		}
	return count;
}

/* For each peer, calls `add` without an own address, and with each own address of the same family. */
static void guard_peers(struct guard *guard, const struct host_addresses *peers, const struct host_addresses *own,
			void (*add)(struct guard *guard, const struct host_address *peer,
				    const struct host_address *own))
{
	for (size_t i = 0; i < peers->count; i++) {
		const struct host_address *peer = &peers->address[i], *paired[ADDRESSES_PAIRED_MAX];
		const size_t count = pair(own, peer, paired);

		add(guard, peer, NULL);
		for (size_t k = 0; k < count; k++)
			add(guard, peer, paired[k]);
	}
}

/*
 * A TCP connection: as a whole, the packets that begin it, those without data, and those with little and much data. Sent
 * packets are looked up as those of the peer, so these are packets of both ends. Rules may compare flags, fragments and
 * lengths; the lengths here are those of Linux.
 */
static void guard_connection(struct guard *guard, const struct rule *whole, const char *what,
			     const struct host_address *peer)
{
	static const struct {
		__u8 flags;
		__u16 length;
	} packets[] = { { FLOW_TCP_SYN, 60 },
			{ FLOW_TCP_SYN | FLOW_TCP_ACK, 60 },
			{ FLOW_TCP_ACK, 52 },
			{ FLOW_TCP_PSH | FLOW_TCP_ACK, 88 },
			{ FLOW_TCP_PSH | FLOW_TCP_ACK, 120 },
			{ FLOW_TCP_ACK, 1480 },
			{ FLOW_TCP_ACK, FULL_BYTES },
			{ FLOW_TCP_PSH | FLOW_TCP_ACK, FULL_BYTES } };
	struct rule flow = *whole;

	add_flow(guard, &flow, what, peer);
	flow.details.flags_mask = 0xff;
	for (size_t i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
		flow.flags = packets[i].flags;
		add_packet(guard, &flow, packets[i].length, what, peer);
	}
	/* One lost length of data stalls a connection; a rule about a range of them matches one of these. */
	flow.flags = FLOW_TCP_PSH | FLOW_TCP_ACK;
	for (__u16 length = 192; length < 1408; length += 128)
		add_packet(guard, &flow, length, what, peer);
}

/* The next connection has any of the usual ports at one end: `port`, in the flow. A rule about a range matches one of these. */
static void guard_next(struct guard *guard, const struct rule *flow, __be16 *port, const char *what,
		       const struct host_address *peer)
{
	for (unsigned int next = 34817; next < 65536; next += 4096) {
		*port = htons(next);
		add_flow(guard, flow, what, peer);
	}
}

/* A present connection, and neighbour discovery of a peer on the link. `name`: of the peer. */
static void guard_session(struct guard *guard, const struct host_connection *connection, bool peer_begins,
			  const char *what, const char *name, const struct host_addresses *own)
{
	const struct host_address *paired[ADDRESSES_PAIRED_MAX];
	struct rule flow = ports_flow(&connection->peer, &connection->own, IPPROTO_TCP, connection->peer_port,
				      connection->own_port);
	size_t count;

	flow.fields |= peer_begins ? RULE_NEW : 0;
	guard_connection(guard, &flow, what, &connection->peer);
	if (peer_begins) {
		flow.fields &= ~RULE_SPORT;
		flow.sport = 0;
		add_flow(guard, &flow, what, &connection->peer);
		flow.fields |= RULE_SPORT;
		guard_next(guard, &flow, &flow.sport, what, &connection->peer);
	}
	if (connection->peer.family != FLOW_IPV6 || !connection->is_on_link)
		return;
	count = pair(own, &connection->peer, paired);
	for (size_t i = 0; i < count; i++)
		guard_discovery(guard, &connection->peer, name, paired[i]);
}

/*
 * Servers that this host connects to. With a present connection, adds its packets to any port of this host, because the
 * next connection has another port. Without one (own_port 0), adds the packets of a future connection to any address of
 * this host.
 */
static void guard_servers(struct guard *guard, const struct host_connections *servers, bool is_bgp,
			  const struct host_addresses *own)
{
	for (size_t i = 0; i < servers->count; i++) {
		const struct host_connection *server = &servers->connection[i];
		const char *what = is_bgp ? "the BGP session with" : server->what;
		const char *name = is_bgp ? "the BGP peer" : server->what;
		const struct host_address *paired[ADDRESSES_PAIRED_MAX];
		const size_t ends = server->own_port ? 0 : pair(own, &server->peer, paired);

		for (size_t k = 0; k <= ends; k++) {
			const struct host_address *end = server->own_port ? &server->own : k ? paired[k - 1] : NULL;
			struct rule flow = ports_flow(&server->peer, end, IPPROTO_TCP, server->peer_port, 0);

			(server->own_port ? add_flow : guard_connection)(guard, &flow, what, &server->peer);
			flow.fields |= RULE_DPORT;
			guard_next(guard, &flow, &flow.dport, what, &server->peer);
		}
		if (server->own_port)
			guard_session(guard, server, false, what, name, own);
	}
}

/* The addresses of this host, and whom it talks to. */
struct peers {
	struct host_connection ssh;
	bool has_ssh;
	struct host_addresses own, gateways, tunnels, name_servers;
	struct host_connections bgp, bgp_servers, servers;
};

static void peers_close(struct peers *peers)
{
	free(peers->own.address);
	free(peers->gateways.address);
	free(peers->tunnels.address);
	free(peers->name_servers.address);
	free(peers->bgp.connection);
	free(peers->bgp_servers.connection);
	free(peers->servers.connection);
}

/* A gateway to one peer is as needed as that of the default route, and so is the other end of a tunnel. 0; -ENOMEM. */
static int find_ways(struct peers *peers, bool *is_part)
{
	struct host_connections ssh = { &peers->ssh, peers->has_ssh };
	struct host_connections *const all[] = { &ssh, &peers->bgp, &peers->bgp_servers, &peers->servers };
	/* A tunnel may lead through another one. */
	const struct host_addresses *const far[] = { &peers->name_servers, &peers->tunnels };
	int error = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (size_t k = 0; k < all[i]->count && !error; k++)
			error = host_find_way(&all[i]->connection[k], &peers->own, &peers->gateways, &peers->tunnels,
					      is_part);
	for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++)
		for (size_t k = 0; k < far[i]->count && !error; k++)
			error = host_find_way(&(struct host_connection){ .peer = far[i]->address[k] }, &peers->own,
					      &peers->gateways, &peers->tunnels, is_part);
	return error;
}

/* Notes what the kernel does not tell in guard->missing. 0; -ENOMEM. */
static int find_peers(struct guard *guard, const char *state, struct peers *peers)
{
	const bool is_ipv4 = guard->only && guard->only->family == FLOW_IPV4;
	bool has_more_routes = false, has_more_ways = false;
	int unlisted = host_find_addresses(&peers->own);
	const int unrouted = host_find_gateways(is_ipv4, &peers->gateways, &has_more_routes);

	if (unlisted == -ENOMEM || unrouted == -ENOMEM || host_find_name_servers(&peers->name_servers))
		return -ENOMEM;
	if (unlisted || unrouted)
		miss(guard, unlisted ? unlisted : unrouted,
		     "the kernel does not list all addresses and routes of this host (%s), so changes may "
		     "block packets to it, and its gateways");
	unlisted = host_find_bgp(&peers->bgp, &peers->bgp_servers);
	if (unlisted == -ENOMEM)
		return unlisted;
	if (unlisted)
		miss(guard, unlisted,
		     "the kernel does not list TCP connections (%s), so changes may block BGP sessions, and brokers "
		     "that the configuration names by name; load its modules tcp_diag and inet_diag");
	if (has_more_routes)
		miss(guard, 0,
		     "this host has too many routes or gateways, so changes may block gateways of default routes that it "
		     "does not use now");
	if (host_find_servers(state, &peers->servers))
		return -ENOMEM;
	peers->has_ssh = host_find_ssh(&peers->ssh);
	if (find_ways(peers, &has_more_ways))
		return -ENOMEM;
	if (has_more_ways)
		miss(guard, 0,
		     "this host has too many ways to its peers, or the kernel does not tell them, so changes "
		     "may block gateways and other ends of tunnels");
	return 0;
}

static void guard_own(struct guard *guard, const struct host_addresses *own)
{
	size_t of_family[FLOW_FAMILIES] = {};

	for (size_t i = 0, links = 0; i < own->count && links < ADDRESSES_PAIRED_MAX; i++)
		links += guard_link(guard, &own->address[i]);
	for (size_t i = 0; i < own->count; i++) {
		const struct host_address *address = &own->address[i];
		struct rule from = flow_of(address, &multicast[address->family]);
		struct rule to = flow_of(NULL, address);

		if (of_family[address->family]++ == ADDRESSES_PAIRED_MAX)
			miss(guard, 0,
			     "this host has many addresses, so rules for the dst of one may block its gateways, name "
			     "servers and neighbours");
		to.fields = RULE_NEW;
		from.dst_len = multicast_len[address->family];
		add_flow(guard, &to, "packets to this host's address", address);
		add_flow(guard, &from, "packets from this host's address", address);
	}
}

int guard_open_for(const struct rule *only, struct guard *guard, const char *state, struct reason *reason)
{
	CLOSED_BY(peers_close) struct peers peers = {};
	const struct host_addresses *own = &peers.own;

	*guard = (struct guard){ .only = only };
	guard->error = find_peers(guard, state, &peers);
	/* First those that an operator would miss soonest. */
	if (peers.has_ssh)
		guard_session(guard, &peers.ssh, true, "this SSH session, from", "the SSH peer", own);
	guard_peers(guard, &peers.tunnels, own, guard_tunnel);
	guard_peers(guard, &peers.gateways, own, guard_gateway);
	guard_peers(guard, &peers.name_servers, own, guard_name_server);
	for (size_t i = 0; i < peers.bgp.count; i++)
		guard_session(guard, &peers.bgp.connection[i], true, "the BGP session with", "the BGP peer", own);
	guard_servers(guard, &peers.bgp_servers, true, own);
	guard_servers(guard, &peers.servers, false, own);
	guard_own(guard, own);
	if (!guard->error)
		return 0;
	guard_close(guard);
	return reason_set(reason, -ENOMEM, "no memory for the flows that must not be blocked");
}

int guard_open(struct guard *guard, const char *state, struct reason *reason)
{
	return guard_open_for(NULL, guard, state, reason);
}

void guard_close(struct guard *guard)
{
	free(guard->flows);
	*guard = (struct guard){};
}

bool guard_concerns(const struct guard *guard, const struct rule *rule)
{
	for (size_t i = 0; i < guard->count; i++)
		if (rule_covers(rule, &guard->flows[i].flow))
			return true;
	return false;
}
