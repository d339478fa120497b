// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sends packets of random sources, as live_source.bpf.c does of sources in turn: run by
 * BPF_PROG_TEST_RUN with live frames, XDP_TX hands each to the other end of a veth pair. Packets of
 * listed sources are marked. Headers are whole, so that a network stack takes what passes.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "helpers/live_sender.h"

const volatile struct live_plan live_plan = {};

struct live_progress live_progress;

static __always_inline __u32 below(__u64 random, __u32 bound)
{
	return (random & 0xffffffff) * bound >> 32;
}

/* xorshift64: Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8, 2003. */
static __always_inline __u64 next_random(void)
{
	__u64 x = live_progress.random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	live_progress.random = x;
	return x;
}

static __always_inline __u16 fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return ~((sum & 0xffff) + (sum >> 16));
}

/* Here, since a run takes long before its first packet and after its last one. */
static __always_inline void keep_time(void)
{
	const __u64 number = live_progress.sent++;

	if (number == live_plan.begin)
		live_progress.begin_ns = bpf_ktime_get_ns();
	if (number == live_plan.finish)
		live_progress.finish_ns = bpf_ktime_get_ns();
}

SEC("xdp")
int live_send(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct iphdr *ip = data + sizeof(struct ethhdr);
	const __u64 random = next_random();
	__u32 n, source;

	if ((void *)(ip + 1) > end)
		return XDP_ABORTED;
	keep_time();
	if (below(random, 100) < live_plan.innocent_percent) {
		live_progress.innocent++;
		n = live_plan.count + below(random >> 32, LIVE_SPACE - live_plan.count);
		ip->id = 0;
	} else {
		n = below(random >> 32, live_plan.count);
		ip->id = bpf_htons(LIVE_MARK);
	}
	source = bpf_htonl(live_address(live_plan.first, n));
	ip->saddr = source;
	ip->check = fold(live_plan.header_sum + ip->id + (source & 0xffff) + (source >> 16));
	return XDP_TX;
}

char LICENSE[] SEC("license") = "GPL";
