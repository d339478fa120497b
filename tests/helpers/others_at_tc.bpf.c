// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A program of somebody else at tc: drops UDP to port 5302 over IPv4. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

SEC("tc")
int others_at_tc(struct __sk_buff *skb)
{
	__be16 port = 0;

	bpf_skb_load_bytes_relative(skb, 22, &port, sizeof(port), BPF_HDR_START_NET);
	return port == bpf_htons(5302) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "GPL";
