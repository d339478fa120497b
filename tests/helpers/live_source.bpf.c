// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sends instead of receiving: run by BPF_PROG_TEST_RUN with live frames on one end of a veth pair, XDP_TX
 * puts each frame before the XDP program of the other end. The frames come back from there as they
 * were left, so each gets its source anew.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "helpers/live_source.h"

const volatile struct live_source live_source = {};

static __u32 live_turn;

SEC("xdp")
int live_send(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct iphdr *ip = data + sizeof(struct ethhdr);
	__u32 turn = live_turn;

	if ((void *)(ip + 1) > end)
		return XDP_ABORTED;
	ip->saddr = bpf_htonl(live_source.first + turn);
	live_turn = turn + 1 < live_source.count ? turn + 1 : 0;
	return XDP_TX;
}

char LICENSE[] SEC("license") = "GPL";
