// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "hints.h"

#include <arpa/inet.h>

#include "hint.h"

/* What reading a hint costs a packet, in probes, with a reserve. */
#define COST_PROBES 0.25
#define BYTE_VALUES (1 << ABI_HINT_BITS)

static unsigned int index_bits(enum flow_family family)
{
	return family == FLOW_IPV4 ? HINT_IPV4_BITS : HINT_IPV6_BITS;
}

/* ---- setting ---- */

/* Most are set already, and are left alone: their line stays in the caches of the readers. */
static void set(__u8 *byte, __u8 hint)
{
	if (!(__atomic_load_n(byte, __ATOMIC_RELAXED) & hint))
		__atomic_fetch_or(byte, hint, __ATOMIC_RELEASE);
}

static void set_all(__u8 *bytes, __u8 hint)
{
	for (__u32 i = 0; i < ABI_HINT_INDEXES; i++)
		set(&bytes[i], hint);
}

/* For every head that begins with the key's source prefix, which is shorter than a head's bits. */
static void set_prefix(__u8 *bytes, const struct rule_key *key, __u8 hint)
{
	const enum flow_family family = key->shape.family;
	const unsigned int bits = index_bits(family);
	const __u32 first = ntohl(hint_head(family, &key->key));
	const __u32 heads = 1U << (bits - key->shape.src_len);

	for (__u32 i = 0; i < heads; i++)
		set(&bytes[hint_index(family, htonl(first | i << (32 - bits)))], hint);
}

/* A key with less of a source prefix can match flows of every index, or nearly so. */
static bool is_everywhere(const struct rule_shape *shape)
{
	return index_bits(shape->family) - HINT_INDEX_BITS > shape->src_len || !shape->src_len;
}

void hints_mark(__u64 *hints, const struct rule_key *key, __u64 hint)
{
	const enum flow_family family = key->shape.family;
	__u8 *bytes = (__u8 *)hints + family * ABI_HINT_INDEXES;

	if (hint == ABI_HINT_ALWAYS)
		return;
	if (key->shape.src_len >= index_bits(family))
		set(&bytes[hint_index(family, hint_head(family, &key->key))], hint);
	else if (is_everywhere(&key->shape))
		set_all(bytes, hint);
	else
		set_prefix(bytes, key, hint);
}

bool hints_allow(const __u64 *hints, const struct rule_key *key, __u64 hint)
{
	const enum flow_family family = key->shape.family;
	const __u8 *bytes = (const __u8 *)hints + family * ABI_HINT_INDEXES;

	return hint & (bytes[hint_index(family, hint_head(family, &key->key))] | ABI_HINT_ALWAYS);
}

void hints_add(__u64 *hints, const __u64 *more)
{
	for (size_t i = 0; i < ABI_HINT_ELEMENTS; i++)
		if (more[i] & ~hints[i])
			__atomic_fetch_or(&hints[i], more[i], __ATOMIC_RELEASE);
}

void hints_replace(__u64 *hints, const __u64 *wanted)
{
	for (size_t i = 0; i < ABI_HINT_ELEMENTS; i++)
		if (hints[i] != wanted[i])
			__atomic_store_n(&hints[i], wanted[i], __ATOMIC_RELEASE);
}

__u64 hints_choose(const __u64 *taken, size_t count, const struct rule_shape *shape)
{
	unsigned int shapes[ABI_HINT_BITS] = {};
	unsigned int best = 0;

	if (is_everywhere(shape))
		return ABI_HINT_ALWAYS;
	for (size_t i = 0; i < count; i++)
		if (taken[i] && taken[i] < ABI_HINT_ALWAYS)
			shapes[__builtin_ctzll(taken[i])]++;
	for (unsigned int bit = 1; bit < ABI_HINT_BITS; bit++)
		if (shapes[bit] < shapes[best])
			best = bit;
	return 1ULL << best;
}

/* ---- what they are worth ---- */

static unsigned int probes_of(const struct abi_shape_list *list, __u8 byte)
{
	unsigned int probes = 0;

	for (__u32 i = 0; i < list->count; i++)
		probes += !!(list->shape[i].hint & (byte | ABI_HINT_ALWAYS));
	return probes;
}

double hints_mean_probes(const __u64 *hints, const struct abi_shape_list *list, enum flow_family family)
{
	const __u8 *bytes = (const __u8 *)hints + family * ABI_HINT_INDEXES;
	__u32 indexes[BYTE_VALUES] = {};
	__u64 probes = 0;

	for (__u32 i = 0; i < ABI_HINT_INDEXES; i++)
		indexes[bytes[i]]++;
	for (unsigned int byte = 0; byte < BYTE_VALUES; byte++)
		probes += (__u64)indexes[byte] * probes_of(list, byte);
	return (double)probes / ABI_HINT_INDEXES;
}

__u32 hints_to_read(const __u64 *hints, const struct abi_shape_list *list, enum flow_family family)
{
	__u32 all = 0;

	for (__u32 i = 0; i < list->count; i++)
		all |= list->shape[i].hint;
	return list->count - hints_mean_probes(hints, list, family) > COST_PROBES ? all : 0;
}
