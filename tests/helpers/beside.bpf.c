// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs of somebody else's on the same interface, by their priorities before and after the filter: each drops
 * IPv4 packets to one address, and leaves the rest to whoever comes next.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define RUN_CONFIG SEC(".xdp_run_config")
#define BEFORE_ADDRESS 0xc6336405 /* 198.51.100.5 */
#define AFTER_ADDRESS 0xc6336406  /* 198.51.100.6 */

struct {
	__uint(priority, 5);
	__uint(XDP_PASS, 1);
} _before RUN_CONFIG;

struct {
	__uint(priority, 20);
	__uint(XDP_PASS, 1);
} _after RUN_CONFIG;

static __always_inline int drop_to(const struct xdp_md *ctx, __u32 address)
{
	const void *data = (const void *)(long)ctx->data, *end = (const void *)(long)ctx->data_end;
	const struct ethhdr *ethernet = data;
	const struct iphdr *ip = data + sizeof(*ethernet);

	if ((const void *)(ip + 1) > end || ethernet->h_proto != bpf_htons(ETH_P_IP))
		return XDP_PASS;
	return ip->daddr == bpf_htonl(address) ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int before(struct xdp_md *ctx)
{
	return drop_to(ctx, BEFORE_ADDRESS);
}

SEC("xdp")
int after(struct xdp_md *ctx)
{
	return drop_to(ctx, AFTER_ADDRESS);
}

char LICENSE[] SEC("license") = "GPL";
