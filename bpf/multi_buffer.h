/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parses a frame whose first buffer does not have all headers. A sender can make headers as long as that, and some
 * drivers leave the first buffer short or empty.
 */
#ifndef XDP_CUCKOO_MULTI_BUFFER_H
#define XDP_CUCKOO_MULTI_BUFFER_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "kernel_has.h"
#include "parse_packet.h"

static __always_inline long multi_buffer_load(void *frame, __u32 offset, void *to, __u32 bytes)
{
	return bpf_xdp_load_bytes(frame, offset, to, bytes);
}

/* Whether the other buffers may change `result` or the TCP flags, which come from the first buffer alone. */
static __always_inline int multi_buffer_may_help(const struct xdp_md *frame, enum abi_outcome result,
						 const struct flow *flow)
{
	return (result == OUTCOME_TRUNCATED || result == OUTCOME_TOO_MANY_HEADERS ||
		(flow->proto == IPPROTO_TCP && !flow->tcp_flags)) &&
	       bpf_xdp_get_buff_len((struct xdp_md *)frame) > frame->data_end - frame->data;
}

/* Returns enum parse_result. */
RARE_FUNCTION int multi_buffer_flow(struct xdp_md *frame, struct flow *flow)
{
	if (!flow)
		return PARSE_TRUNCATED;
	return parse_buffers(frame, bpf_xdp_get_buff_len(frame), multi_buffer_load, flow);
}

#endif
