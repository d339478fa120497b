// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "filter/hints.h"

#include <string.h>

#include <arpa/inet.h>

#include "hint.h"

/* The cost of reading a hint, in look-ups, rounded up. */
#define COST_PROBES 0.25

static unsigned int index_bits(enum flow_family family)
{
	return family == FLOW_IPV4 ? HINT_IPV4_BITS : HINT_IPV6_BITS;
}

/* ---- hint bits ---- */

/* Writes only if a bit is missing, so that the line stays in the caches of the readers. */
static void set(__u8 *hint, __u32 bits)
{
	if (~__atomic_load_n(hint, __ATOMIC_RELAXED) & bits)
		__atomic_fetch_or(hint, bits, __ATOMIC_RELEASE);
}

/*
 * Index number `i` of the indexes that the key's source prefix covers. The prefix must not be longer than the
 * bits that an index depends on.
 */
static __u32 index_within(const struct rule_key *key, __u32 i)
{
	const enum flow_family family = key->shape.family;
	const __u32 first = ntohl(hint_head(family, &key->key));

	return hint_index(family, htonl(first | i << (32 - index_bits(family))));
}

/* The number of indexes that the key's source prefix covers. */
static __u32 indexes_within(const struct rule_key *key)
{
	return 1U << (index_bits(key->shape.family) - key->shape.src_len);
}

/* Whether keys of the shape can match flows of every index, or of nearly every index. */
static bool is_everywhere(const struct rule_shape *shape)
{
	return index_bits(shape->family) - HINT_INDEX_BITS > shape->src_len || !shape->src_len;
}

void hints_mark(__u8 *hints, const struct rule_key *key, __u64 hint)
{
	const enum flow_family family = key->shape.family;
	__u8 *of_family = hints + family * ABI_HINT_INDEXES;

	if (hint == ABI_HINT_ALWAYS)
		return;
	if (key->shape.src_len >= index_bits(family))
		set(&of_family[hint_index(family, hint_head(family, &key->key))], hint);
	else if (is_everywhere(&key->shape))
		for (__u32 i = 0; i < ABI_HINT_INDEXES; i++)
			set(&of_family[i], hint);
	else
		for (__u32 i = 0; i < indexes_within(key); i++)
			set(&of_family[index_within(key, i)], hint);
}

bool hints_allow(const __u8 *hints, const struct rule_key *key, __u64 hint)
{
	const enum flow_family family = key->shape.family;
	const __u8 of_key = hints[family * ABI_HINT_INDEXES + hint_index(family, hint_head(family, &key->key))];

	return hint & ((of_key & ABI_HINT_ALL) | ABI_HINT_ALWAYS);
}

void hints_add(__u8 *hints, const __u8 *more)
{
	for (size_t i = 0; i < ABI_HINTS; i++)
		set(&hints[i], more[i]);
}

void hints_replace(__u8 *hints, const __u8 *wanted)
{
	for (size_t i = 0; i < ABI_HINTS; i++)
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

/* ---- shortcuts ---- */

bool hints_can_shorten(const struct rule_shape *shape)
{
	return shape->family == FLOW_IPV4 && shape->action == RULE_DROP && !shape->fields && !shape->dst_len &&
	       shape->src_len && shape->src_len <= HINT_IPV4_BITS;
}

static void clear(__u8 *hint)
{
	if (*hint & ABI_HINT_SHORTCUT)
		__atomic_fetch_and(hint, ABI_HINT_ALL, __ATOMIC_RELEASE);
}

void hints_set_shortcuts(__u8 *hints, const struct rule_key *key)
{
	__u8 *of_family = hints + key->shape.family * ABI_HINT_INDEXES;

	if (!hints_can_shorten(&key->shape))
		return;
	for (__u32 i = 0; i < indexes_within(key); i++)
		set(&of_family[index_within(key, i)], ABI_HINT_SHORTCUT);
}

void hints_clear_shortcuts(__u8 *hints, const struct rule_key *key)
{
	__u8 *of_family = hints + key->shape.family * ABI_HINT_INDEXES;

	if (!hints_can_shorten(&key->shape))
		return;
	for (__u32 i = 0; i < indexes_within(key); i++)
		clear(&of_family[index_within(key, i)]);
}

void hints_clear_all_shortcuts(__u8 *hints)
{
	for (size_t i = 0; i < ABI_HINTS; i++)
		clear(&hints[i]);
}

/* ---- lists of shapes, and whether hints pay ---- */

void hints_compile(struct abi_shape_list *list, enum flow_family family, bool has_counts)
{
	list->passing = list->behind_shortcut = list->new_only = 0;
	list->all = list->count ? ~0U >> (32 - list->count) : 0;
	memset(list->candidates, 0, sizeof(list->candidates));
	for (__u32 i = 0; i < list->count; i++) {
		const struct abi_shape *shape = abi_shape_at(list, i);
		const struct rule_shape what = rule_shape_of_compiled(shape, family);

		if (shape->tag & ABI_TAG_PASS)
			list->passing |= 1U << i;
		if (shape->tag & ABI_TAG_NEW)
			list->new_only |= 1U << i;
		if (shape->tag & ABI_TAG_PASS || (has_counts && hints_can_shorten(&what)))
			list->behind_shortcut |= 1U << i;
		for (__u32 hint = 0; hint <= ABI_HINT_ALL; hint++)
			if (shape->hint & (hint | ABI_HINT_ALWAYS))
				list->candidates[hint] |= 1U << i;
	}
}

__u32 hints_leave(const struct abi_shape_list *list, __u32 hint)
{
	const __u32 candidates = list->candidates[hint & ABI_HINT_ALL];

	return hint & ABI_HINT_SHORTCUT ? candidates & list->behind_shortcut : candidates;
}

double hints_mean_probes(const __u8 *hints, const struct abi_shape_list *list, enum flow_family family)
{
	const __u8 *of_family = hints + family * ABI_HINT_INDEXES;
	__u32 indexes[1 << 8] = {}; /* how many indexes have each value of a hint */
	__u64 probes = 0;

	for (__u32 i = 0; i < ABI_HINT_INDEXES; i++)
		indexes[of_family[i]]++;
	for (__u32 hint = 0; hint < sizeof(indexes) / sizeof(indexes[0]); hint++)
		probes += (__u64)indexes[hint] * __builtin_popcount(hints_leave(list, hint));
	return (double)probes / ABI_HINT_INDEXES;
}

bool hints_pay(const __u8 *hints, const struct abi_shape_list *list, enum flow_family family)
{
	return list->count && list->count - hints_mean_probes(hints, list, family) > COST_PROBES;
}
