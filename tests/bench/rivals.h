/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps of rivals.bpf.h: sized, filled, and what they take. */
#ifndef XDP_CUCKOO_BENCH_RIVALS_H
#define XDP_CUCKOO_BENCH_RIVALS_H

#include "bench/packet_path.h"

#define RIVALS_LISTED 0          /* the first flow with a rule */
#define RIVALS_OTHER 0x80000000U /* and the first without */
#define RIVALS_BATCH 65536

enum rival {
	RIVAL_NONE,
	RIVAL_TABLE, /* ours */
	RIVAL_HASH,
	RIVAL_HASH_COUNTED,
	RIVAL_HASH_SHAPES,
	RIVAL_HASH6,
	RIVAL_LRU,
	RIVAL_LPM,
	RIVAL_BLOOM_MAP,
	RIVAL_BLOOM,
	RIVAL_BLOCKED_BLOOM,
	RIVALS,
};

static const char *const rival_maps[RIVALS] = {
	[RIVAL_HASH] = "lookup_hash",
	[RIVAL_HASH_COUNTED] = "lookup_counted",
	[RIVAL_HASH_SHAPES] = "lookup_hash",
	[RIVAL_HASH6] = "lookup_hash6",
	[RIVAL_LRU] = "lookup_lru",
	[RIVAL_LPM] = "lookup_lpm",
	[RIVAL_BLOOM_MAP] = "lookup_bloom_bits",
	[RIVAL_BLOOM] = "lookup_words",
	[RIVAL_BLOCKED_BLOOM] = "lookup_blocks",
};

struct rival_filling {
	enum rival rival;
	struct raw_filter *filter;
	int map;
	void *memory; /* of a Bloom filter in an array */
	size_t bytes;
	/* Of others, a batch. */
	__u32 count;
	__u64 *keys;
	void *values;
};

/* ---- sizes ---- */

static inline __u64 rival_words(__u32 rules)
{
	return ((__u64)rules * LOOKUP_BLOOM_BITS + 63) / 64;
}

static inline __u64 rival_blocks(__u32 rules)
{
	return (rival_words(rules) + LOOKUP_BLOCK_WORDS - 1) / LOOKUP_BLOCK_WORDS;
}

/* An LRU map evicts before it is full: it needs room to keep them all, or nearly. */
static inline __u32 rival_entries(enum rival rival, __u32 rules)
{
	switch (rival) {
	case RIVAL_LRU:
		return rules + rules / 16 + 4096;
	case RIVAL_BLOOM:
		return rival_words(rules);
	case RIVAL_BLOCKED_BLOOM:
		return rival_blocks(rules);
	default:
		return rules;
	}
}

/* Of an object that is not loaded yet. */
static inline int rival_size(const struct raw_filter *filter, enum rival rival, __u32 rules)
{
	__u64 *bits = raw_filter_constant(filter->object, "lookup_bloom_bits_count");
	__u64 *blocks = raw_filter_constant(filter->object, "lookup_blocks_count");

	if (!rival_maps[rival])
		return 0;
	if (!bits || !blocks)
		return -ENOENT;
	*bits = rival_words(rules) * 64;
	*blocks = rival_blocks(rules);
	return bpf_map__set_max_entries(packet_path_map(filter, rival_maps[rival]), rival_entries(rival, rules));
}

static inline double rival_mib(const struct raw_filter *filter, enum rival rival)
{
	return rival_maps[rival] ? packet_path_mib(filter, rival_maps[rival]) : 0;
}

/* ---- filling ---- */

static inline bool rival_is_array(enum rival rival)
{
	return rival == RIVAL_BLOOM || rival == RIVAL_BLOCKED_BLOOM;
}

static inline void rival_begin(struct rival_filling *filling)
{
	const struct bpf_map *map;

	if (!rival_maps[filling->rival])
		return;
	map = packet_path_map(filling->filter, rival_maps[filling->rival]);
	filling->map = bpf_map__fd(map);
	filling->keys = calloc(RIVALS_BATCH, bpf_map__key_size(map) + 1);
	filling->values = calloc(RIVALS_BATCH, bpf_map__value_size(map));
	if (!filling->keys || !filling->values)
		die("batch", ENOMEM);
	if (!rival_is_array(filling->rival))
		return;
	filling->bytes = (size_t)bpf_map__max_entries(map) * bpf_map__value_size(map);
	filling->memory = mmap(NULL, filling->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, filling->map, 0);
	if (filling->memory == MAP_FAILED)
		die("mmap", errno);
}

static inline void rival_flush(struct rival_filling *filling)
{
	__u32 count = filling->count;

	if (count && bpf_map_update_batch(filling->map, filling->keys, filling->values, &count, NULL))
		die("bpf_map_update_batch", errno);
	filling->count = 0;
}

static inline void rival_put_batch(struct rival_filling *filling, const void *key, size_t bytes)
{
	memcpy((char *)filling->keys + filling->count * bytes, key, bytes);
	if (++filling->count == RIVALS_BATCH)
		rival_flush(filling);
}

static inline void rival_set_bits(struct rival_filling *filling, const struct flow_key *key)
{
	static const __u64 mask[LOOKUP_KEY_WORDS] = { ~0ULL, ~0ULL };
	const struct hash_input input = { &filling->filter->config->table[0].secret, key->word, mask, 0, FLOW_IPV4 };
	__u64 hash = hash_of(&input), *word = filling->memory;
	struct lookup_block *block = filling->memory;

	if (filling->rival == RIVAL_BLOOM) {
		for (unsigned int i = 0; i < LOOKUP_BLOOM_HASHES; i++) {
			const __u32 bit = lookup_bloom_bit(hash, i, filling->bytes * 8);

			word[bit / 64] |= 1ULL << bit % 64;
		}
		return;
	}
	block += lookup_block_of(hash, filling->bytes / sizeof(*block));
	for (unsigned int i = 0; i < LOOKUP_BLOCKED_HASHES; i++) {
		const __u32 bit = lookup_block_bit(&hash);

		block->word[bit / 64] |= 1ULL << bit % 64;
	}
}

/* The words of a flow, or where there are shapes, of a key. */
static inline void rival_put(struct rival_filling *filling, const struct flow_key *key)
{
	const struct lookup_lpm_key source = { .length = 32, .source = key->word[0] };

	switch (filling->rival) {
	case RIVAL_BLOOM:
	case RIVAL_BLOCKED_BLOOM:
		rival_set_bits(filling, key);
		break;
	case RIVAL_LPM:
		rival_put_batch(filling, &source, sizeof(source));
		break;
	case RIVAL_BLOOM_MAP:
		if (bpf_map_update_elem(filling->map, NULL, key->word, 0))
			die("bpf_map_update_elem", errno);
		break;
	case RIVAL_HASH6:
		rival_put_batch(filling, key->word, LOOKUP_KEY6_WORDS * sizeof(__u64));
		break;
	case RIVAL_NONE:
		break;
	default:
		rival_put_batch(filling, key->word, LOOKUP_KEY_WORDS * sizeof(__u64));
	}
}

static inline void rival_end(struct rival_filling *filling)
{
	if (filling->memory)
		munmap(filling->memory, filling->bytes);
	else if (filling->keys)
		rival_flush(filling);
	free(filling->keys);
	free(filling->values);
}

#endif
