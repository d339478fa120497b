/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parses a frame into a flow. Uses no maps and no BPF helpers, so that the same code also runs in the tool, in unit
 * tests and under a fuzzer.
 */
#ifndef XDP_CUCKOO_PARSE_PACKET_H
#define XDP_CUCKOO_PARSE_PACKET_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include <bpf/bpf_endian.h>

#include "abi.h"
#include "flow.h"
#include "verifier.h"

#define PARSE_VLAN_TAGS 64
#define PARSE_EXTENSION_HEADERS 182 /* the most that fit into 1500 bytes */
/* A program reads so many directly, and calls parse_buffers() for a frame that has more. Few frames have any. */
#ifdef __bpf__
#define PARSE_VLAN_TAGS_DIRECT 4
#define PARSE_EXTENSION_HEADERS_DIRECT 4
#else
#define PARSE_VLAN_TAGS_DIRECT PARSE_VLAN_TAGS
#define PARSE_EXTENSION_HEADERS_DIRECT PARSE_EXTENSION_HEADERS
#endif
#define PARSE_IPV4_OFFSET_MASK 0x1fff
#define PARSE_IPV4_MORE_FRAGMENTS 0x2000
#define PARSE_IPV6_OFFSET_MASK 0xfff8
#define PARSE_IPV6_MORE_FRAGMENTS 0x0001
#define PARSE_OFFSET_MASK 0x7fff /* headers that end after this offset are not read */
#define PARSE_NO_LIMIT 0xffffffff
#define PARSE_LENGTH_MAX 0xffff

/* The protocols that PPP carries: linux/ppp_defs.h. */
#define PARSE_PPP_IP 0x21
#define PARSE_PPP_IPV6 0x57

/* The UAPI headers do not have these names. */
#define PARSE_PROTO_MOBILITY 135
#define PARSE_PROTO_HIP 139
#define PARSE_PROTO_SHIM6 140

/* The values are those of the outcomes of a packet that no rule matches. */
enum parse_result {
	PARSE_OK = OUTCOME_NO_RULE,
	PARSE_LATER_FRAGMENT = OUTCOME_LATER_FRAGMENT,
	PARSE_NOT_IP = OUTCOME_NOT_IP,
	PARSE_TRUNCATED = OUTCOME_TRUNCATED,
	PARSE_MALFORMED = OUTCOME_MALFORMED,
	PARSE_TOO_MANY_HEADERS = OUTCOME_TOO_MANY_HEADERS,
};

/* Copies bytes of a frame in several buffers. Returns not 0 if the frame ends before. */
typedef long parse_load(void *frame, __u32 offset, void *to, __u32 bytes);

/* A program's loop: calls parse_turn() until the walk is over, at most PARSE_EXTENSION_HEADERS times. */
struct parse_walk;
typedef void parse_walk_all(struct parse_walk *walk);

/*
 * Where the next header starts. `limit` is where the packet ends according to the length field of IP, so that
 * the padding of a short Ethernet frame is not read as ports. A frame in several buffers has `load` instead
 * of `data`.
 */
struct parse_cursor {
	const void *data, *end; /* the frame */
	__u32 offset, limit;    /* in bytes from the start of the frame */
	__u32 more_fragments;   /* not 0: this is the first fragment of an IPv6 packet */
	parse_load *load;       /* a constant at every call: if it is NULL, compilers remove the code that calls it */
	parse_walk_all *walk;   /* a constant, too */
	void *frame;
	__u32 frame_bytes;
	void *header; /* what `load` copied last: PARSE_HEADER_BYTES */
};

#define PARSE_HEADER_BYTES sizeof(struct ipv6hdr) /* the longest header that is read at once */

/* Whether the frame has `bytes` more bytes. */
FLOW_INLINE int parse_reaches(const struct parse_cursor *at, __u32 bytes)
{
	if (at->load)
		return at->offset + bytes <= at->frame_bytes;
	return at->data + at->offset + bytes <= at->end;
}

/* The next `bytes` bytes, valid until the next call; NULL if the frame ends before. */
FLOW_INLINE const void *parse_peek(const struct parse_cursor *at, __u32 bytes)
{
	const void *pos = at->data + at->offset;

	if (at->load)
		return at->load(at->frame, at->offset, at->header, bytes) ? 0 : at->header;
	hide_from_compiler(pos);
	return pos + bytes > at->end ? 0 : pos;
}

FLOW_INLINE __u32 parse_frame_bytes(const struct parse_cursor *at)
{
	return at->load ? at->frame_bytes : at->end - at->data;
}

/* Skips `bytes` bytes of the frame. 0 if the next header is too far away to be read. */
FLOW_INLINE int parse_skip(struct parse_cursor *at, __u32 bytes)
{
	const __u32 offset = hide_behind(parse_frame_bytes(at), at->offset + bytes);

	at->offset = offset & PARSE_OFFSET_MASK;
	return offset <= PARSE_OFFSET_MASK;
}

/* Whether the packet has `bytes` more bytes according to the length field of IP. */
FLOW_INLINE int parse_has(const struct parse_cursor *at, __u32 bytes)
{
	return at->offset + bytes <= at->limit;
}

/*
 * Behind a PPP protocol of one byte, headers begin at odd addresses. The processors of BPF programs allow that; C for the
 * host does not, unless the type says so.
 */
#ifdef __bpf__
#define PARSE_ANYWHERE
#else
#define PARSE_ANYWHERE __attribute__((aligned(1)))
#endif
typedef struct iphdr parse_ipv4_header PARSE_ANYWHERE;
typedef struct ipv6hdr parse_ipv6_header PARSE_ANYWHERE;
typedef __be16 parse_port PARSE_ANYWHERE;

/* Replaces struct ethhdr, which is packed: clang would read its type byte by byte. */
struct parse_ethernet {
	__u8 destination[6], source[6];
	__be16 ethertype;
};

struct parse_vlan_tag {
	__be16 tci;
	__be16 ethertype;
};

struct parse_pppoe {
	__u8 version_type, code;
	__be16 session, length;
	__u8 protocol[2]; /* of PPP */
};

struct parse_extension {
	__u8 next_header;
	__u8 length;            /* the unit, and what is not counted, depend on the header's type */
	__be16 fragment_offset; /* fragment header only */
};

typedef struct parse_extension parse_extension_header PARSE_ANYWHERE;

#define PARSE_TCP_FLAGS_BYTE 13
#define PARSE_TCP_FIRST_UNITS 16 /* the units of a first fragment that have the flags */

/*
 * Reads the flags of a TCP header. If a whole packet lacks them, they stay 0: Linux drops it. A sender can cut the first
 * fragment before the flags (RFC 3128), and Linux delivers what it joins. Of such a fragment Linux takes whole units of
 * 8 bytes only, so flags in the last unit may be others than those that count.
 */
FLOW_INLINE enum parse_result parse_tcp_flags(const struct parse_cursor *at, struct flow *flow)
{
	const __u8 *header = parse_peek(at, PARSE_TCP_FLAGS_BYTE + 1);
	const __u32 is_first = flow->fragment == FLOW_FRAGMENT_FIRST;

	if (header && parse_has(at, is_first ? PARSE_TCP_FIRST_UNITS : PARSE_TCP_FLAGS_BYTE + 1))
		flow->tcp_flags = FLOW_TCP_READ | header[PARSE_TCP_FLAGS_BYTE];
	else if (is_first)
		return PARSE_TOO_MANY_HEADERS;
	return PARSE_OK;
}

/* TCP, UDP, UDP-Lite, SCTP and DCCP all start with the ports. ICMP starts with type and code. */
FLOW_INLINE enum parse_result parse_transport(const struct parse_cursor *at, struct flow *flow)
{
	switch (flow->proto) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_SCTP:
	case IPPROTO_DCCP: {
		const parse_port *port = parse_peek(at, 2 * sizeof(*port));

		if (!port || !parse_has(at, 2 * sizeof(*port)))
			return PARSE_TRUNCATED;
		flow->sport = port[0];
		flow->dport = port[1];
		flow->port_kind = FLOW_PORTS;
		return flow->proto == IPPROTO_TCP ? parse_tcp_flags(at, flow) : PARSE_OK;
	}
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6: {
		const __u8 *icmp = parse_peek(at, 2);

		if (!icmp || !parse_has(at, 2))
			return PARSE_TRUNCATED;
		flow->sport = bpf_htons(icmp[0]);
		flow->dport = bpf_htons(icmp[1]);
		flow->port_kind = FLOW_ICMP;
		return PARSE_OK;
	}
	default:
		return parse_has(at, 0) ? PARSE_OK : PARSE_TRUNCATED;
	}
}

FLOW_INLINE enum parse_result parse_ipv4(struct parse_cursor *at, struct flow *flow)
{
	const parse_ipv4_header *ip = parse_peek(at, sizeof(*ip));
	__u32 header_bytes, total_bytes;

	if (!ip)
		return PARSE_TRUNCATED;
	header_bytes = ip->ihl * 4;
	total_bytes = bpf_ntohs(ip->tot_len);
	if (ip->version != 4 || header_bytes < sizeof(*ip))
		return PARSE_MALFORMED;
	flow->family = FLOW_IPV4;
	flow->src.v4 = ip->saddr;
	flow->dst.v4 = ip->daddr;
	flow->proto = ip->protocol;
	/* Length 0 means that the frame's end decides: BIG TCP joins segments to more than the field can hold. */
	flow->length = total_bytes ? total_bytes : PARSE_LENGTH_MAX;
	if (total_bytes && total_bytes < header_bytes)
		return PARSE_MALFORMED;
	flow->fragment = FLOW_FRAGMENT_LATER;
	if (!(ip->frag_off & bpf_htons(PARSE_IPV4_OFFSET_MASK)))
		flow->fragment = FLOW_FRAGMENT_NO + (bpf_ntohs(ip->frag_off) / PARSE_IPV4_MORE_FRAGMENTS & 1);
	if (!parse_reaches(at, header_bytes))
		return PARSE_TRUNCATED;
	if (flow->fragment == FLOW_FRAGMENT_LATER)
		return PARSE_LATER_FRAGMENT;
	if (total_bytes)
		at->limit = at->offset + total_bytes;
	at->offset += header_bytes;
	return parse_transport(at, flow);
}

FLOW_INLINE int parse_is_extension(__u8 header)
{
	switch (header) {
	case IPPROTO_HOPOPTS:
	case IPPROTO_ROUTING:
	case IPPROTO_FRAGMENT:
	case IPPROTO_AH:
	case IPPROTO_DSTOPTS:
	case PARSE_PROTO_MOBILITY:
	case PARSE_PROTO_HIP:
	case PARSE_PROTO_SHIM6:
		return 1;
	default:
		return 0;
	}
}

/*
 * Skips one extension header (RFC 8200 section 4; AH: RFC 4302 section 2.2). Before the call, flow->proto is the type
 * of this header; after the call, the type of the next header.
 */
FLOW_INLINE enum parse_result parse_extension(struct parse_cursor *at, struct flow *flow)
{
	const parse_extension_header *header = parse_peek(at, sizeof(*header));
	enum parse_result result = PARSE_OK;
	__u8 type = flow->proto;
	__u32 bytes;

	if (!header)
		return PARSE_TRUNCATED;
	if (type == IPPROTO_FRAGMENT)
		bytes = 8;
	else if (type == IPPROTO_AH)
		bytes = (header->length + 2) * 4;
	else
		bytes = (header->length + 1) * 8;
	if (!parse_reaches(at, bytes))
		return PARSE_TRUNCATED;
	flow->proto = header->next_header;
	if (type == IPPROTO_FRAGMENT) {
		if (parse_has(at, bytes)) /* else the header is padding */
			at->more_fragments |= header->fragment_offset & bpf_htons(PARSE_IPV6_MORE_FRAGMENTS);
		if (header->fragment_offset & bpf_htons(PARSE_IPV6_OFFSET_MASK)) {
			flow->fragment = FLOW_FRAGMENT_LATER;
			result = PARSE_LATER_FRAGMENT;
		}
	}
	return parse_skip(at, bytes) ? result : PARSE_TOO_MANY_HEADERS;
}

/* A fragment header, if there is one, comes before the transport header. So only here it is sure that there is none. */
FLOW_INLINE enum parse_result parse_behind_extensions(const struct parse_cursor *at, struct flow *flow)
{
	flow->fragment = FLOW_FRAGMENT_NO + (bpf_ntohs(at->more_fragments) & PARSE_IPV6_MORE_FRAGMENTS);
	return parse_transport(at, flow);
}

/*
 * What a walk along extension headers has found; `result` is that of the last one. The offset only grows, so one check
 * against IP's length here covers all headers.
 */
FLOW_INLINE enum parse_result parse_walked(const struct parse_cursor *at, struct flow *flow, enum parse_result result)
{
	if (result == PARSE_OK && !parse_is_extension(flow->proto))
		return parse_behind_extensions(at, flow);
	if (result == PARSE_TRUNCATED || !parse_has(at, 0))
		return PARSE_TRUNCATED;
	return result == PARSE_OK ? PARSE_TOO_MANY_HEADERS : result;
}

/* Walks to the transport header. */
FLOW_INLINE enum parse_result parse_extensions(struct parse_cursor *at, struct flow *flow)
{
	enum parse_result result = PARSE_OK;

	KEEP_LOOP
	for (int i = 0; i < PARSE_EXTENSION_HEADERS_DIRECT && result == PARSE_OK; i++) {
		if (!parse_is_extension(flow->proto))
			return parse_behind_extensions(at, flow);
		result = parse_extension(at, flow);
	}
	/* Then parse_buffers() finds the type of the last header, even if IP's length ends before it. */
	if (PARSE_EXTENSION_HEADERS_DIRECT < PARSE_EXTENSION_HEADERS && result == PARSE_OK &&
	    parse_is_extension(flow->proto))
		return PARSE_TOO_MANY_HEADERS;
	return parse_walked(at, flow, result);
}

/* A walk whose turns are a function. A program may not keep functions in memory, so this is not a whole cursor. */
struct parse_walk {
	void *frame, *header;
	struct flow *flow;
	__u32 frame_bytes, offset, limit, more_fragments;
	enum parse_result result;
};

/* Skips one extension header, if there is one. Returns whether the walk is over. `load` is that of the cursor. */
FLOW_INLINE int parse_turn(struct parse_walk *walk, parse_load *load)
{
	struct parse_cursor at = { .load = load,
				   .frame = walk->frame,
				   .frame_bytes = walk->frame_bytes,
				   .header = walk->header,
				   .offset = walk->offset,
				   .limit = walk->limit,
				   .more_fragments = walk->more_fragments };

	if (!parse_is_extension(walk->flow->proto))
		return 1;
	walk->result = parse_extension(&at, walk->flow);
	walk->offset = at.offset;
	walk->more_fragments = at.more_fragments;
	return walk->result != PARSE_OK;
}

/* The same as parse_extensions(), but the loop is at->walk(). */
FLOW_INLINE enum parse_result parse_walk_extensions(struct parse_cursor *at, struct flow *flow)
{
	struct parse_walk walk = { .frame = at->frame,
				   .header = at->header,
				   .flow = flow,
				   .frame_bytes = at->frame_bytes,
				   .offset = at->offset,
				   .limit = at->limit,
				   .more_fragments = at->more_fragments,
				   .result = PARSE_OK };

	at->walk(&walk);
	at->offset = walk.offset;
	at->more_fragments = walk.more_fragments;
	return parse_walked(at, flow, walk.result);
}

FLOW_INLINE enum parse_result parse_ipv6(struct parse_cursor *at, struct flow *flow)
{
	const parse_ipv6_header *ip = parse_peek(at, sizeof(*ip));
	enum parse_result result;

	if (!ip)
		return PARSE_TRUNCATED;
	if (ip->version != 6)
		return PARSE_MALFORMED;
	flow->family = FLOW_IPV6;
	__builtin_memcpy(&flow->src, &ip->saddr, sizeof(flow->src));
	__builtin_memcpy(&flow->dst, &ip->daddr, sizeof(flow->dst));
	flow->proto = ip->nexthdr;
	at->offset += sizeof(*ip);
	/*
	 * Length 0: the frame's end decides where options say so, in a jumbogram (RFC 2675), or for BIG TCP as in IPv4.
	 * Otherwise the packet has no payload.
	 */
	flow->length = ip->nexthdr == IPPROTO_HOPOPTS ? PARSE_LENGTH_MAX : sizeof(*ip);
	if (ip->payload_len) {
		at->limit = at->offset + bpf_ntohs(ip->payload_len);
		flow->length = PARSE_LENGTH_MAX;
		if (bpf_ntohs(ip->payload_len) < PARSE_LENGTH_MAX - sizeof(*ip))
			flow->length = bpf_ntohs(ip->payload_len) + sizeof(*ip);
	}
	at->limit = hide_behind(parse_frame_bytes(at), at->limit);
	at->more_fragments = hide_behind(parse_frame_bytes(at), 0);
	result = at->load ? parse_walk_extensions(at, flow) : parse_extensions(at, flow);
	/*
	 * RFC 7112 forbids a first fragment that lacks some headers. Linux delivers some of these packets all the same,
	 * and no fragment of them has ports. So the result differs from that of a truncated packet.
	 */
	if (result != PARSE_TRUNCATED || !at->more_fragments)
		return result;
	flow->fragment = FLOW_FRAGMENT_FIRST;
	return PARSE_TOO_MANY_HEADERS;
}

FLOW_INLINE int parse_is_tag(__be16 ethertype)
{
	return ethertype == bpf_htons(ETH_P_8021Q) || ethertype == bpf_htons(ETH_P_8021AD);
}

/*
 * Skips a PPPoE session header (RFC 2516) and returns the ethertype of what it carries; 0: no IP. Like Linux, accepts a
 * protocol of one byte (RFC 1661 section 6.5). Ignores the length field: Linux delivers no longer packet.
 */
FLOW_INLINE __be16 parse_pppoe(struct parse_cursor *at, const struct parse_pppoe *pppoe)
{
	const __u8 first = pppoe->protocol[0], second = pppoe->protocol[1];
	const __u8 protocol = first ? first : second;

	parse_skip(at, sizeof(*pppoe) - (first & 1));
	if (protocol == PARSE_PPP_IP)
		return bpf_htons(ETH_P_IP);
	return protocol == PARSE_PPP_IPV6 ? bpf_htons(ETH_P_IPV6) : 0;
}

FLOW_INLINE enum parse_result parse_ethernet(struct parse_cursor *at, struct flow *flow)
{
	const struct parse_ethernet *ethernet = parse_peek(at, sizeof(*ethernet));
	__be16 ethertype;

	*flow = (struct flow){ .family = FLOW_NO_FAMILY };
	if (!ethernet)
		return PARSE_TRUNCATED;
	ethertype = ethernet->ethertype;
	at->offset = sizeof(*ethernet);
	KEEP_LOOP
	/* NOLINTNEXTLINE(bugprone-branch-clone) */
	for (int i = 0; i < (at->load ? PARSE_VLAN_TAGS : PARSE_VLAN_TAGS_DIRECT); i++) {
		const struct parse_vlan_tag *tag;

		if (!parse_is_tag(ethertype))
			break;
		tag = parse_peek(at, sizeof(*tag));
		if (!tag)
			return PARSE_TRUNCATED;
		ethertype = tag->ethertype;
		parse_skip(at, sizeof(*tag));
	}
	if (ethertype == bpf_htons(ETH_P_PPP_SES)) {
		const struct parse_pppoe *pppoe = parse_peek(at, sizeof(*pppoe));

		if (!pppoe)
			return PARSE_TRUNCATED;
		ethertype = parse_pppoe(at, pppoe);
	}
	if (ethertype == bpf_htons(ETH_P_IP))
		return parse_ipv4(at, flow);
	if (ethertype == bpf_htons(ETH_P_IPV6))
		return parse_ipv6(at, flow);
	return parse_is_tag(ethertype) ? PARSE_TOO_MANY_HEADERS : PARSE_NOT_IP;
}

/* Parses any frame. parse_frame() describes the result. */
FLOW_INLINE enum parse_result parse_any(const void *data, const void *end, struct flow *flow)
{
	struct parse_cursor at = { .data = data, .end = end, .limit = PARSE_NO_LIMIT };

	return parse_ethernet(&at, flow);
}

/*
 * The same for a frame of `bytes` bytes in several buffers, of which the first may be empty. `header` is room for
 * PARSE_HEADER_BYTES. With `is_ip` the packet starts with its IP header, as interfaces without Ethernet headers have it.
 */
FLOW_INLINE enum parse_result parse_buffers(void *frame, __u32 bytes, parse_load *load, parse_walk_all *walk,
					    void *header, int is_ip, struct flow *flow)
{
	struct parse_cursor at = { .limit = PARSE_NO_LIMIT,
				   .load = load,
				   .walk = walk,
				   .frame = frame,
				   .frame_bytes = bytes,
				   .header = header };
	const __u8 *first;

	if (!is_ip)
		return parse_ethernet(&at, flow);
	*flow = (struct flow){ .family = FLOW_NO_FAMILY };
	first = parse_peek(&at, 1);
	if (!first)
		return PARSE_TRUNCATED;
	if (*first >> 4 == 4)
		return parse_ipv4(&at, flow);
	return *first >> 4 == 6 ? parse_ipv6(&at, flow) : PARSE_NOT_IP;
}

/* ---- a fast path for the most common frame: half the time ---- */

struct parse_plain_frame {
	struct iphdr ip; /* without options */
	__be16 sport, dport;
};

#define PARSE_PLAIN_HEADER 0x45 /* the first byte: version 4, five words */

/*
 * Parses only whole packets of TCP or UDP over IPv4, with ports but without VLAN tags and IP options. Returns 1 and the same
 * flow as parse_any(), which would return PARSE_OK. Returns 0 for any other frame.
 */
FLOW_INLINE int parse_plain(const void *data, const void *end, struct flow *flow)
{
	const struct parse_ethernet *ethernet = data;
	const struct parse_plain_frame *frame = data + sizeof(*ethernet);
	const __u8 *tcp_flags = (const void *)&frame->sport + PARSE_TCP_FLAGS_BYTE;

	if ((const void *)(frame + 1) > end || ethernet->ethertype != bpf_htons(ETH_P_IP) ||
	    *(const __u8 *)&frame->ip != PARSE_PLAIN_HEADER ||
	    frame->ip.frag_off & bpf_htons(PARSE_IPV4_OFFSET_MASK | PARSE_IPV4_MORE_FRAGMENTS) ||
	    bpf_ntohs(frame->ip.tot_len) < sizeof(*frame) ||
	    (frame->ip.protocol != IPPROTO_TCP && frame->ip.protocol != IPPROTO_UDP))
		return 0;
	*flow = (struct flow){ .src.v4 = frame->ip.saddr,
			       .dst.v4 = frame->ip.daddr,
			       .sport = frame->sport,
			       .dport = frame->dport,
			       .proto = frame->ip.protocol,
			       .family = FLOW_IPV4,
			       .port_kind = FLOW_PORTS,
			       .fragment = FLOW_FRAGMENT_NO,
			       .length = bpf_ntohs(frame->ip.tot_len) };
	if (frame->ip.protocol == IPPROTO_TCP) {
		if ((const void *)(tcp_flags + 1) > end ||
		    bpf_ntohs(frame->ip.tot_len) <= sizeof(frame->ip) + PARSE_TCP_FLAGS_BYTE)
			return 0;
		flow->tcp_flags = FLOW_TCP_READ | *tcp_flags;
	}
	return 1;
}

/*
 * Parses the frame [data, end) into `flow`. flow->family is FLOW_NO_FAMILY if the frame ends before the
 * addresses or has none. With any other family, addresses and protocol are valid, and port_kind says what the
 * port fields hold.
 *
 * The protocol after PARSE_TOO_MANY_HEADERS is the type of the first header that was not read. (If that is a
 * VLAN tag, there is no family.) If IPv6's length ends among the extension headers, the protocol is the type
 * of the last header that the frame leads to.
 */
FLOW_INLINE enum parse_result parse_frame(const void *data, const void *end, struct flow *flow)
{
	return parse_plain(data, end, flow) ? PARSE_OK : parse_any(data, end, flow);
}

#endif
