// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The hints of a table (include/shape.h): which bits a key needs, where they are, and whether to
 * read them pays. Knows neither the store nor the keys that a table has: who clears a bit that a
 * key needs makes packets miss the key.
 */
#include "filter/hints.h"

#include <string.h>

#include <arpa/inet.h>

#include "hint.h"

/* The cost of reading a hint, in look-ups, rounded up. */
#define COST_PROBES 0.25

/* A table has at least so many bytes of hints for each key that needs them: see hints_shift_for(). */
#define BYTES_OF_KEY 8

/* Hints that are read of each family: to tell the mean, and to choose, which happens at each change of a small table. */
#define SAMPLES ABI_HINT_INDEXES(ABI_HINT_SHIFT_MOST)
#define SAMPLES_TO_CHOOSE (SAMPLES / 8)

static unsigned int index_bits(struct hints hints, enum flow_family family)
{
	return family == FLOW_IPV4 ? 32 - hints.shift : HINT_IPV6_BITS;
}

__u8 *hints_at(struct hints hints, enum flow_family family, const struct flow_key *key)
{
	return hints.byte + (family << (32 - hints.shift)) + hint_index(family, hint_head(family, key), hints.shift);
}

/* ---- hint bits ---- */

/* Writes only if a bit is missing, so that the line stays in the caches of the readers. */
static void set(__u8 *hint, __u32 bits)
{
	if (~__atomic_load_n(hint, __ATOMIC_RELAXED) & bits)
		__atomic_fetch_or(hint, bits, __ATOMIC_RELEASE);
}

/*
 * The hint of index number `i` of those that the key's source prefix covers. The prefix must not be longer than the
 * bits that an index depends on.
 */
static __u8 *hint_within(struct hints hints, const struct rule_key *key, __u32 i)
{
	const enum flow_family family = key->shape.family;
	const __u32 first = ntohl(hint_head(family, &key->key));
	const __u32 head = htonl(first | i << (32 - index_bits(hints, family)));

	return hints.byte + (family << (32 - hints.shift)) + hint_index(family, head, hints.shift);
}

/* The number of indexes that the key's source prefix covers. */
static __u32 indexes_within(struct hints hints, const struct rule_key *key)
{
	return 1U << (index_bits(hints, key->shape.family) - key->shape.src_len);
}

/* Whether hints cannot tell where keys of the shape are, or would take long to set. */
static bool is_everywhere(const struct rule_shape *shape)
{
	return !shape->src_len || (shape->family == FLOW_IPV6 && shape->src_len < HINT_IPV6_BITS / 2);
}

void hints_mark(struct hints hints, const struct rule_key *key, __u64 hint)
{
	const enum flow_family family = key->shape.family;

	if (hint == ABI_HINT_ALWAYS)
		return;
	if (key->shape.src_len >= index_bits(hints, family))
		set(hints_at(hints, family, &key->key), hint);
	else if (is_everywhere(&key->shape))
		for (__u32 i = 0; i < ABI_HINT_INDEXES(hints.shift); i++)
			set(&hints.byte[(family << (32 - hints.shift)) + i], hint);
	else
		for (__u32 i = 0; i < indexes_within(hints, key); i++)
			set(hint_within(hints, key, i), hint);
}

bool hints_allow(struct hints hints, const struct rule_key *key, __u64 hint)
{
	const __u8 of_key = *hints_at(hints, key->shape.family, &key->key);

	return hint & ((of_key & ABI_HINT_ALL) | ABI_HINT_ALWAYS);
}

void hints_add(struct hints hints, const __u8 *more)
{
	for (size_t i = 0; i < ABI_HINTS(hints.shift); i++)
		set(&hints.byte[i], more[i] & ABI_HINT_ALL);
}

void hints_replace(struct hints hints, const __u8 *wanted)
{
	for (size_t i = 0; i < ABI_HINTS(hints.shift); i++)
		if (hints.byte[i] != wanted[i])
			__atomic_store_n(&hints.byte[i], wanted[i], __ATOMIC_RELEASE);
}

/* The largest shape does not count: packets of most indexes look it up anyway, however many indexes there are. */
__u32 hints_shift_for(const struct shape_list *shapes)
{
	double most = 0;
	__u32 shift = ABI_HINT_SHIFT_MOST;

	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		double all = 0, of_probed, largest = 0;

		for (size_t i = 0; i < shapes->count; i++) {
			const struct shape_list_entry *entry = &shapes->entry[i];

			if (entry->shape.family != family)
				continue;
			of_probed = 0;
			for (size_t k = 0; k < shapes->count; k++)
				if (rule_shape_equal(&shapes->entry[k].probed_as, &entry->probed_as))
					of_probed += shapes->entry[k].keys *
						     rule_expansion_factor(&shapes->entry[k].shape, &entry->probed_as);
			all += entry->keys * rule_expansion_factor(&entry->shape, &entry->probed_as);
			largest = of_probed > largest ? of_probed : largest;
		}
		most = all - largest > most ? all - largest : most;
	}
	while (shift > ABI_HINT_SHIFT_LEAST && ABI_HINT_INDEXES(shift) < BYTES_OF_KEY * most)
		shift--;
	return shift;
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

bool hints_can_shorten(const struct rule_shape *shape, __u32 shift)
{
	return shape->family == FLOW_IPV4 && shape->action == RULE_DROP &&
	       !(shape->fields & ~(RULE_NEW | RULE_ADDRESSES)) && !shape->dst_len && shape->src_len &&
	       shape->src_len <= 32 - shift;
}

static void clear(__u8 *hint)
{
	if (*hint & ABI_HINT_SHORTCUT)
		__atomic_fetch_and(hint, ABI_HINT_ALL, __ATOMIC_RELEASE);
}

void hints_set_shortcuts(struct hints hints, const struct rule_key *key)
{
	if (!hints_can_shorten(&key->shape, hints.shift))
		return;
	for (__u32 i = 0; i < indexes_within(hints, key); i++)
		set(hint_within(hints, key, i), ABI_HINT_SHORTCUT);
}

void hints_clear_shortcuts(struct hints hints, const struct rule_key *key)
{
	if (!hints_can_shorten(&key->shape, hints.shift))
		return;
	for (__u32 i = 0; i < indexes_within(hints, key); i++)
		clear(hint_within(hints, key, i));
}

void hints_clear_all_shortcuts(struct hints hints)
{
	for (size_t i = 0; i < ABI_HINTS(hints.shift); i++)
		clear(&hints.byte[i]);
}

/* ---- lists of shapes, and whether hints pay ---- */

void hints_compile(struct abi_shape_list *list, enum flow_family family, bool has_counts, __u32 shift)
{
	list->passing = list->behind_shortcut = list->new_only = 0;
	list->all = list->count ? ~0ULL >> (ABI_SHAPES_MAX - list->count) : 0;
	memset(list->candidates, 0, sizeof(list->candidates));
	for (__u32 i = 0; i < list->count; i++) {
		const struct abi_shape *shape = abi_shape_at(list, i);
		const struct rule_shape what = rule_shape_of_compiled(shape, family);

		if (shape->id & ABI_SHAPE_PASS)
			list->passing |= 1ULL << i;
		if (shape->id & ABI_SHAPE_NEW)
			list->new_only |= 1ULL << i;
		if (shape->id & ABI_SHAPE_PASS || (has_counts && hints_can_shorten(&what, shift)))
			list->behind_shortcut |= 1ULL << i;
		for (__u32 hint = 0; hint <= ABI_HINT_ALL; hint++)
			if (shape->hint & (hint | ABI_HINT_ALWAYS))
				list->candidates[hint] |= 1ULL << i;
	}
}

__u64 hints_leave(const struct abi_shape_list *list, __u32 hint)
{
	const __u64 candidates = list->candidates[hint & ABI_HINT_ALL];

	return hint & ABI_HINT_SHORTCUT ? candidates & list->behind_shortcut : candidates;
}

/* Reads so many hints: one of each range of indexes, at another position in each. */
static double mean_probes(struct hints hints, const struct abi_shape_list *list, enum flow_family family, __u32 samples)
{
	const __u8 *const first = hints.byte + ((size_t)family << (32 - hints.shift));
	const __u32 range = ABI_HINT_INDEXES(hints.shift) / samples;
	__u32 indexes[1 << 8] = {}; /* how many indexes have each value of a hint */
	__u64 probes = 0;

	for (__u32 i = 0; i < samples; i++)
		indexes[first[i * range + i % range]]++;
	for (__u32 hint = 0; hint < sizeof(indexes) / sizeof(indexes[0]); hint++)
		probes += (__u64)indexes[hint] * __builtin_popcountll(hints_leave(list, hint));
	return (double)probes / samples;
}

double hints_mean_probes(struct hints hints, const struct abi_shape_list *list, enum flow_family family)
{
	return mean_probes(hints, list, family, SAMPLES);
}

bool hints_pay(struct hints hints, const struct abi_shape_list *list, enum flow_family family)
{
	return list->count && list->count - mean_probes(hints, list, family, SAMPLES_TO_CHOOSE) > COST_PROBES;
}
