/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a packet says (struct flow), and the fixed words it is hashed as (struct flow_key).
 * Compiled by the BPF program and by the tool, so that both hash the same words. Knows neither
 * packets nor rules nor maps.
 */
#ifndef XDP_CUCKOO_FLOW_H
#define XDP_CUCKOO_FLOW_H

#include <linux/types.h>

#define FLOW_INLINE static inline __attribute__((always_inline))

enum flow_family {
	FLOW_IPV4,
	FLOW_IPV6,
	FLOW_FAMILIES,
	FLOW_NO_FAMILY = FLOW_FAMILIES, /* no addresses were reached */
};

/*
 * What the two port fields hold. It is part of the key wherever a port is, so `dport 0` matches
 * neither a later fragment nor a ping, and a rule for a port never matches an ICMP code.
 */
enum flow_port_kind {
	FLOW_NO_PORTS, /* protocol without ports, later fragment, or not reached */
	FLOW_PORTS,    /* TCP, UDP, UDP-Lite, SCTP, DCCP */
	FLOW_ICMP,     /* ICMP and ICMPv6: sport holds the type, dport the code */
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
	__u8 family;    /* enum flow_family */
	__u8 port_kind; /* enum flow_port_kind */
};

/*
 * Key words: the addresses, then one word of the rest. IPv4: word[0] = src | dst << 32; IPv6: word[0..1]
 * = src, word[2..3] = dst. The last word of both: bits 0-15 sport, 16-31 dport (wire order), 32-39
 * protocol, 40-41 port kind, and from bit 42 the tag of the shape (zero in a flow).
 */
#define FLOW_KEY_WORDS_IPV4 2
#define FLOW_KEY_WORDS_IPV6 5
#define FLOW_KEY_WORDS_MAX FLOW_KEY_WORDS_IPV6
#define FLOW_KEY_PROTO_SHIFT 32
#define FLOW_KEY_TAG_SHIFT 42

struct flow_key {
	__u64 word[FLOW_KEY_WORDS_MAX];
};

/* Where the last word is, which holds ports, protocol and tag. */
FLOW_INLINE unsigned int flow_key_last(enum flow_family family)
{
	return (family == FLOW_IPV4 ? FLOW_KEY_WORDS_IPV4 : FLOW_KEY_WORDS_IPV6) - 1;
}

/* Writes the words of `flow`, which must have a family; those behind the last stay as they are. */
FLOW_INLINE void flow_pack(const struct flow *flow, struct flow_key *key)
{
	__u64 rest = (__u64)flow->sport | (__u64)flow->dport << 16 | (__u64)flow->proto << FLOW_KEY_PROTO_SHIFT |
		     (__u64)flow->port_kind << 40;

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

#endif
