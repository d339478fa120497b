// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs to time against each other. Each makes another flow for every packet, by writing into
 * it, so that nothing is served from the last run's cache lines; then it does its own part: nothing
 * (the floor), parse and pack, the whole filter, a BPF hash map look-up of the key, or one of the source
 * in a BPF LPM trie. All but the floor leave by the filter's own exit, which counts.
 */
#include "bench/lookup.h"
#include "xdp_cuckoo.bpf.c"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64[LOOKUP_KEY_WORDS]);
	__type(value, __u64);
} lookup_hash SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct lookup_lpm_key);
	__type(value, __u64);
} lookup_lpm SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lookup_parameters);
} lookup_settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LOOKUP_SOURCES / LOOKUP_SOURCES_A_LINE);
	__type(key, __u32);
	__type(value, struct lookup_sources);
} lookup_listed SEC(".maps");

static __u64 lookup_random = 88172645463325252ULL;
static __u32 lookup_next;

/* xorshift64 (Marsaglia 2003): a uniform pick of a flow costs less than a helper call. */
static __always_inline __be32 random_source(const struct lookup_parameters *parameters)
{
	__u64 x = lookup_random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	lookup_random = x;
	return bpf_htonl(parameters->base + (__u32)((x >> 32) * parameters->flows >> 32));
}

static __always_inline __be32 listed_source(void)
{
	__u32 at = lookup_next++ % LOOKUP_SOURCES, line = at / LOOKUP_SOURCES_A_LINE;
	const struct lookup_sources *sources = bpf_map_lookup_elem(&lookup_listed, &line);

	return sources ? sources->source[at % LOOKUP_SOURCES_A_LINE] : 0;
}

static __always_inline int next_flow(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct iphdr *ip = data + sizeof(struct ethhdr);
	__u32 zero = 0;
	const struct lookup_parameters *parameters = bpf_map_lookup_elem(&lookup_settings, &zero);

	if (!parameters || (void *)(ip + 1) > end)
		return -1;
	ip->saddr = parameters->flows ? random_source(parameters) : listed_source();
	return 0;
}

static __always_inline __u64 frame_bytes(const struct xdp_md *ctx)
{
	__u64 bytes = ctx->data_end - ctx->data;

	barrier_var(bytes);
	return bytes;
}

static __always_inline int parse_and_pack(struct xdp_md *ctx, struct flow_key *key)
{
	struct flow flow;

	if (parse_frame((void *)(long)ctx->data, (void *)(long)ctx->data_end, &flow) != PARSE_OK ||
	    flow.family != FLOW_IPV4)
		return -1;
	flow_pack(&flow, key);
	return 0;
}

static __always_inline int leave(int is_match, __u64 bytes)
{
	if (is_match)
		return count((struct verdict){ OUTCOME_DROP_RULE, VERDICT_DROP, 0 }, bytes);
	return count((struct verdict){ OUTCOME_NO_RULE, VERDICT_PASS, 0 }, bytes);
}

SEC("xdp")
int lookup_drop(struct xdp_md *ctx)
{
	return next_flow(ctx) ? XDP_ABORTED : XDP_DROP;
}

SEC("xdp")
int lookup_parse(struct xdp_md *ctx)
{
	__u64 bytes = frame_bytes(ctx);
	struct flow_key key = {};

	if (next_flow(ctx) || parse_and_pack(ctx, &key))
		return XDP_ABORTED;
	return leave((key.word[0] ^ key.word[1]) != 0, bytes);
}

SEC("xdp")
int lookup_cuckoo(struct xdp_md *ctx)
{
	__u64 bytes = frame_bytes(ctx);

	if (next_flow(ctx))
		return XDP_ABORTED;
	return count(verdict_of((void *)(long)ctx->data, (void *)(long)ctx->data_end), bytes);
}

SEC("xdp")
int lookup_hash_map(struct xdp_md *ctx)
{
	__u64 bytes = frame_bytes(ctx);
	struct flow_key key = {};

	if (next_flow(ctx) || parse_and_pack(ctx, &key))
		return XDP_ABORTED;
	return leave(bpf_map_lookup_elem(&lookup_hash, key.word) != 0, bytes);
}

SEC("xdp")
int lookup_lpm_trie(struct xdp_md *ctx)
{
	struct lookup_lpm_key at = { .length = 32 };
	__u64 bytes = frame_bytes(ctx);
	struct flow_key key = {};

	if (next_flow(ctx) || parse_and_pack(ctx, &key))
		return XDP_ABORTED;
	at.source = key.word[0];
	return leave(bpf_map_lookup_elem(&lookup_lpm, &at) != 0, bytes);
}
