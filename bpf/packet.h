/* SPDX-License-Identifier: GPL-2.0-only */
/* How programs read packets: at XDP or, in an object compiled with AT_TC, at tc. */
#ifndef XDP_CUCKOO_PACKET_H
#define XDP_CUCKOO_PACKET_H

#include "parse_packet.h"
#include "sample.h"
#include "verifier.h"

/* What a program knows of all its packets. A constant at every call. */
enum packet_kind {
	PACKET_HAS_BUFFERS = 1 << 0, /* at XDP: it may have more data after `end`, in further buffers */
	PACKET_IS_SENT = ABI_SAMPLE_SENT,
	PACKET_IS_IP = ABI_SAMPLE_IP, /* it starts with its IP header */
};

/* What packet_gather() returns: the family, and above it enum parse_result. */
#define PACKET_RESULT_SHIFT 8

static __always_inline int packet_pack(const struct flow *flow, enum parse_result result, struct flow_key *key)
{
	if (flow->family != FLOW_NO_FAMILY)
		flow_pack(flow, key);
	return flow->family | result << PACKET_RESULT_SHIFT;
}

/*
 * multi_buffer.h and skb.h have the same functions:
 *   packet_is_plain()  is parse_plain(), and true only if packet_gather() finds no more.
 *   packet_parse()     parses the data that the program can reach directly. Returns enum parse_result.
 *   packet_has_more()  says whether packet_gather() may find more.
 *   packet_gather()    parses all data, and fills a key, in which it keeps headers meanwhile.
 *   packet_bytes()     for rates: in the same way as for the counters.
 *   packet_count()     how many packets it is, if the kernel handles several as one.
 *   packet_ifindex()   its interface.
 *   packet_sample()    copies its first bytes, at least one. Returns not 0 if it is shorter.
 */
#ifdef AT_TC
#include "skb.h"
#else
#include "multi_buffer.h"
#endif

#endif
