/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A rule with `state new` matches only packets that begin something, for example a connection. This file decides which
 * packets do. The filter keeps no state of its own.
 *
 * TCP: a SYN without ACK. ICMP: requests. UDP: every datagram, unless a socket waits for it, or connection
 * tracking knows its flow, or it has the ports of DHCP answers: no look-up finds how DHCP clients wait. Later
 * fragments never begin anything; packets of other protocols always do. If a packet is cut before its TCP flags,
 * it begins something too, because a sender can cut it on purpose.
 *
 * new_only_continues() needs only the packet. new_only_is_answer() asks the kernel, which takes longer. So it is called
 * only for a datagram that a rule would match.
 */
#ifndef XDP_CUCKOO_NEW_ONLY_H
#define XDP_CUCKOO_NEW_ONLY_H

#include "abi.h"
#include "lookup_key.h"
#include "maps.h"
#include "packet.h"

/* Whether the packet itself says that it begins nothing. `result` is what the parser returned. */
static __always_inline int new_only_continues(enum flow_family family, const struct flow_key *flow,
					      enum abi_outcome result)
{
	const __u64 last = flow->word[flow_key_last(family)];

	return result == OUTCOME_LATER_FRAGMENT ||
	       flow_continues(family, last >> FLOW_KEY_KIND_SHIFT & FLOW_PORT_KIND_MASK, bpf_ntohs(last),
			      flow->word[FLOW_KEY_DETAILS]);
}

static __always_inline int new_only_is_datagram(__u64 last)
{
	return (last & (0xffULL << FLOW_KEY_PROTO_SHIFT | (__u64)FLOW_PORT_KIND_MASK << FLOW_KEY_KIND_SHIFT)) ==
	       ((__u64)IPPROTO_UDP << FLOW_KEY_PROTO_SHIFT | (__u64)FLOW_PORTS << FLOW_KEY_KIND_SHIFT);
}

/* Whether the packet alone says that it begins something: then no socket needs to be asked. */
static __always_inline int new_only_surely_begins(enum flow_family family, const struct flow_key *flow,
						  enum abi_outcome result)
{
	return !new_only_is_datagram(flow->word[flow_key_last(family)]) && !new_only_continues(family, flow, result);
}

/*
 * Whether a socket of this host waits for the datagram: a socket that is connected to the sender, or an unconnected one at
 * a port that Linux chooses for clients. An unconnected socket at any other port belongs to a server. Sockets are looked up
 * in the network namespace of the interface.
 */
static __always_inline int new_only_socket_waits(packet_context *ctx, struct bpf_sock_tuple *tuple, __u32 bytes,
						 __u32 port)
{
	const struct abi_config *config = maps_config();
	struct bpf_sock *socket = bpf_sk_lookup_udp(ctx, tuple, bytes, BPF_F_CURRENT_NETNS, 0);
	int is_connected;

	if (!socket)
		return 0;
	is_connected = socket->dst_port != 0;
	bpf_sk_release(socket);
	return is_connected || (config && port >= config->ephemeral_first && port <= config->ephemeral_last);
}

#ifdef ASKS_CONNTRACK
/* libbpf compares these declarations with those of the kernel, by kind and name only. So the structs may be short. */
struct nf_conn {
	__u32 mark;
};
struct bpf_ct_opts {
	__s32 netns_id, error;
	__u8 l4proto, dir, reserved[2];
};

#ifdef AT_TC
#define packet_find_connection bpf_skb_ct_lookup
#else
#define packet_find_connection bpf_xdp_ct_lookup
#endif
extern struct nf_conn *packet_find_connection(packet_context *ctx, struct bpf_sock_tuple *tuple, __u32 tuple_bytes,
					      struct bpf_ct_opts *opts, __u32 opts_bytes) __ksym;
extern void bpf_ct_release(struct nf_conn *connection) __ksym;

static __always_inline int new_only_is_tracked(packet_context *ctx, struct bpf_sock_tuple *tuple, __u32 bytes)
{
	struct bpf_ct_opts opts = { .netns_id = BPF_F_CURRENT_NETNS, .l4proto = IPPROTO_UDP };
	struct nf_conn *connection = packet_find_connection(ctx, tuple, bytes, &opts, sizeof(opts));

	if (!connection)
		return 0;
	bpf_ct_release(connection);
	return 1;
}
#else
#define new_only_is_tracked(ctx, tuple, bytes) 0
#endif

/* Whether somebody waits for the datagram whose key has these words. */
RARE_FUNCTION int new_only_is_answer_ipv4(packet_context *ctx, __u64 addresses, __u64 last)
{
	struct bpf_sock_tuple tuple = {
		.ipv4 = { .saddr = addresses, .daddr = addresses >> 32, .sport = last, .dport = last >> 16 },
	};

	return flow_is_lease(FLOW_IPV4, tuple.ipv4.sport, tuple.ipv4.dport) ||
	       new_only_socket_waits(ctx, &tuple, sizeof(tuple.ipv4), bpf_ntohs(tuple.ipv4.dport)) ||
	       new_only_is_tracked(ctx, &tuple, sizeof(tuple.ipv4));
}

RARE_FUNCTION int new_only_is_answer_ipv6(packet_context *ctx, const struct flow_key *key)
{
	struct bpf_sock_tuple tuple = {};
	const __u64 last = key ? key->word[FLOW_KEY_WORDS_IPV6 - 1] : 0;

	if (!key)
		return 0;
	__builtin_memcpy(tuple.ipv6.saddr, &key->word[0], 16);
	__builtin_memcpy(tuple.ipv6.daddr, &key->word[2], 16);
	tuple.ipv6.sport = last;
	tuple.ipv6.dport = last >> 16;
	return flow_is_lease(FLOW_IPV6, tuple.ipv6.sport, tuple.ipv6.dport) ||
	       new_only_socket_waits(ctx, &tuple, sizeof(tuple.ipv6), bpf_ntohs(tuple.ipv6.dport)) ||
	       new_only_is_tracked(ctx, &tuple, sizeof(tuple.ipv6));
}

static __always_inline int new_only_is_answer(packet_context *ctx, enum flow_family family, const struct flow_key *key)
{
	const __u64 last = key->word[flow_key_last(family)];

	if (!new_only_is_datagram(last))
		return 0;
	return family == FLOW_IPV4 ? new_only_is_answer_ipv4(ctx, key->word[0], last) :
				     new_only_is_answer_ipv6(ctx, key);
}

#endif
