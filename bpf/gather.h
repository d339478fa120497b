/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Headers that are not all in the first buffer of a frame. Senders can make them so long, and drivers leave that
 * buffer short or empty. A global function: rare, and verified once.
 */
#ifndef XDP_CUCKOO_GATHER_H
#define XDP_CUCKOO_GATHER_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "parse.h"

static __always_inline long gather_load(void *frame, __u32 offset, void *to, __u32 bytes)
{
	return bpf_xdp_load_bytes(frame, offset, to, bytes);
}

/* Whether `result`, of the first buffer, may come of what the others hold. */
static __always_inline int gather_may_help(const struct xdp_md *frame, enum abi_outcome result)
{
	return (result == OUTCOME_TRUNCATED || result == OUTCOME_TOO_MANY_HEADERS) &&
	       bpf_xdp_get_buff_len((struct xdp_md *)frame) > frame->data_end - frame->data;
}

/* As parse_frame(): an enum parse_result. */
__attribute__((noinline)) int gather_flow(struct xdp_md *frame, struct flow *flow)
{
	if (!flow)
		return PARSE_TRUNCATED;
	return parse_buffers(frame, bpf_xdp_get_buff_len(frame), gather_load, flow);
}

#endif
