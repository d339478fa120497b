/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One line of text to one frame on the wire, for live-traffic tests. Shares nothing with the tool's
 * rule parser or the program's packet parser, so that a mistake there is not repeated here.
 *
 * Text: proto P src A dst B [sport N dport N | type N code N] [vlan ID [vlan ID]]
 *       [flags N] [fragment first|later] [broken truncated|malformed|headers] [payload BYTES]
 */
#ifndef XDP_CUCKOO_TESTS_FRAME_H
#define XDP_CUCKOO_TESTS_FRAME_H

#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_BYTES_MAX 192 /* 14 + 2 tags of 4 + 40 + 9 * 8 + TCP 20 + trailer 16, with room; then the payload */
#define FRAME_PAYLOAD_MAX 9000
#define FRAME_VLAN_TAGS 2
#define FRAME_TRAILER_MAGIC 0x7863667478636674ULL
#define FRAME_ETHERTYPE_8021AD 0x88a8
#define FRAME_FRAGMENT_OFFSET 64 /* in units of 8 bytes */

enum frame_fragment { FRAME_WHOLE, FRAME_FRAGMENT_FIRST, FRAME_FRAGMENT_LATER };

enum frame_broken {
	FRAME_SOUND,
	FRAME_TRUNCATED,        /* by the length that IP states */
	FRAME_MALFORMED,        /* IPv4: a header of 16 bytes; IPv6: of version 5 */
	FRAME_TOO_MANY_HEADERS, /* IPv6 only: a first fragment that ends in an extension header */
};

struct frame_flow {
	uint8_t src[16], dst[16];
	uint8_t family; /* AF_INET, AF_INET6 */
	uint8_t proto;
	uint8_t vlans;
	uint8_t fragment; /* enum frame_fragment */
	uint8_t broken;   /* enum frame_broken */
	uint8_t flags;    /* of TCP */
	uint16_t port[2]; /* sport and dport, or type and code */
	uint16_t vlan[FRAME_VLAN_TAGS];
	uint16_t payload; /* bytes behind the transport header */
};

/* The last bytes of every frame, by which its receiver knows it. */
struct frame_trailer {
	uint64_t magic;
	uint32_t run;
	uint32_t index;
};

struct frame_writer {
	uint8_t *at;
};

static const struct frame_proto {
	const char *name;
	uint8_t number;
	uint8_t header_bytes;
} frame_protos[] = {
	{ .name = "tcp", .number = IPPROTO_TCP, .header_bytes = 20 },
	{ .name = "udp", .number = IPPROTO_UDP, .header_bytes = 8 },
	{ .name = "udplite", .number = IPPROTO_UDPLITE, .header_bytes = 8 },
	{ .name = "sctp", .number = IPPROTO_SCTP, .header_bytes = 12 },
	{ .name = "dccp", .number = IPPROTO_DCCP, .header_bytes = 16 },
	{ .name = "icmp", .number = IPPROTO_ICMP, .header_bytes = 8 },
	{ .name = "ipv6-icmp", .number = IPPROTO_ICMPV6, .header_bytes = 8 },
};

static bool frame_parse_number(const char *text, unsigned long most, uint16_t *number)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	*number = (uint16_t)value;
	return end != text && *end == '\0' && value <= most;
}

static bool frame_parse_proto(const char *text, uint8_t *proto)
{
	uint16_t number;

	for (size_t i = 0; i < sizeof(frame_protos) / sizeof(*frame_protos); i++) {
		if (strcmp(text, frame_protos[i].name) == 0) {
			*proto = frame_protos[i].number;
			return true;
		}
	}
	if (!frame_parse_number(text, UINT8_MAX, &number))
		return false;
	*proto = (uint8_t)number;
	return true;
}

static bool frame_parse_address(const char *text, struct frame_flow *flow, uint8_t *address)
{
	uint8_t family = strchr(text, ':') ? AF_INET6 : AF_INET;

	if (flow->family && flow->family != family)
		return false;
	flow->family = family;
	return inet_pton(family, text, address) == 1;
}

static bool frame_parse_fragment(const char *text, uint8_t *fragment)
{
	*fragment = strcmp(text, "first") == 0 ? FRAME_FRAGMENT_FIRST : FRAME_FRAGMENT_LATER;
	return *fragment == FRAME_FRAGMENT_FIRST || strcmp(text, "later") == 0;
}

static bool frame_parse_broken(const char *text, uint8_t *broken)
{
	static const char *const words[] = { "sound", "truncated", "malformed", "headers" };

	*broken = FRAME_TRUNCATED;
	while (*broken <= FRAME_TOO_MANY_HEADERS && strcmp(text, words[*broken]) != 0)
		++*broken;
	return *broken <= FRAME_TOO_MANY_HEADERS;
}

static bool frame_parse_byte(const char *text, uint8_t *byte)
{
	uint16_t number = 0;
	const bool is_right = frame_parse_number(text, UINT8_MAX, &number);

	*byte = (uint8_t)number;
	return is_right;
}

static bool frame_parse_field(const char *key, const char *value, struct frame_flow *flow)
{
	if (strcmp(key, "proto") == 0)
		return frame_parse_proto(value, &flow->proto);
	if (strcmp(key, "src") == 0)
		return frame_parse_address(value, flow, flow->src);
	if (strcmp(key, "dst") == 0)
		return frame_parse_address(value, flow, flow->dst);
	if (strcmp(key, "sport") == 0)
		return frame_parse_number(value, UINT16_MAX, &flow->port[0]);
	if (strcmp(key, "dport") == 0)
		return frame_parse_number(value, UINT16_MAX, &flow->port[1]);
	if (strcmp(key, "type") == 0)
		return frame_parse_number(value, UINT8_MAX, &flow->port[0]);
	if (strcmp(key, "code") == 0)
		return frame_parse_number(value, UINT8_MAX, &flow->port[1]);
	if (strcmp(key, "flags") == 0)
		return frame_parse_byte(value, &flow->flags);
	if (strcmp(key, "fragment") == 0)
		return frame_parse_fragment(value, &flow->fragment);
	if (strcmp(key, "broken") == 0)
		return frame_parse_broken(value, &flow->broken);
	if (strcmp(key, "payload") == 0)
		return frame_parse_number(value, FRAME_PAYLOAD_MAX, &flow->payload);
	if (strcmp(key, "vlan") == 0 && flow->vlans < FRAME_VLAN_TAGS)
		return frame_parse_number(value, 4094, &flow->vlan[flow->vlans++]);
	return false;
}

/* Splits `text` in place. 0; -EINVAL. */
static inline int frame_parse(char *text, struct frame_flow *flow)
{
	char *rest = text;
	const char *key;

	*flow = (struct frame_flow){ 0 };
	while ((key = strtok_r(NULL, " \t", &rest))) {
		const char *value = strtok_r(NULL, " \t", &rest);

		if (!value || !frame_parse_field(key, value, flow))
			return -EINVAL;
	}
	return flow->family ? 0 : -EINVAL;
}

static void frame_put(struct frame_writer *to, const void *bytes, size_t count)
{
	memcpy(to->at, bytes, count);
	to->at += count;
}

static void frame_put_u16(struct frame_writer *to, uint16_t value)
{
	const uint16_t wire = htons(value);

	frame_put(to, &wire, sizeof(wire));
}

/* RFC 1071. */
static uint16_t frame_checksum(const void *data, size_t bytes)
{
	const uint8_t *at = data;
	uint32_t sum = 0;

	for (size_t i = 0; i < bytes; i += 2)
		sum += (uint32_t)(at[i] << 8 | at[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

static size_t frame_transport_bytes(uint8_t proto)
{
	for (size_t i = 0; i < sizeof(frame_protos) / sizeof(*frame_protos); i++)
		if (frame_protos[i].number == proto)
			return frame_protos[i].header_bytes;
	return 8;
}

/* Ports, or type and code, then zeros: a filter reads no further, and nobody here looks at checksums. */
static void frame_put_transport(struct frame_writer *to, const struct frame_flow *flow)
{
	uint8_t *const start = to->at;
	const size_t bytes = frame_transport_bytes(flow->proto);

	if (flow->fragment == FRAME_FRAGMENT_LATER) {
		memset(to->at, 0xff, bytes);
	} else if (flow->proto == IPPROTO_ICMP || flow->proto == IPPROTO_ICMPV6) {
		frame_put(to, (uint8_t[]){ (uint8_t)flow->port[0], (uint8_t)flow->port[1] }, 2);
	} else {
		frame_put_u16(to, flow->port[0]);
		frame_put_u16(to, flow->port[1]);
	}
	if (flow->proto == IPPROTO_TCP && flow->fragment != FRAME_FRAGMENT_LATER)
		start[13] = flow->flags;
	memset(start + bytes, 0, flow->payload);
	to->at = start + bytes + flow->payload;
}

static void frame_put_ipv4(struct frame_writer *to, const struct frame_flow *flow)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = sizeof(ip) / 4,
		.tot_len = htons((uint16_t)(sizeof(ip) + frame_transport_bytes(flow->proto) + flow->payload)),
		.ttl = 64,
		.protocol = flow->proto,
	};

	if (flow->fragment == FRAME_FRAGMENT_FIRST)
		ip.frag_off = htons(IP_MF);
	else if (flow->fragment == FRAME_FRAGMENT_LATER)
		ip.frag_off = htons(FRAME_FRAGMENT_OFFSET);
	if (flow->broken == FRAME_TRUNCATED)
		ip.tot_len = htons(sizeof(ip) + 2);
	else if (flow->broken == FRAME_MALFORMED)
		ip.ihl = 4;
	memcpy(&ip.saddr, flow->src, sizeof(ip.saddr));
	memcpy(&ip.daddr, flow->dst, sizeof(ip.daddr));
	ip.check = frame_checksum(&ip, sizeof(ip));
	frame_put(to, &ip, sizeof(ip));
}

/* Of a fragment header and destination options, which say that they are 2048 bytes long. */
static const uint8_t frame_headers[16] = { IPPROTO_DSTOPTS, 0, 0, 1, [8] = IPPROTO_UDP, 255 };

static void frame_announce_headers(struct ip6_hdr *ip)
{
	ip->ip6_plen = htons((uint16_t)(ntohs(ip->ip6_plen) + sizeof(frame_headers)));
	ip->ip6_nxt = IPPROTO_FRAGMENT;
}

static void frame_put_ipv6(struct frame_writer *to, const struct frame_flow *flow)
{
	const bool later = flow->fragment == FRAME_FRAGMENT_LATER;
	struct ip6_frag extension = {
		.ip6f_nxt = flow->proto,
		.ip6f_offlg = later ? htons(FRAME_FRAGMENT_OFFSET << 3) : IP6F_MORE_FRAG,
	};
	const size_t extension_bytes = flow->fragment ? sizeof(extension) : 0;
	struct ip6_hdr ip = {
		.ip6_flow = htonl(6U << 28),
		.ip6_plen = htons((uint16_t)(extension_bytes + frame_transport_bytes(flow->proto) + flow->payload)),
		.ip6_nxt = flow->fragment ? IPPROTO_FRAGMENT : flow->proto,
		.ip6_hlim = 64,
	};

	if (flow->broken == FRAME_TRUNCATED)
		ip.ip6_plen = htons((uint16_t)(extension_bytes + 2));
	else if (flow->broken == FRAME_MALFORMED)
		ip.ip6_flow = htonl(5U << 28);
	else if (flow->broken == FRAME_TOO_MANY_HEADERS)
		frame_announce_headers(&ip);
	memcpy(&ip.ip6_src, flow->src, sizeof(ip.ip6_src));
	memcpy(&ip.ip6_dst, flow->dst, sizeof(ip.ip6_dst));
	frame_put(to, &ip, sizeof(ip));
	if (flow->broken == FRAME_TOO_MANY_HEADERS)
		frame_put(to, frame_headers, sizeof(frame_headers));
	frame_put(to, &extension, extension_bytes);
}

static void frame_put_ethernet(struct frame_writer *to, const uint8_t mac[2][ETH_ALEN])
{
	frame_put(to, mac[0], ETH_ALEN);
	frame_put(to, mac[1], ETH_ALEN);
}

/*
 * Writes the frame; `mac` is destination, source. `frame` has room for FRAME_BYTES_MAX and the payload. Returns its
 * length. The trailer stands behind the length that IP states: GRO then passes the frame on at once instead of holding
 * it back, which would let a later frame overtake it.
 */
static size_t frame_build(const struct frame_flow *flow, const uint8_t mac[2][ETH_ALEN],
			  const struct frame_trailer *trailer, uint8_t *frame)
{
	struct frame_writer to = { .at = frame };

	memset(frame, 0, FRAME_BYTES_MAX);
	frame_put_ethernet(&to, mac);
	for (unsigned int i = 0; i < flow->vlans; i++) {
		const bool outer_of_two = i + 1 < flow->vlans;

		frame_put_u16(&to, outer_of_two ? FRAME_ETHERTYPE_8021AD : ETHERTYPE_VLAN);
		frame_put_u16(&to, flow->vlan[i]);
	}
	frame_put_u16(&to, flow->family == AF_INET ? ETHERTYPE_IP : ETHERTYPE_IPV6);
	if (flow->family == AF_INET)
		frame_put_ipv4(&to, flow);
	else
		frame_put_ipv6(&to, flow);
	frame_put_transport(&to, flow);
	frame_put(&to, trailer, sizeof(*trailer));
	return (size_t)(to.at - frame);
}

/* A frame that is not IP, so that a filter lets it by. IEEE 802: 0x88b5 is for experiments. */
static inline size_t frame_build_marker(const uint8_t mac[2][ETH_ALEN], const struct frame_trailer *trailer,
					uint8_t frame[FRAME_BYTES_MAX])
{
	struct frame_writer to = { .at = frame };

	memset(frame, 0, FRAME_BYTES_MAX);
	frame_put_ethernet(&to, mac);
	frame_put_u16(&to, 0x88b5);
	to.at = frame + ETH_ZLEN - sizeof(*trailer);
	frame_put(&to, trailer, sizeof(*trailer));
	return (size_t)(to.at - frame);
}

#endif
