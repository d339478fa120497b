/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames as lists of pieces, and what the parser must say of them. A piece appends its bytes and
 * knows the number by which the piece before names it, so next-header fields and lengths follow
 * from the list. Knows neither parser nor maps. The table itself is packets.c.
 */
#ifndef XDP_CUCKOO_TESTS_PACKETS_H
#define XDP_CUCKOO_TESTS_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "parse_packet.h"

#define PACKET_PIECES 16
#define PACKET_HEADERS 256         /* a piece may be there several times */
#define PACKET_BYTES 3072          /* BPF_PROG_TEST_RUN keeps so much in one buffer */
#define PACKET_ALIGN 2             /* bytes that drivers put before a frame, so that IP headers are aligned */
#define PACKET_FILLER 0xa5         /* in every byte that no field is set in: never taken for a zero */
#define PACKET_SRC_IPV4 0xc0000201 /* 192.0.2.1 */
#define PACKET_DST_IPV4 0xc6336407 /* 198.51.100.7 */
/* 2001:db8:1:2:3:4:5:6 and 2001:db8:f:e:d:c:b:a */
/* clang-format off */
#define PACKET_SRC_IPV6 { 0x20, 1, 0xd, 0xb8, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6 }
#define PACKET_DST_IPV6 { 0x20, 1, 0xd, 0xb8, 0, 0xf, 0, 0xe, 0, 0xd, 0, 0xc, 0, 0xb, 0, 0xa }
/* clang-format on */
#define PACKET_DF 0x4000 /* fields of the IPv4 fragment word */
#define PACKET_MF 0x2000
#define PACKET_ETHERTYPE_MIN 0x600 /* below it, the field is a length (IEEE 802.3) */

/* How long a frame the parser needs to get past a piece, the protocol it knows until then, and what it says without. */
struct packet_need {
	__u16 bytes;
	__u8 proto, result;
};

struct packet_frame {
	size_t length;
	__u8 before[PACKET_ALIGN];
	__u8 byte[PACKET_BYTES];
	size_t ip_start;  /* 0 where there is none */
	size_t ip_length; /* to the end of the IP packet; 0 while it goes on */
	size_t addresses_end;
	unsigned int tags, extensions, pieces;
	bool settled;           /* the parser looks at no further piece */
	bool is_first_fragment; /* of an IPv6 packet */
	struct packet_need need[PACKET_HEADERS];
};

struct packet_piece {
	/* Appends the piece; returns how long a frame the parser needs to get past it. */
	size_t (*build)(struct packet_frame *frame, const struct packet_piece *piece, __u16 next);
	__u16 number;        /* ethertype or protocol */
	__u16 first, second; /* ports; ICMP type and code */
	__u16 fragment;      /* IPv4: the fragment word; IPv6: offset and more-fragments bit */
	__u16 bytes;         /* written, where they are not the usual */
	__u8 version, words; /* IP version; IPv4 header words */
	__u8 times;          /* it is there; 0: once */
	__u32 stated;        /* PACKET_STATED(n): the length field says n */
};

#define PACKET_STATED(n) (0x10000 | (n))

struct packet {
	const char *name;
	struct packet_piece piece[PACKET_PIECES];
	enum parse_result result;
	struct flow flow;
};

/* A frame for parse_buffers(), without buffers. */
struct packet_bytes {
	const __u8 *byte;
	size_t length;
};

static inline long packet_load(void *frame, __u32 offset, void *to, __u32 bytes)
{
	const struct packet_bytes *from = frame;

	if (bytes > PARSE_HEADER_BYTES || offset + bytes > from->length)
		return -1;
	memcpy(to, from->byte + offset, bytes);
	return 0;
}

static inline void packet_walk(struct parse_walk *walk)
{
	for (int i = 0; i < PARSE_EXTENSION_HEADERS && !parse_turn(walk, packet_load); i++)
		;
}

static inline void packet_put16(__u8 *at, __u16 value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static inline __u8 *packet_append(struct packet_frame *frame, size_t bytes)
{
	__u8 *at = frame->byte + frame->length;

	if (frame->length + bytes > PACKET_BYTES)
		abort();
	frame->length += bytes;
	return memset(at, PACKET_FILLER, bytes);
}

static inline size_t packet_ethernet(struct packet_frame *frame, const struct packet_piece *piece, __u16 next)
{
	packet_put16(packet_append(frame, piece->bytes) + 12, next);
	return frame->length;
}

/* One tag too many is where the parser stops. */
static inline size_t packet_vlan(struct packet_frame *frame, const struct packet_piece *piece, __u16 next)
{
	size_t start = frame->length;

	packet_put16(packet_append(frame, piece->bytes) + 2, next);
	frame->settled |= ++frame->tags > PARSE_VLAN_TAGS;
	return frame->tags > PARSE_VLAN_TAGS ? start : frame->length;
}

/* piece->first: the protocol of PPP, in piece->bytes - 6 bytes. */
static inline size_t packet_pppoe(struct packet_frame *frame, const struct packet_piece *piece, __u16 next)
{
	__u8 *at = packet_append(frame, piece->bytes);

	(void)next;
	at[0] = 0x11;
	at[6] = piece->bytes == 7 ? piece->first : piece->first >> 8;
	if (piece->bytes > 7)
		at[7] = piece->first;
	return frame->length - piece->bytes + 8;
}

/* What has no ports, or is no IP: the headers before it are needed whole, nothing of it is read. */
static inline size_t packet_raw(struct packet_frame *frame, const struct packet_piece *piece, __u16 next)
{
	size_t start = frame->length;

	(void)next;
	packet_append(frame, piece->bytes);
	return start;
}

static inline size_t packet_ipv4(struct packet_frame *frame, const struct packet_piece *piece, __u16 next)
{
	size_t bytes = piece->words < 5 ? 20 : piece->words * 4;
	bool short_length = piece->stated > PACKET_STATED(0) && piece->stated < PACKET_STATED(bytes);
	bool malformed = piece->version != 4 || piece->words < 5 || short_length;
	__be32 src = bpf_htonl(PACKET_SRC_IPV4), dst = bpf_htonl(PACKET_DST_IPV4);
	__u8 *at = packet_append(frame, bytes);

	frame->ip_start = at - frame->byte;
	frame->addresses_end = frame->ip_start + 20;
	frame->settled |= malformed || piece->fragment & 0x1fff;
	at[0] = piece->version << 4 | piece->words;
	packet_put16(at + 6, piece->fragment);
	at[9] = next;
	memcpy(at + 12, &src, sizeof(src));
	memcpy(at + 16, &dst, sizeof(dst));
	return malformed ? frame->addresses_end : frame->length;
}

static inline size_t packet_ipv6(struct packet_frame *frame, const struct packet_piece *piece, __u16 next)
{
	static const __u8 src[] = PACKET_SRC_IPV6, dst[] = PACKET_DST_IPV6;
	__u8 *at = packet_append(frame, 40);

	frame->ip_start = at - frame->byte;
	frame->addresses_end = frame->length;
	frame->settled |= piece->version != 6;
	at[0] = piece->version << 4 | 0xa;
	at[6] = next;
	memcpy(at + 8, src, sizeof(src));
	memcpy(at + 24, dst, sizeof(dst));
	return frame->length;
}

/* Any extension header: its bytes follow from its type and length field. One too many is not read. */
static inline size_t packet_extension(struct packet_frame *frame, const struct packet_piece *piece, __u16 next)
{
	unsigned int unit = piece->number == IPPROTO_AH ? 4 : 8;
	unsigned int first_units = unit == 4 ? 2 : 1;
	__u8 length = piece->stated ? piece->stated : piece->bytes / unit - first_units;
	size_t start = frame->length;
	__u8 *at = packet_append(frame, piece->bytes);

	at[0] = next;
	if (piece->number != IPPROTO_FRAGMENT)
		at[1] = length;
	else
		packet_put16(at + 2, piece->fragment);
	frame->settled |= ++frame->extensions > PARSE_EXTENSION_HEADERS || piece->fragment & 0xfff8;
	return frame->extensions > PARSE_EXTENSION_HEADERS ? start : start + (length + first_units) * unit;
}

static inline size_t packet_ports(struct packet_frame *frame, const struct packet_piece *piece, __u16 next)
{
	size_t start = frame->length;
	__u8 port[4];

	(void)next;
	packet_put16(port, piece->first);
	packet_put16(port + 2, piece->second);
	memcpy(packet_append(frame, piece->bytes), port, piece->bytes < 4 ? piece->bytes : 4);
	return start + 4;
}

static inline size_t packet_icmp(struct packet_frame *frame, const struct packet_piece *piece, __u16 next)
{
	const __u8 type_code[2] = { piece->first, piece->second };
	size_t start = frame->length;

	(void)next;
	memcpy(packet_append(frame, piece->bytes), type_code, piece->bytes < 2 ? piece->bytes : 2);
	return start + 2;
}

/* Bytes behind the IP packet. */
static inline size_t packet_padding(struct packet_frame *frame, const struct packet_piece *piece, __u16 next)
{
	(void)next;
	frame->ip_length = frame->length - frame->ip_start;
	packet_append(frame, piece->bytes);
	return 0;
}

/* The frame lacks its last bytes; the lengths say that it has them. */
static inline size_t packet_missing(struct packet_frame *frame, const struct packet_piece *piece, __u16 next)
{
	(void)next;
	frame->ip_length = frame->length - frame->ip_start;
	frame->length -= piece->bytes;
	return 0;
}

static inline void packet_state_length(struct packet_frame *frame, const struct packet_piece *ip)
{
	bool is_ipv6 = ip->build == packet_ipv6;
	__u16 length = frame->ip_length ? frame->ip_length : frame->length - frame->ip_start;

	if (is_ipv6)
		length -= 40;
	if (ip->stated)
		length = ip->stated;
	packet_put16(frame->byte + frame->ip_start + (is_ipv6 ? 4 : 2), length);
}

static inline void packet_add(struct packet_frame *frame, const struct packet_piece *piece, __u16 next)
{
	const bool is_read = !frame->settled;
	struct packet_need *need = &frame->need[frame->pieces++];

	if (frame->pieces > PACKET_HEADERS)
		abort();
	need->result = frame->is_first_fragment ? PARSE_TOO_MANY_HEADERS : PARSE_TRUNCATED;
	need->proto = piece->number;
	need->bytes = piece->build(frame, piece, next);
	if (!is_read)
		*need = (struct packet_need){ 0 };
	frame->is_first_fragment |= piece->number == IPPROTO_FRAGMENT && piece->fragment & 1;
}

static inline void packet_build(const struct packet *packet, struct packet_frame *frame)
{
	const struct packet_piece *ip = NULL;

	*frame = (struct packet_frame){ 0 };
	for (const struct packet_piece *piece = packet->piece; piece->build; piece++) {
		for (unsigned int left = piece->times ? piece->times : 1; left; left--) {
			const struct packet_piece *next = left > 1 ? piece : piece + 1;

			packet_add(frame, piece, next->number);
		}
		if (frame->ip_start && !ip) {
			ip = piece;
			frame->need[frame->pieces - 1].proto = piece[1].number;
		}
	}
	if (ip)
		packet_state_length(frame, ip);
}

/*
 * What the parser must say of the first `length` bytes of the frame, told from its pieces: what it
 * says of the whole where no piece that it reads lacks a byte, else PARSE_TRUNCATED or worse without ports.
 */
static inline enum parse_result packet_expect(const struct packet *packet, const struct packet_frame *frame,
					      size_t length, struct flow *flow)
{
	for (unsigned int i = 0; i < frame->pieces; i++) {
		if (frame->need[i].bytes <= length)
			continue;
		*flow = (struct flow){ .family = FLOW_NO_FAMILY };
		if (!frame->addresses_end || length < frame->addresses_end)
			return PARSE_TRUNCATED;
		*flow = packet->flow;
		flow->proto = frame->need[i].proto;
		flow->sport = flow->dport = 0;
		flow->port_kind = FLOW_NO_PORTS;
		return (enum parse_result)frame->need[i].result;
	}
	*flow = packet->flow;
	return packet->result;
}

#include "unit/packets.c"

#endif
