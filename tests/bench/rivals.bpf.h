/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What else can tell whether a flow is listed: each with the flow's key, in a map of its own that the
 * benchmark sizes and fills. Those that need a hash have the filter's own.
 */
#ifndef XDP_CUCKOO_BENCH_RIVALS_BPF_H
#define XDP_CUCKOO_BENCH_RIVALS_BPF_H

#include "bench/lookup.h"
#include "xdp_cuckoo.bpf.c"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64[LOOKUP_KEY_WORDS]);
	__type(value, __u64);
} lookup_hash SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64[LOOKUP_KEY_WORDS]);
	__type(value, struct lookup_count);
} lookup_counted SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64[LOOKUP_KEY6_WORDS]);
	__type(value, __u64);
} lookup_hash6 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, __u64[LOOKUP_KEY_WORDS]);
	__type(value, __u64);
} lookup_lru SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct lookup_lpm_key);
	__type(value, __u64);
} lookup_lpm SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_BLOOM_FILTER);
	__uint(max_entries, 1);
	__uint(map_extra, 5); /* hashes, the kernel's default */
	__type(value, __u64[LOOKUP_KEY_WORDS]);
} lookup_bloom_bits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lookup_words SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); /* which aligns blocks to lines, too */
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lookup_block);
} lookup_blocks SEC(".maps");

const volatile __u64 lookup_bloom_bits_count = 64; /* of lookup_words */
const volatile __u64 lookup_blocks_count = 1;

/* What was found, and bits of memory that finding it depended on. */
struct rival_answer {
	__u64 read;
	int is_match;
};

static __always_inline int rival_hash_map(const struct flow_key *key)
{
	return bpf_map_lookup_elem(&lookup_hash, key->word) != 0;
}

/* Counts as one would who has a hash map. */
static __always_inline int rival_hash_counted(const struct flow_key *key, __u64 bytes)
{
	struct lookup_count *count = bpf_map_lookup_elem(&lookup_counted, key->word);

	if (!count)
		return 0;
	__sync_fetch_and_add(&count->packets, 1);
	__sync_fetch_and_add(&count->bytes, bytes);
	return 1;
}

static __always_inline int rival_hash_map6(const struct flow_key *key)
{
	return bpf_map_lookup_elem(&lookup_hash6, key->word) != 0;
}

static __always_inline int rival_lru_map(const struct flow_key *key)
{
	return bpf_map_lookup_elem(&lookup_lru, key->word) != 0;
}

static __always_inline int rival_lpm_trie(const struct flow_key *key)
{
	const struct lookup_lpm_key at = { .length = 32, .source = key->word[0] };

	return bpf_map_lookup_elem(&lookup_lpm, &at) != 0;
}

static __always_inline int rival_bloom_map(const struct flow_key *key)
{
	return bpf_map_peek_elem(&lookup_bloom_bits, (void *)key->word) == 0;
}

/* Of the whole flow. */
static __always_inline __u64 rival_hash(const struct abi_config *config, const struct flow_key *key)
{
	const __u64 mask[LOOKUP_KEY_WORDS] = { ~0ULL, ~0ULL };
	const struct hash_input input = { &abi_active(config)->secret, key->word, mask, 0, FLOW_IPV4 };

	return hash_of(&input);
}

static __always_inline int rival_bloom(const struct flow_key *key)
{
	const struct abi_config *config = maps_config();
	__u64 hash;

	if (!config)
		return 0;
	hash = rival_hash(config, key);
	for (unsigned int i = 0; i < LOOKUP_BLOOM_HASHES; i++) {
		__u32 bit = lookup_bloom_bit(hash, i, lookup_bloom_bits_count), at = bit / 64;
		const __u64 *word = bpf_map_lookup_elem(&lookup_words, &at);

		if (!word || !(*word & 1ULL << bit % 64))
			return 0;
	}
	return 1;
}

static __always_inline int rival_blocked_bloom(const struct flow_key *key)
{
	const struct abi_config *config = maps_config();
	const struct lookup_block *block;
	__u64 hash, all = 1;
	__u32 at;

	if (!config)
		return 0;
	hash = rival_hash(config, key);
	at = lookup_block_of(hash, lookup_blocks_count);
	block = bpf_map_lookup_elem(&lookup_blocks, &at);
	if (!block)
		return 0;
	for (unsigned int i = 0; i < LOOKUP_BLOCKED_HASHES; i++) {
		__u32 bit = lookup_block_bit(&hash);

		all &= block->word[bit / 64 % LOOKUP_BLOCK_WORDS] >> bit % 64;
	}
	return all;
}

/* As the filter would be with a hash map for its table: one look-up for each shape. */
static __always_inline int rival_hash_shapes(const struct flow_key *key)
{
	const struct abi_config *config = maps_config();
	const struct abi_shape_list *list;

	if (!config)
		return 0;
	list = abi_shapes(abi_active(config), FLOW_IPV4);
	for (__u32 i = 0; i < ABI_SHAPES_MAX; i++) {
		const struct abi_shape *shape = &list->shape[abi_shape_place(1ULL << i)];
		__u64 word[LOOKUP_KEY_WORDS];

		if (i >= READ_ONCE(list->count))
			break;
		word[0] = key->word[0] & shape->mask[0];
		word[1] = (key->word[1] & shape->mask[1]) | shape->id;
		if (bpf_map_lookup_elem(&lookup_hash, word))
			return 1;
	}
	return 0;
}

/* Only the look-up, of the one shape that there is, and of an exact table the record of a hit. */
static __always_inline struct rival_answer rival_cuckoo(const struct abi_config *config, const struct flow_key *key)
{
	const struct abi_table *table = abi_active(config);
	const struct abi_shape *shape = abi_shape_at(abi_shapes(table, FLOW_IPV4), 0);
	const struct hash_input input = shape_key(table, shape, key, FLOW_IPV4);
	const struct bucket_layout layout = bucket_layout(BUCKET_16);
	const __u64 hash = hash_of(&input);
	struct bucket_pair pair = bucket_pair(hash, lookup_geometry(&table->geometry), layout);
	struct lookup_view view;
	__u64 first, second, read;
	__u32 end;

	if (!lookup_buckets(table, pair, BUCKET_16, &view))
		return (struct rival_answer){ 0, 0 };
	read = view.first.word[0] ^ view.second.word[0];
	first = bucket_match_word(view.first.word[0], layout, pair.fingerprint);
	second = bucket_match_word(view.second.word[0], layout, pair.fingerprint);
	if (!(first | second) || !xc_options.is_exact)
		return (struct rival_answer){ read, (first | second) != 0 };
	if (!lookup_record(lookup_slot(table, lookup_first_match(pair, first, second)), hash_tag(&input, hash), &view,
			   &end))
		return (struct rival_answer){ read, 0 };
	return (struct rival_answer){ read ^ end, 1 };
}

/* The value of a hit; of a miss only that there is none, which is a guess of the processor's. */
static __always_inline struct rival_answer rival_hash_map_read(const struct flow_key *key)
{
	const __u64 *value = bpf_map_lookup_elem(&lookup_hash, key->word);

	return value ? (struct rival_answer){ *value, 1 } : (struct rival_answer){ 0, 0 };
}

#endif
