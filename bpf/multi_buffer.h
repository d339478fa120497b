/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How XDP programs read a packet; skb.h has the same functions for tc.
 *
 * The first buffer of a frame may not have all headers. A sender can make headers that long, and some drivers leave the
 * first buffer short or empty.
 */
#ifndef XDP_CUCKOO_MULTI_BUFFER_H
#define XDP_CUCKOO_MULTI_BUFFER_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "parse_packet.h"
#include "sample.h"

typedef struct xdp_md packet_context;

/* What a program knows of all its packets. A constant at every call. */
enum packet_kind {
	PACKET_HAS_BUFFERS = 1 << 0, /* it may have more data after `end`, in further buffers */
};

static __always_inline long multi_buffer_load(void *frame, __u32 offset, void *to, __u32 bytes)
{
	return bpf_xdp_load_bytes(frame, offset, to, bytes);
}

static long multi_buffer_turn(__u32 turn, struct parse_walk *walk)
{
	(void)turn;
	return parse_turn(walk, multi_buffer_load);
}

static __always_inline void multi_buffer_walk(struct parse_walk *walk)
{
	bpf_loop(PARSE_EXTENSION_HEADERS, multi_buffer_turn, walk, 0);
}

/* Whether the other buffers may change `result` or the TCP flags, which come from the first buffer alone. */
static __always_inline int multi_buffer_may_help(const struct xdp_md *frame, enum abi_outcome result,
						 const struct flow *flow)
{
	return (result == OUTCOME_TRUNCATED || (flow->proto == IPPROTO_TCP && !flow->tcp_flags)) &&
	       bpf_xdp_get_buff_len((struct xdp_md *)frame) > frame->data_end - frame->data;
}

#define PACKET_RESULT_SHIFT 8

/* Fills the key. Returns the family, and above it enum parse_result. */
RARE_FUNCTION int multi_buffer_key(struct xdp_md *frame, struct flow_key *key)
{
	struct flow flow;
	enum parse_result result =
		parse_buffers(frame, bpf_xdp_get_buff_len(frame), multi_buffer_load, multi_buffer_walk, &flow);

	if (key && flow.family != FLOW_NO_FAMILY)
		flow_pack(&flow, key);
	return flow.family | result << PACKET_RESULT_SHIFT;
}

/*
 * packet_parse() parses the data that the program can reach directly, packet_gather() all data. Both return enum
 * parse_result. packet_has_more() says whether packet_gather() may find more. They are macros, because compilers allocate
 * registers better for them.
 */
#define packet_parse(data, end, kind, flow) parse_frame(data, end, flow)
#define packet_has_more(ctx, kind, result, flow) \
	((result) == OUTCOME_TOO_MANY_HEADERS || \
	 ((kind)&PACKET_HAS_BUFFERS && multi_buffer_may_help(ctx, result, flow)))
#define packet_is_sent(kind) ((void)(kind), 0)
#define packet_gather(ctx, kind, key) multi_buffer_key(ctx, key)

/* For rates: the frame without its checksum, as it is counted. */
static __always_inline __u64 packet_bytes(struct xdp_md *frame, int kind)
{
	return kind & PACKET_HAS_BUFFERS ? bpf_xdp_get_buff_len(frame) : frame->data_end - frame->data;
}

#define packet_count(ctx) 1ULL

static __always_inline __u32 packet_ifindex(const struct xdp_md *ctx)
{
	return ctx->ingress_ifindex;
}

/* Copies `bytes` bytes, at least one. Returns not 0 if the frame is shorter. */
static __always_inline long packet_sample(struct xdp_md *ctx, struct abi_sample *sample, __u32 bytes, __u32 verdict)
{
	(void)verdict;
	return bpf_xdp_load_bytes(ctx, 0, sample->frame, bytes);
}

#endif
