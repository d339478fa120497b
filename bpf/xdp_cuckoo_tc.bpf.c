// SPDX-License-Identifier: GPL-2.0-only
/*
 * The programs for what XDP does not see, at the hooks of tc: packets that this host sends, and packets of interfaces
 * without Ethernet headers. They use the maps of the XDP programs. What they pass goes on to the next program at the
 * hook: TCX_NEXT and TC_ACT_UNSPEC are the same number.
 */
#define AT_TC

#include "count_by_rule.h"
#include "maps.h"
#include "send_sample.h"
#include "verdict.h"

#include <linux/pkt_cls.h>

/* An skb that a driver will split (GSO), or that the kernel has merged (GRO), counts as its packets. */
static __always_inline int filter(struct __sk_buff *skb, int kind)
{
	const void *data = (const void *)(long)skb->data;
	const void *end = (const void *)(long)skb->data_end;
	struct verdict verdict = verdict_of(skb, data, end, kind);
	struct abi_counter *counters =
		maps_counters(abi_counter_row(skb->ifindex) + (kind & PACKET_IS_SENT ? ABI_COUNTER_SENT : 0));
	__u32 number = verdict.outcome * VERDICTS + verdict.verdict;
	const __u64 packets = packet_count(skb), bytes = packet_bytes(skb, kind);

	if (verdict.listener)
		sample_packet(skb, verdict.outcome, verdict.verdict | kind, skb->len);
	if (counters && number < ABI_COUNTERS) {
		counters[number].packets += packets;
		counters[number].bytes += bytes;
	}
	if (xc_options.has_counts && verdict.slot != LOOKUP_NO_SLOT)
		count_rule(verdict.slot, packets, bytes);
	return verdict.verdict == VERDICT_DROP ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

SEC("tc")
int xdp_cuckoo_sent(struct __sk_buff *skb)
{
	return filter(skb, PACKET_IS_SENT);
}

SEC("tc")
int xdp_cuckoo_ip(struct __sk_buff *skb)
{
	return filter(skb, PACKET_IS_IP);
}

SEC("tc")
int xdp_cuckoo_ips(struct __sk_buff *skb)
{
	return filter(skb, PACKET_IS_IP | PACKET_IS_SENT);
}

char LICENSE[] SEC("license") = "GPL";
