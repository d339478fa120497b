// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two programs for the egress of tc, which both first write the next flow into the packet: one does nothing else, the
 * other is the filter. BPF_PROG_TEST_RUN runs them.
 */
#include "bench/sent.h"
#include "xdp_cuckoo_tc.bpf.c"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SENT_FLOWS);
	__type(key, __u32);
	__type(value, struct sent_flow);
} sent_flows SEC(".maps");

__u32 sent_next;

static __always_inline int write_next(struct __sk_buff *skb)
{
	struct iphdr *ip = (void *)(long)skb->data + sizeof(struct parse_ethernet);
	__u32 at = sent_next++ % SENT_FLOWS;
	const struct sent_flow *flow = bpf_map_lookup_elem(&sent_flows, &at);

	if (!flow || (const void *)(ip + 1) > (const void *)(long)skb->data_end)
		return TC_ACT_STOLEN;
	ip->daddr = flow->destination;
	return TC_ACT_UNSPEC;
}

SEC("tc")
int sent_empty(struct __sk_buff *skb)
{
	return write_next(skb);
}

SEC("tc")
int sent_filter(struct __sk_buff *skb)
{
	const int action = write_next(skb);

	return action == TC_ACT_UNSPEC ? filter(skb, PACKET_IS_SENT) : action;
}
