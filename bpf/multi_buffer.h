/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How XDP programs read a packet: the functions that packet.h names. Only packet.h includes this.
 *
 * The first buffer of a frame may not have all headers. A sender can make headers that long, and some drivers leave the
 * first buffer short or empty.
 */
#ifndef XDP_CUCKOO_MULTI_BUFFER_H
#define XDP_CUCKOO_MULTI_BUFFER_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

typedef struct xdp_md packet_context;

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

RARE_FUNCTION int multi_buffer_key(struct xdp_md *frame, struct flow_key *key)
{
	struct flow flow;

	if (!key)
		return FLOW_NO_FAMILY;
	return packet_pack(&flow,
			   parse_buffers(frame, bpf_xdp_get_buff_len(frame), multi_buffer_load, multi_buffer_walk, key,
					 0, &flow),
			   key);
}

static __always_inline int packet_is_plain(const struct xdp_md *frame, const void *data, const void *end, int kind,
					   struct flow *flow)
{
	(void)frame, (void)kind;
	return parse_plain(data, end, flow);
}

static __always_inline int packet_parse(const void *data, const void *end, int kind, struct flow *flow)
{
	(void)kind;
	return parse_any(data, end, flow);
}

/* The other buffers may change `result` or the TCP flags, which come from the first buffer alone. */
static __always_inline int packet_has_more(struct xdp_md *frame, int kind, enum abi_outcome result,
					   const struct flow *flow)
{
	return result == OUTCOME_TOO_MANY_HEADERS ||
	       (kind & PACKET_HAS_BUFFERS &&
		(result == OUTCOME_TRUNCATED || (flow->proto == IPPROTO_TCP && !flow->tcp_flags)) &&
		bpf_xdp_get_buff_len(frame) > frame->data_end - frame->data);
}

static __always_inline int packet_gather(struct xdp_md *frame, int kind, struct flow_key *key)
{
	(void)kind;
	return multi_buffer_key(frame, key);
}

static __always_inline __u64 packet_bytes(struct xdp_md *frame, int kind)
{
	return kind & PACKET_HAS_BUFFERS ? bpf_xdp_get_buff_len(frame) : frame->data_end - frame->data;
}

static __always_inline __u64 packet_count(const struct xdp_md *frame)
{
	(void)frame;
	return 1;
}

static __always_inline __u32 packet_ifindex(const struct xdp_md *frame)
{
	return frame->ingress_ifindex;
}

static __always_inline long packet_sample(struct xdp_md *frame, struct abi_sample *sample, __u32 bytes, __u32 verdict)
{
	(void)verdict;
	return bpf_xdp_load_bytes(frame, 0, sample->frame, bytes);
}

#endif
