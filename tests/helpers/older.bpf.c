// SPDX-License-Identifier: GPL-2.0-only
/*
 * What stands for a filter of an older version, for tests/helpers/older.c: of the maps it has a config alone, which is as
 * large as no version's, and it drops IPv4 packets from 203.0.113.0/24.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "abi.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct abi_config) + 64);
} xc_config SEC(".maps");

SEC("xdp")
int older(struct xdp_md *ctx)
{
	const void *data = (const void *)(long)ctx->data, *end = (const void *)(long)ctx->data_end;
	const struct ethhdr *ethernet = data;
	const struct iphdr *ip = data + sizeof(*ethernet);
	__u32 zero = 0;
	const struct abi_config *config = bpf_map_lookup_elem(&xc_config, &zero);

	if ((const void *)(ip + 1) > end || ethernet->h_proto != bpf_htons(ETH_P_IP) || !config ||
	    config->run != ABI_RUN_SET_UP)
		return XDP_PASS;
	return (bpf_ntohl(ip->saddr) & 0xffffff00) == 0xcb007100 ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
