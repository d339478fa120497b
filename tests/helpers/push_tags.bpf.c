// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sends UDP packets to ports 5300 to 5302 back from where they came, with VLAN tags: one, beside the data; at 5301 one more,
 * in the data.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

SEC("tc")
int push_tags(struct __sk_buff *skb)
{
	const __u32 at = ETH_HLEN + sizeof(struct iphdr) + __builtin_offsetof(struct udphdr, dest);
	__be16 port;

	if (skb->protocol != bpf_htons(ETH_P_IP) || bpf_skb_load_bytes(skb, at, &port, sizeof(port)) ||
	    bpf_ntohs(port) < 5300 || bpf_ntohs(port) > 5302)
		return TC_ACT_OK;
	if ((port == bpf_htons(5301) && bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), 7)) ||
	    bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021AD), 5) || !skb->vlan_present)
		return TC_ACT_SHOT;
	return bpf_redirect(skb->ifindex, 0);
}

char LICENSE[] SEC("license") = "GPL";
