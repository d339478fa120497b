// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs to time against each other. Each makes another flow for every packet, by writing into
 * it, so that nothing is served from the last run's cache lines; then it does its own part: nothing
 * (the floor), parse and pack, the whole filter, or a look-up of the key in another structure. All but
 * the floor leave by the filter's own exit, which counts.
 */
#include "bench/lookup.h"
#include "bench/rivals.bpf.h"

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

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lookup_state);
} lookup_states SEC(".maps");

static __always_inline struct lookup_state *lookup_state(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&lookup_states, &zero);
}

/* xorshift64 (Marsaglia 2003): a uniform pick of a flow costs less than a helper call. */
static __always_inline __be32 random_source(struct lookup_state *state, const struct lookup_parameters *parameters)
{
	__u64 x = (state->random ^ state->carry) + !state->random * LOOKUP_MULTIPLIER;
	__u32 flow;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	state->random = x;
	flow = parameters->base + (__u32)((x >> 32) * parameters->flows >> 32);
	/* Without a branch, which would be mispredicted in the generator already. */
	flow += -((x & (LOOKUP_SHARES - 1)) < parameters->share) & parameters->other;
	return bpf_htonl(lookup_source(flow));
}

static __always_inline __be32 listed_source(struct lookup_state *state)
{
	__u32 at = state->next++ % LOOKUP_SOURCES, line = at / LOOKUP_SOURCES_A_LINE;
	const struct lookup_sources *sources = bpf_map_lookup_elem(&lookup_listed, &line);

	return sources ? sources->source[at % LOOKUP_SOURCES_A_LINE] : 0;
}

/* ---- pressure: other memory that is read between packets ---- */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lookup_block);
} lookup_pressure SEC(".maps");

const volatile __u32 lookup_is_pressed = 0;

struct walk {
	__u64 sum;
	__u32 at, mask;
};

/* The next line of a full cycle through all of them, in an order that no prefetcher knows: Knuth, TAOCP 3.2.1.2, A. */
static long read_line(__u32 i, struct walk *walk)
{
	const struct lookup_block *line;

	(void)i;
	walk->at = (walk->at * 1664525 + 1013904223) & walk->mask;
	line = bpf_map_lookup_elem(&lookup_pressure, &walk->at);
	if (line)
		walk->sum += READ_ONCE(line->word[0]);
	return 0;
}

/* The clock starts behind the reading, and waits for it. */
static __always_inline void begin_pressed(struct lookup_state *state, __u32 lines)
{
	struct walk walk = { .mask = lines - 1 };
	long read = lines ? bpf_loop(lines, read_line, &walk, 0) : 0;

	state->lines += read;
	state->sum += walk.sum;
	state->begun = bpf_ktime_get_ns();
}

/* What every program ends with. */
static __always_inline int end(int action)
{
	struct lookup_state *state;

	if (!lookup_is_pressed)
		return action;
	state = lookup_state();
	if (state)
		state->ns += bpf_ktime_get_ns() - state->begun;
	return action;
}

/* ---- packets ---- */

static __always_inline int next_flow(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct parse_ethernet *ethernet = data;
	struct iphdr *ip = data + sizeof(*ethernet);
	struct ipv6hdr *ip6 = data + sizeof(*ethernet);
	__u32 zero = 0;
	const struct lookup_parameters *parameters = bpf_map_lookup_elem(&lookup_settings, &zero);
	struct lookup_state *state = lookup_state();
	__be32 source;

	if (!parameters || !state || (void *)(ip + 1) > end)
		return -1;
	source = parameters->flows ? random_source(state, parameters) : listed_source(state);
	if (ethernet->ethertype == bpf_htons(ETH_P_IP))
		ip->saddr = source;
	else if ((void *)(ip6 + 1) <= end)
		ip6->saddr.in6_u.u6_addr32[3] = source;
	if (lookup_is_pressed)
		begin_pressed(state, parameters->lines);
	return 0;
}

static __always_inline __u64 frame_bytes(const struct xdp_md *ctx)
{
	__u64 bytes = ctx->data_end - ctx->data;

	hide_from_compiler(bytes);
	return bytes;
}

/* As in verdict.h, the last word is hidden: otherwise the verifier checks what follows for each protocol and header. */
static __always_inline int parse_and_pack(struct xdp_md *ctx, enum flow_family family, struct flow_key *key)
{
	const struct abi_config *config = maps_config();
	__u64 *last = &key->word[flow_key_last(family)];
	struct flow flow;

	if (!config || parse_frame((void *)(long)ctx->data, (void *)(long)ctx->data_end, &flow) != PARSE_OK ||
	    flow.family != family)
		return -1;
	flow_pack(&flow, key);
	*last = hide_from_verifier(READ_ONCE(config->zero), *last);
	return 0;
}

static __always_inline int leave(const struct xdp_md *ctx, int is_match, __u64 bytes)
{
	if (is_match)
		return count(ctx, (struct verdict){ OUTCOME_DROP_RULE, VERDICT_DROP, 0, 0 }, bytes);
	return count(ctx, (struct verdict){ OUTCOME_NO_RULE, VERDICT_PASS, 0, 0 }, bytes);
}

SEC("xdp")
int lookup_drop(struct xdp_md *ctx)
{
	return next_flow(ctx) ? XDP_ABORTED : end(XDP_DROP);
}

SEC("xdp")
int lookup_cuckoo(struct xdp_md *ctx)
{
	__u64 bytes = frame_bytes(ctx);

	if (next_flow(ctx))
		return XDP_ABORTED;
	return end(finish(ctx, verdict_of(ctx, (void *)(long)ctx->data, (void *)(long)ctx->data_end, 0), bytes));
}

/* A program that leaves by whether `match`, which is given `key`. */
#define LOOKUP_PROGRAM(name, family, match) \
	SEC("xdp") \
	int name(struct xdp_md *ctx) \
	{ \
		__u64 bytes = frame_bytes(ctx); \
		struct flow_key key; \
\
		if (next_flow(ctx) || parse_and_pack(ctx, family, &key)) \
			return XDP_ABORTED; \
		return end(leave(ctx, match, bytes)); \
	}

LOOKUP_PROGRAM(lookup_parse, FLOW_IPV4, (key.word[0] ^ key.word[1]) != 0)
LOOKUP_PROGRAM(lookup_hash_map, FLOW_IPV4, rival_hash_map(&key))
LOOKUP_PROGRAM(lookup_hash_counted, FLOW_IPV4, rival_hash_counted(&key, bytes))
LOOKUP_PROGRAM(lookup_lru_map, FLOW_IPV4, rival_lru_map(&key))
LOOKUP_PROGRAM(lookup_lpm_trie, FLOW_IPV4, rival_lpm_trie(&key))
LOOKUP_PROGRAM(lookup_bloom_map, FLOW_IPV4, rival_bloom_map(&key))
LOOKUP_PROGRAM(lookup_bloom, FLOW_IPV4, rival_bloom(&key))
LOOKUP_PROGRAM(lookup_blocked_bloom, FLOW_IPV4, rival_blocked_bloom(&key))
LOOKUP_PROGRAM(lookup_hash_shapes, FLOW_IPV4, rival_hash_shapes(&key))
LOOKUP_PROGRAM(lookup_parse6, FLOW_IPV6, (key.word[0] ^ key.word[1]) != 0)
LOOKUP_PROGRAM(lookup_hash_map6, FLOW_IPV6, rival_hash_map6(&key))

/*
 * The same with a next flow that depends on what was read, as a value and not by a branch which the
 * processor guesses: so no two look-ups overlap. `carry` is 0 in fact.
 */
#define LOOKUP_DEPENDENT(name, answer) \
	SEC("xdp") \
	int name(struct xdp_md *ctx) \
	{ \
		const struct abi_config *config = maps_config(); \
		struct lookup_state *state = lookup_state(); \
		__u64 bytes = frame_bytes(ctx); \
		struct rival_answer found; \
		struct flow_key key; \
\
		if (!config || !state || next_flow(ctx) || parse_and_pack(ctx, FLOW_IPV4, &key)) \
			return XDP_ABORTED; \
		found = answer; \
		state->carry = found.read & READ_ONCE(config->zero); \
		return leave(ctx, found.is_match, bytes); \
	}

LOOKUP_DEPENDENT(lookup_dependent_parse, ((struct rival_answer){ key.word[0], key.word[0] != 0 }))
LOOKUP_DEPENDENT(lookup_dependent_cuckoo, rival_cuckoo(config, &key))
LOOKUP_DEPENDENT(lookup_dependent_hash_map, rival_hash_map_read(&key))
