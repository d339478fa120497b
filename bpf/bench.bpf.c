// SPDX-License-Identifier: GPL-2.0-only
/*
 * The program that `xdp-cuckoo bench` measures: bare XDP_DROP, the parser, and the whole filter, in turns. Each run
 * first writes another flow into the packet, so that the cache lines of the last packet do not help.
 * BPF_PROG_TEST_RUN runs the program; it is never attached.
 */
#include "bench_abi.h"
#include "xdp_cuckoo.bpf.c"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, BENCH_FLOWS);
	__type(key, __u32);
	__type(value, struct bench_flow_ipv4);
} bench_ipv4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, BENCH_FLOWS);
	__type(key, __u32);
	__type(value, struct bench_flow_ipv6);
} bench_ipv6 SEC(".maps");

/* BENCH_SLICES stamps for each worker. The tool sizes the map for its workers. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, BENCH_SLICES);
	__type(key, __u32);
	__type(value, __u64);
} bench_stamps SEC(".maps");

struct bench_ipv4_frame {
	struct bench_head head;
	struct iphdr ip;
	__u8 ports[4];
} __attribute__((packed));

struct bench_ipv6_frame {
	struct bench_head head;
	struct ipv6hdr ip;
	__u8 ports[4];
} __attribute__((packed));

static __always_inline int write_ipv4(struct bench_ipv4_frame *frame, const void *end, __u32 at)
{
	const struct bench_flow_ipv4 *flow = bpf_map_lookup_elem(&bench_ipv4, &at);

	if (!flow || (const void *)(frame + 1) > end)
		return -1;
	frame->ip.saddr = flow->src;
	frame->ip.daddr = flow->dst;
	frame->ip.protocol = flow->proto;
	__builtin_memcpy(frame->ports, flow->ports, sizeof(frame->ports));
	return 0;
}

static __always_inline int write_ipv6(struct bench_ipv6_frame *frame, const void *end, __u32 at)
{
	const struct bench_flow_ipv6 *flow = bpf_map_lookup_elem(&bench_ipv6, &at);

	if (!flow || (const void *)(frame + 1) > end)
		return -1;
	__builtin_memcpy(&frame->ip.saddr, &flow->src, sizeof(flow->src));
	__builtin_memcpy(&frame->ip.daddr, &flow->dst, sizeof(flow->dst));
	frame->ip.nexthdr = flow->proto;
	__builtin_memcpy(frame->ports, flow->ports, sizeof(frame->ports));
	return 0;
}

static __always_inline int begin_slice(struct bench_head *head)
{
	__u64 now = bpf_ktime_get_ns(), *stamp;
	__u32 at;

	if (head->worker == BENCH_NO_WORKER)
		return 0;
	if (head->slice >= BENCH_SLICES)
		return -1;
	at = head->worker * BENCH_SLICES + head->slice++;
	stamp = bpf_map_lookup_elem(&bench_stamps, &at);
	if (!stamp)
		return -1;
	head->program = bench_program_at(now);
	*stamp = (now & ~BENCH_STAMP_PROGRAM) | head->program;
	return 0;
}

/*
 * Writes the next flow into the packet. Returns what to do with the packet (enum bench_program), or -1 if the list
 * or the frame is too short.
 */
RARE_FUNCTION int bench_next(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct bench_head *head = data;
	__u32 at;

	if ((void *)(head + 1) > end)
		return -1;
	at = head->next++ % BENCH_FLOWS;
	if (at % BENCH_SLICE == 0 && begin_slice(head))
		return -1;
	if (head->ethertype == bpf_htons(ETH_P_IP) ? write_ipv4(data, end, at) : write_ipv6(data, end, at))
		return -1;
	return head->program;
}

/* Makes compilers compute every word of the key, although nothing reads it. */
static __always_inline void want_key(struct flow_key *key, enum flow_family family)
{
	for (unsigned int i = 0; i <= flow_key_last(family); i++)
		hide_from_compiler(key->word[i]);
}

/* The three things to measure, each at the cost of one call. */
RARE_FUNCTION int bench_drop(struct xdp_md *ctx)
{
	return ctx ? XDP_DROP : XDP_ABORTED;
}

/* Counts as OUTCOME_NOT_SET_UP, because the filter itself does not count this outcome after set-up. */
RARE_FUNCTION int bench_parse(struct xdp_md *ctx)
{
	const void *data = (const void *)(long)ctx->data, *end = (const void *)(long)ctx->data_end;
	__u64 bytes = end - data;
	struct flow_key key = {};
	struct flow flow;

	hide_from_compiler(bytes);
	if (parse_frame(data, end, &flow) != PARSE_OK)
		return XDP_ABORTED;
	flow_pack(&flow, &key);
	if (flow.family == FLOW_IPV4)
		want_key(&key, FLOW_IPV4);
	else
		want_key(&key, FLOW_IPV6);
	return count(ctx, verdict_pass((struct shape_match){ OUTCOME_NOT_SET_UP, 0 }), bytes);
}

RARE_FUNCTION int bench_filter(struct xdp_md *ctx)
{
	return filter_one_buffer(ctx);
}

SEC("xdp")
int bench_packet(struct xdp_md *ctx)
{
	switch (bench_next(ctx)) {
	case BENCH_DROP:
		return bench_drop(ctx);
	case BENCH_PARSE:
		return bench_parse(ctx);
	case BENCH_FILTER:
	case BENCH_WARM_UP:
		return bench_filter(ctx);
	default:
		return XDP_ABORTED;
	}
}
