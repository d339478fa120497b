/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How programs at tc read a packet: the functions of multi_buffer.h for a socket buffer (skb).
 *
 * An skb on an Ethernet interface starts with the Ethernet header. Its outermost VLAN tag may be outside the data. Then
 * the data look untagged, which changes nothing here: no rule names a tag. On other interfaces an skb may have a header
 * that only its driver knows, so there the packet is read from the network header on, which the kernel knows.
 */
#ifndef XDP_CUCKOO_SKB_H
#define XDP_CUCKOO_SKB_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

typedef struct __sk_buff packet_context;

static __always_inline long skb_load(void *skb, __u32 offset, void *to, __u32 bytes)
{
	return bpf_skb_load_bytes(skb, offset, to, bytes);
}

static __always_inline long skb_load_ip(void *skb, __u32 offset, void *to, __u32 bytes)
{
	return bpf_skb_load_bytes_relative(skb, offset, to, bytes, BPF_HDR_START_NET);
}

static long skb_turn(__u32 turn, struct parse_walk *walk)
{
	(void)turn;
	return parse_turn(walk, skb_load);
}

static long skb_turn_ip(__u32 turn, struct parse_walk *walk)
{
	(void)turn;
	return parse_turn(walk, skb_load_ip);
}

static __always_inline void skb_walk(struct parse_walk *walk)
{
	bpf_loop(PARSE_EXTENSION_HEADERS, skb_turn, walk, 0);
}

static __always_inline void skb_walk_ip(struct parse_walk *walk)
{
	bpf_loop(PARSE_EXTENSION_HEADERS, skb_turn_ip, walk, 0);
}

/* For counters and rates. Of an skb that a virtual machine has sent, the kernel does not know the number. */
static __always_inline __u64 packet_count(const struct __sk_buff *skb)
{
	const __u32 known = READ_ONCE(skb->gso_segs), size = READ_ONCE(skb->gso_size);

	if (known || !size)
		return known ? known : 1;
	return (READ_ONCE(skb->len) + size - 1) / size;
}

/* The kernel knows how many bytes a sent skb will be on the wire, with the headers of each packet. */
static __always_inline __u64 packet_bytes(const struct __sk_buff *skb, int kind)
{
	const __u32 sent = READ_ONCE(skb->wire_len), bytes = READ_ONCE(skb->len);

	return kind & PACKET_IS_SENT && sent > bytes ? sent : bytes;
}

/*
 * The length that rules compare, if an skb of `length` bytes from its IP header on is several packets: that of each
 * packet but the last. The bytes on the wire tell how long their headers are. Of a received one nothing tells that, so
 * it is the length of the last packet.
 */
static __always_inline __u16 skb_length(const struct __sk_buff *skb, __u32 length)
{
	const __u32 more = packet_count(skb) - 1, size = READ_ONCE(skb->gso_size);
	const __u32 bytes = READ_ONCE(skb->len);
	const __u32 headers = packet_bytes(skb, PACKET_IS_SENT) - bytes;
	__u32 each = length - more * size;

	if (!size || !more)
		return length;
	if (headers)
		each = size + headers / more - (length < PARSE_LENGTH_MAX ? bytes - length : ETH_HLEN);
	return each < length ? each : length;
}

#define PACKET_LACKS_FLAGS (1 << 16) /* a TCP packet whose flags were not found */

/* Returns what packet_gather() does, and PACKET_LACKS_FLAGS. */
static __always_inline int skb_find(struct __sk_buff *skb, parse_load *load, parse_walk_all *walk, int is_ip,
				    struct flow_key *key)
{
	struct flow flow;
	enum parse_result result = parse_buffers(skb, skb->len, load, walk, key, is_ip, &flow);

	flow.length = skb_length(skb, flow.length);
	return packet_pack(&flow, result, key) |
	       (flow.proto == IPPROTO_TCP && !flow.tcp_flags ? PACKET_LACKS_FLAGS : 0);
}

RARE_FUNCTION int skb_key(struct __sk_buff *skb, struct flow_key *key)
{
	return key ? skb_find(skb, skb_load, skb_walk, 0, key) : FLOW_NO_FAMILY;
}

RARE_FUNCTION int skb_key_ip(struct __sk_buff *skb, struct flow_key *key)
{
	return key ? skb_find(skb, skb_load_ip, skb_walk_ip, 1, key) : FLOW_NO_FAMILY;
}

static __always_inline int packet_is_plain(const struct __sk_buff *skb, const void *data, const void *end, int kind,
					   struct flow *flow)
{
	return !(kind & PACKET_IS_IP) && !skb->gso_size && parse_plain(data, end, flow);
}

static __always_inline int packet_parse(const void *data, const void *end, int kind, struct flow *flow)
{
	return kind & PACKET_IS_IP ? PARSE_TRUNCATED : parse_any(data, end, flow);
}

static __always_inline int packet_has_more(const struct __sk_buff *skb, int kind, enum abi_outcome result,
					   const struct flow *flow)
{
	return kind & PACKET_IS_IP || skb->gso_size || result == OUTCOME_TOO_MANY_HEADERS ||
	       ((result == OUTCOME_TRUNCATED || (flow->proto == IPPROTO_TCP && !flow->tcp_flags)) &&
		skb->len > skb->data_end - skb->data);
}

/* Moves the start of the packet to where skb_load_ip() reads, if it is not there. Not 0: nothing has moved. */
static __always_inline long skb_pull(struct __sk_buff *skb)
{
	if (skb->len <= skb->data_end - skb->data)
		return 1;
	return bpf_skb_pull_data(skb, skb->len < PARSE_OFFSET_MASK ? skb->len : PARSE_OFFSET_MASK);
}

static __always_inline int packet_gather(struct __sk_buff *skb, int kind, struct flow_key *key)
{
	__u32 found, result;

	if (!(kind & PACKET_IS_IP))
		return skb_key(skb, key) & ~PACKET_LACKS_FLAGS;
	found = skb_key_ip(skb, key);
	result = found >> PACKET_RESULT_SHIFT & 0xff;
	if ((found & PACKET_LACKS_FLAGS || result == PARSE_TRUNCATED || result == PARSE_TOO_MANY_HEADERS) &&
	    !skb_pull(skb))
		found = skb_key_ip(skb, key);
	return found & ~PACKET_LACKS_FLAGS;
}

static __always_inline __u32 packet_ifindex(const struct __sk_buff *skb)
{
	return skb->ifindex;
}

/*
 * Copies `bytes` bytes, at least one. Returns not 0 if the packet is shorter. The sample of a packet without an
 * Ethernet header gets one, so that readers of samples need to know one kind only.
 */
static __always_inline long packet_sample(struct __sk_buff *skb, struct abi_sample *sample, __u32 bytes, __u32 verdict)
{
	struct parse_ethernet *ethernet = (void *)sample->frame;

	if (!(verdict & ABI_SAMPLE_IP))
		return bpf_skb_load_bytes(skb, 0, sample->frame, bytes);
	if (bytes > ABI_SAMPLE_BYTES - sizeof(*ethernet))
		bytes = ABI_SAMPLE_BYTES - sizeof(*ethernet);
	*ethernet = (struct parse_ethernet){ .ethertype = skb->protocol };
	sample->bytes += sizeof(*ethernet);
	sample->captured = bytes + sizeof(*ethernet);
	if (!skb_load_ip(skb, 0, ethernet + 1, bytes))
		return 0;
	return skb_pull(skb) || skb_load_ip(skb, 0, ethernet + 1, bytes);
}

#endif
