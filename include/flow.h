/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A flow: the fields of a packet (struct flow), and the same fields packed into words for the hash (struct
 * flow_key). The BPF program and the tool both compile this file, so that both hash the same words.
 */
#ifndef XDP_CUCKOO_FLOW_H
#define XDP_CUCKOO_FLOW_H

#include <linux/types.h>

#include <bpf/bpf_endian.h>

#define FLOW_INLINE static inline __attribute__((always_inline))

enum flow_family {
	FLOW_IPV4,
	FLOW_IPV6,
	FLOW_FAMILIES,
	FLOW_NO_FAMILY = FLOW_FAMILIES, /* the parser did not get to any addresses */
};

/*
 * What the two port fields hold. A key with a port also has the kind of the port. So `dport 0` matches neither a later
 * fragment nor a ping, and a rule with a port never matches an ICMP code.
 */
enum flow_port_kind {
	FLOW_NO_PORTS, /* a protocol without ports, a later fragment, or the parser did not get there */
	FLOW_PORTS,    /* TCP, UDP, UDP-Lite, SCTP, DCCP */
	FLOW_ICMP,     /* ICMP and ICMPv6: sport is the type, dport the code */
};

#define FLOW_PORT_KIND_MASK 0x3

union flow_addr {
	__be32 v4;
	__u8 byte[16];
	__u64 word[2]; /* the 16 bytes in memory order */
};

struct flow {
	union flow_addr src, dst;
	__be16 sport, dport;
	__u8 proto;
	__u8 family;     /* enum flow_family */
	__u8 port_kind;  /* enum flow_port_kind */
	__u8 fragment;   /* FLOW_FRAGMENT_...; 0: the parser did not get there */
	__u16 tcp_flags; /* FLOW_TCP_READ and the flags; 0: no TCP, or the parser did not get there */
	__u16 length;    /* of the packet, by IP; 65535 also if it is longer */
};

/* The upper bit is set in every fragment. A rule may compare only that bit. */
#define FLOW_FRAGMENT_NO 1 /* the packet is whole */
#define FLOW_FRAGMENT_ANY 2
#define FLOW_FRAGMENT_FIRST 2
#define FLOW_FRAGMENT_LATER 3
#define FLOW_FRAGMENT_MASK 3

/* Flags of a TCP header: byte 13. */
#define FLOW_TCP_SYN 0x02
#define FLOW_TCP_PSH 0x08
#define FLOW_TCP_ACK 0x10
#define FLOW_TCP_READ 0x100

/*
 * The words of a key: the addresses, then one word for the rest. IPv4: word[0] = src | dst << 32. IPv6: word[0..1] =
 * src, word[2..3] = dst. The last word: bits 0-15 sport, 16-31 dport (wire order), 32-39 protocol, 40-41 port kind,
 * from bit 42 on the id of the shape. In a flow the id is 0.
 *
 * Keys of few shapes have one more word, the details: bits 0-8 TCP flags and FLOW_TCP_READ, 9-10 fragment, 16-31
 * length. Its upper half says how the shape compares details. In a flow all bits of that half are set, so after the
 * mask of the shape only the shape's own bits are left. The id has FLOW_KEY_HAS_DETAILS if the key has this word.
 */
#define FLOW_KEY_WORDS_IPV4 2
#define FLOW_KEY_WORDS_IPV6 5
#define FLOW_KEY_DETAILS FLOW_KEY_WORDS_IPV6 /* the index of the details, in both families */
#define FLOW_KEY_WORDS_MAX (FLOW_KEY_DETAILS + 1)
#define FLOW_KEY_FRAGMENT_SHIFT 9
#define FLOW_KEY_LENGTH_SHIFT 16
#define FLOW_KEY_HAS_DETAILS_SHIFT 63
#define FLOW_KEY_HAS_DETAILS (1ULL << FLOW_KEY_HAS_DETAILS_SHIFT)
#define FLOW_KEY_PROTO_SHIFT 32
#define FLOW_KEY_KIND_SHIFT 40
#define FLOW_KEY_SHAPE_SHIFT 42

struct flow_key {
	__u64 word[FLOW_KEY_WORDS_MAX];
};

/* The index of the last word, which has ports, protocol and the shape's id. */
FLOW_INLINE unsigned int flow_key_last(enum flow_family family)
{
	return (family == FLOW_IPV4 ? FLOW_KEY_WORDS_IPV4 : FLOW_KEY_WORDS_IPV6) - 1;
}

/* Writes the words of `flow`, including the details; other words stay. `flow` must have a family. */
FLOW_INLINE void flow_pack(const struct flow *flow, struct flow_key *key)
{
	__u64 rest = (__u64)flow->sport | (__u64)flow->dport << 16 | (__u64)flow->proto << FLOW_KEY_PROTO_SHIFT |
		     (__u64)flow->port_kind << FLOW_KEY_KIND_SHIFT;

	key->word[FLOW_KEY_DETAILS] = ~0ULL << 32 | (__u32)flow->length << FLOW_KEY_LENGTH_SHIFT |
				      flow->fragment << FLOW_KEY_FRAGMENT_SHIFT | flow->tcp_flags;
	if (flow->family == FLOW_IPV4) {
		key->word[0] = (__u64)flow->src.v4 | (__u64)flow->dst.v4 << 32;
		key->word[1] = rest;
		return;
	}
	key->word[0] = flow->src.word[0];
	key->word[1] = flow->src.word[1];
	key->word[2] = flow->dst.word[0];
	key->word[3] = flow->dst.word[1];
	key->word[4] = rest;
}

/* Types of ICMP requests. The UAPI headers do not have all of these names. */
#define FLOW_ICMP_ECHO 8
#define FLOW_ICMP_SOLICITATION 10
#define FLOW_ICMP_TIMESTAMP 13
#define FLOW_ICMP_INFORMATION 15
#define FLOW_ICMP_ADDRESS_MASK 17
#define FLOW_ICMP_EXTENDED_ECHO 42
#define FLOW_ICMPV6_ECHO 128
#define FLOW_ICMPV6_MULTICAST_QUERY 130
#define FLOW_ICMPV6_NODE_QUERY 139
#define FLOW_ICMPV6_EXTENDED_ECHO 160

/*
 * Whether a packet itself says that it begins nothing: for rules with `state new`. TCP: every packet but a SYN without
 * ACK. ICMP: every message but a request. (Before an answer can arrive, neighbours solicit each other by ICMPv6. So
 * these solicitations are no requests here.) If the packet is cut before the TCP flags, it counts as one that begins
 * something, because a sender can cut it on purpose. `icmp_type`: a number, with FLOW_ICMP only.
 */
FLOW_INLINE int flow_continues(enum flow_family family, enum flow_port_kind kind, __u32 icmp_type, __u32 tcp_flags)
{
	if (kind != FLOW_ICMP)
		return tcp_flags & FLOW_TCP_READ && (tcp_flags & (FLOW_TCP_SYN | FLOW_TCP_ACK)) != FLOW_TCP_SYN;
	if (family == FLOW_IPV4)
		return icmp_type != FLOW_ICMP_ECHO && icmp_type != FLOW_ICMP_SOLICITATION &&
		       icmp_type != FLOW_ICMP_TIMESTAMP && icmp_type != FLOW_ICMP_INFORMATION &&
		       icmp_type != FLOW_ICMP_ADDRESS_MASK && icmp_type != FLOW_ICMP_EXTENDED_ECHO;
	return icmp_type != FLOW_ICMPV6_ECHO && icmp_type != FLOW_ICMPV6_MULTICAST_QUERY &&
	       icmp_type != FLOW_ICMPV6_NODE_QUERY && icmp_type != FLOW_ICMPV6_EXTENDED_ECHO;
}

/* Whether UDP with these ports goes from a DHCP server to its client, which has asked for it (RFC 2131, RFC 8415). */
FLOW_INLINE int flow_is_lease(enum flow_family family, __be16 sport, __be16 dport)
{
	return family == FLOW_IPV4 ? sport == bpf_htons(67) && dport == bpf_htons(68) :
				     sport == bpf_htons(547) && dport == bpf_htons(546);
}

/*
 * The ICMP type of the answers to `type`, or of the requests that `type` answers; any other type stays. Most requests
 * and answers have successive types. The constants have a bit for the lower one.
 */
#define FLOW_ICMP_FIRST_IPV4 (1ULL << 9 | 1ULL << 13 | 1ULL << 15 | 1ULL << 17 | 1ULL << FLOW_ICMP_EXTENDED_ECHO)
#define FLOW_ICMP_FIRST_IPV6 (1ULL << 0 | 1ULL << 5 | 1ULL << 7 | 1ULL << 11 | 1ULL << 32) /* from 128 on */

FLOW_INLINE __u32 flow_icmp_counterpart(enum flow_family family, __u32 type)
{
	const __u64 first = family == FLOW_IPV4 ? FLOW_ICMP_FIRST_IPV4 : FLOW_ICMP_FIRST_IPV6;
	const __u32 at = family == FLOW_IPV4 ? type : type - FLOW_ICMPV6_ECHO;

	if (family == FLOW_IPV4 && (type == 0 || type == FLOW_ICMP_ECHO))
		return type ^ FLOW_ICMP_ECHO;
	if (at > 62)
		return type;
	return first >> at & 1 ? type + 1 : first << 1 >> at & 1 ? type - 1 : type;
}

/*
 * Rules describe incoming packets, so this exchanges source and destination in the key of a sent packet. A packet to a
 * multicast or broadcast address stays as it is, because no packet comes from there. Returns 0 if no rule is meant for
 * the packet: it goes to such an address from a host without an address, which asks for one by DHCP or asks whether one
 * is free.
 */
FLOW_INLINE int flow_exchange(enum flow_family family, struct flow_key *key)
{
	__u64 *word = key->word, *last = &word[flow_key_last(family)];
	const __u64 kind = *last >> FLOW_KEY_KIND_SHIFT & FLOW_PORT_KIND_MASK, src = word[0], src_rest = word[1];

	if (family == FLOW_IPV4) {
		const __be32 dst = src >> 32;

		if ((bpf_ntohl(dst) & 0xf0000000) == 0xe0000000 || dst == 0xffffffff)
			return (__u32)src != 0;
		word[0] = src << 32 | dst;
	} else {
		if (*(const __u8 *)&word[2] == 0xff)
			return src || src_rest;
		word[0] = word[2];
		word[1] = word[3];
		word[2] = src;
		word[3] = src_rest;
	}
	if (kind == FLOW_PORTS)
		*last = *last >> 32 << 32 | (__u32)*last >> 16 | (__u32)*last << 16;
	else if (kind == FLOW_ICMP)
		*last = *last >> 16 << 16 | bpf_htons(flow_icmp_counterpart(family, bpf_ntohs(*last)));
	return 1;
}

#endif
