// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the filter is compared with on live traffic: no look-up at all, and BPF hash maps. One has the
 * filter's parser, its keys and its counting of packets; the other does the least that can be done for a
 * list of IPv4 sources: it looks at nothing else and counts nothing.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "helpers/live_sender.h"
#include "parse_packet.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64[FLOW_KEY_WORDS_IPV4]);
	__type(value, __u64);
} live_flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __be32);
	__type(value, __u64);
} live_sources SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, XDP_REDIRECT + 1);
	__type(key, __u32);
	__type(value, struct abi_counter);
} live_counters SEC(".maps");

static __always_inline const struct iphdr *ipv4_header(const struct xdp_md *ctx)
{
	const void *data = (const void *)(long)ctx->data, *end = (const void *)(long)ctx->data_end;
	const struct ethhdr *ethernet = data;
	const struct iphdr *ip = data + sizeof(*ethernet);

	if ((const void *)(ip + 1) > end || ethernet->h_proto != bpf_htons(ETH_P_IP))
		return NULL;
	return ip;
}

static __always_inline int count(__u32 action, __u64 bytes)
{
	struct abi_counter *counter = bpf_map_lookup_elem(&live_counters, &action);

	if (counter) {
		counter->packets++;
		counter->bytes += bytes;
	}
	return action;
}

SEC("xdp")
int live_drop(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_DROP;
}

SEC("xdp")
int live_pass(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

/* Knows without a look-up: whatever a filter takes beyond this, its look-up takes. */
SEC("xdp")
int live_mark(struct xdp_md *ctx)
{
	const struct iphdr *ip = ipv4_header(ctx);

	return ip && ip->id == bpf_htons(LIVE_MARK) ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int live_hash_flow(struct xdp_md *ctx)
{
	const void *data = (const void *)(long)ctx->data, *end = (const void *)(long)ctx->data_end;
	const __u64 bytes = end - data;
	struct flow_key key = {};
	struct flow flow;

	if (parse_frame(data, end, &flow) != PARSE_OK || flow.family != FLOW_IPV4)
		return count(XDP_PASS, bytes);
	flow_pack(&flow, &key);
	key.word[0] &= 0xffffffff; /* the source */
	key.word[1] = 0;
	return count(bpf_map_lookup_elem(&live_flows, key.word) ? XDP_DROP : XDP_PASS, bytes);
}

SEC("xdp")
int live_hash_source(struct xdp_md *ctx)
{
	const struct iphdr *ip = ipv4_header(ctx);
	__be32 source;

	if (!ip)
		return XDP_PASS;
	source = ip->saddr;
	return bpf_map_lookup_elem(&live_sources, &source) ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
