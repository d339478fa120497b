/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One look-up: two buckets, both read before either is tested, so that their cache misses overlap;
 * in an exact table also the record of the slot that matches. Compiles on the host too: see maps.h.
 *
 * The writer moves an entry by copying it, incrementing the sequence, then overwriting the source.
 * So a reader that saw neither copy sees the sequence changed, and looks again. Relies on loads
 * staying in order, as on x86; elsewhere the writer waits a grace period before it overwrites.
 */
#ifndef XDP_CUCKOO_PROBE_H
#define XDP_CUCKOO_PROBE_H

#include "abi.h"
#include "bucket.h"
#include "hash.h"
#include "maps.h"

#define PROBE_READ_ONCE(x) (*(const volatile typeof(x) *)&(x))
#define PROBE_SLOTS (2 * BUCKET_SLOTS) /* where a key may stand: its first bucket's, its second's */

enum probe_result {
	PROBE_MISS,
	PROBE_HIT,
	PROBE_UNSETTLED, /* entries moved meanwhile: there may be one that was missed */
};

#define PROBE_NO_SLOT (~0U)

struct probe_answer {
	enum probe_result result;
	__u32 slot; /* of a hit in an exact table, among those of both tables; else PROBE_NO_SLOT */
};

/* What one try has read. */
struct probe_view {
	__u64 sequence;
	struct bucket first, second;
};

/* Member by member, or clang 14 copies it byte by byte. */
FLOW_INLINE struct bucket_geometry probe_geometry(const struct abi_table *table)
{
	return (struct bucket_geometry){ PROBE_READ_ONCE(table->geometry.buckets),
					 PROBE_READ_ONCE(table->geometry.step_shift) };
}

FLOW_INLINE const void *probe_locate(const struct abi_table *table, __u32 bucket, enum bucket_format format)
{
	bucket += PROBE_READ_ONCE(table->first_bucket);
	return maps_bucket(format == BUCKET_8 ? bucket / 2 : bucket);
}

FLOW_INLINE struct bucket probe_read(const void *at, __u32 bucket, enum bucket_format format)
{
	const __u64 *word = at;
	const __u32 *half = at;

	if (format == BUCKET_8)
		return (struct bucket){ { PROBE_READ_ONCE(half[bucket % 2]) } };
	if (format == BUCKET_32)
		return (struct bucket){ { PROBE_READ_ONCE(word[0]), PROBE_READ_ONCE(word[1]) } };
	return (struct bucket){ { PROBE_READ_ONCE(word[0]) } };
}

/* False where the table has no such buckets. */
FLOW_INLINE int probe_look(const struct abi_table *table, struct bucket_pair pair, enum bucket_format format,
			   struct probe_view *view)
{
	const void *first = probe_locate(table, pair.first, format);
	const void *second = probe_locate(table, pair.second, format);

	if (!first || !second)
		return 0;
	view->sequence = PROBE_READ_ONCE(table->sequence);
	view->first = probe_read(first, pair.first, format);
	view->second = probe_read(second, pair.second, format);
	return 1;
}

/* Whether no entry was moved since: then what was seen there is, and what was not is not. */
FLOW_INLINE int probe_is_still(const struct abi_table *table, const struct probe_view *view)
{
	return PROBE_READ_ONCE(table->sequence) == view->sequence;
}

/* What it means that a try has found nothing. */
FLOW_INLINE enum probe_result probe_missed(const struct abi_table *table, const struct probe_view *view)
{
	return probe_is_still(table, view) ? PROBE_MISS : PROBE_UNSETTLED;
}

/* Whether the record of a slot, among those of both tables, is the key's; then *end is when that ends. */
FLOW_INLINE int probe_record(__u32 slot, __u64 tag, __u32 *end)
{
	const __u64 *record = maps_record(slot);
	__u64 difference;

	if (!record)
		return 0;
	difference = PROBE_READ_ONCE(*record) ^ tag;
	*end = difference;
	return difference <= ABI_END_MAX;
}

/*
 * Asks for the records of a bucket. Under attack a processor guesses that there is a match, and so its cache misses
 * overlap with those of the buckets; packets that match no fingerprint do without.
 */
FLOW_INLINE void probe_touch(__u32 slot)
{
	const __u64 *record = maps_record(slot);

	if (record)
		(void)PROBE_READ_ONCE(*record);
}

/* Then the key has no other entry: it matches nothing. */
FLOW_INLINE int probe_has_ended(const struct abi_table *table, __u32 end)
{
	return end && maps_tick() - PROBE_READ_ONCE(table->epoch) >= end;
}

/* The slot among those of both tables. */
FLOW_INLINE __u32 probe_slot(const struct abi_table *table, __u32 slot)
{
	return PROBE_READ_ONCE(table->first_slot) + slot;
}

/* ---- compact: a fingerprint decides ---- */

FLOW_INLINE struct probe_answer probe_fingerprints(const struct abi_table *table, __u64 hash, enum bucket_format format)
{
	const struct bucket_layout layout = bucket_layout(format);
	const __u16 *prefixes = maps_prefixes();
	struct bucket_pair pair = bucket_pair(hash, probe_geometry(table), layout);
	struct probe_view view;

	if (!probe_look(table, pair, format, &view))
		return (struct probe_answer){ PROBE_MISS, PROBE_NO_SLOT };
	if (bucket_match(view.first, layout, pair.fingerprint, prefixes) |
	    bucket_match(view.second, layout, pair.fingerprint, prefixes))
		return (struct probe_answer){ PROBE_HIT, PROBE_NO_SLOT };
	return (struct probe_answer){ probe_missed(table, &view), PROBE_NO_SLOT };
}

FLOW_INLINE struct probe_answer probe_compact(const struct abi_table *table, __u64 hash)
{
	switch (xc_options.format) {
	case BUCKET_32:
		return probe_fingerprints(table, hash, BUCKET_32);
	case BUCKET_8:
		return probe_fingerprints(table, hash, BUCKET_8);
	case BUCKET_17:
		return probe_fingerprints(table, hash, BUCKET_17);
	default:
		return probe_fingerprints(table, hash, BUCKET_16);
	}
}

/* ---- exact: a record decides ---- */

/* Every slot whose fingerprint matches. */
FLOW_INLINE struct probe_answer probe_records(const struct abi_table *table, __u64 hash, __u64 tag)
{
	const struct bucket_layout layout = bucket_layout(BUCKET_16);
	struct bucket_pair pair = bucket_pair(hash, probe_geometry(table), layout);
	struct probe_view view;

	if (!probe_look(table, pair, BUCKET_16, &view))
		return (struct probe_answer){ PROBE_MISS, PROBE_NO_SLOT };
	for (unsigned int i = 0; i < PROBE_SLOTS; i++) {
		struct bucket bucket = i < BUCKET_SLOTS ? view.first : view.second;
		__u32 at = i < BUCKET_SLOTS ? pair.first : pair.second, end;
		__u32 slot = probe_slot(table, at * BUCKET_SLOTS + i % BUCKET_SLOTS);

		if (bucket_get(bucket, layout, i % BUCKET_SLOTS, 0) != pair.fingerprint ||
		    !probe_record(slot, tag, &end))
			continue;
		if (probe_has_ended(table, end))
			break;
		return (struct probe_answer){ PROBE_HIT, slot };
	}
	return (struct probe_answer){ probe_missed(table, &view), PROBE_NO_SLOT };
}

/*
 * The slot of the first match, its two buckets taken in turn: the lowest bit of a match is exact.
 * By arithmetic alone: a branch would be mispredicted half the time, since which bucket it is in
 * is a coin toss. The matches come 8 bits apart, each of the second bucket before its like of the
 * first; the multiplier holds the number of each where a bit there moves it to the top.
 */
#define PROBE_ORDER 0x0020406080a0c0e0ULL

FLOW_INLINE __u32 probe_first_match(struct bucket_pair pair, __u64 first, __u64 second)
{
	__u64 match = (first | second >> 8) >> 7;
	__u64 order = (match & -match) * PROBE_ORDER >> 61;
	__u32 step = pair.first ^ pair.second;

	asm volatile("" : "+r"(order)); /* or some compilers make a branch of its lowest bit */
	return (pair.second ^ (step & -(__u32)(order & 1))) * BUCKET_SLOTS + (order >> 1);
}

/* ---- the tries ---- */

FLOW_INLINE __u64 probe_pack(struct probe_answer answer)
{
	return (__u64)answer.result << 32 | answer.slot;
}

/*
 * One further try, which looks at every slot; its answer, packed. Global functions, this and the next: rare, and
 * the verifier judges one try for all.
 */
__attribute__((noinline)) __u64 probe_try(const struct abi_table *table, __u64 hash, __u64 tag)
{
	if (!table)
		return probe_pack((struct probe_answer){ PROBE_MISS, PROBE_NO_SLOT });
	return probe_pack(xc_options.is_exact ? probe_records(table, hash, tag) : probe_compact(table, hash));
}

/*
 * The tries after the first; `last` is what that has said: a miss where it has found only a fingerprint. The
 * answer, packed.
 */
__attribute__((noinline)) __u64 probe_again(const struct abi_table *table, __u64 hash, __u64 tag,
					    enum probe_result last)
{
	__u64 retries = 0, packed = 0;
	enum probe_result result = last;

	for (int i = 1; i < ABI_SEQUENCE_TRIES; i++) {
		retries += result == PROBE_UNSETTLED;
		packed = probe_try(table, hash, tag);
		result = packed >> 32;
		if (result != PROBE_UNSETTLED)
			break;
	}
	if (retries)
		maps_count(ABI_COUNTER_RETRIES, retries);
	if (xc_options.is_exact && last == PROBE_MISS && result == PROBE_MISS)
		maps_count(ABI_COUNTER_STOPPED, 1);
	return packed;
}

FLOW_INLINE struct probe_answer probe_retry(const struct abi_table *table, __u64 hash, __u64 tag,
					    enum probe_result last)
{
	__u64 packed = probe_again(table, hash, tag, last);

	return (struct probe_answer){ (enum probe_result)(packed >> 32), packed };
}

/*
 * The common case is inline: most packets match no fingerprint, the others mostly the right one. Each
 * end is a return of its own: a result kept in a variable and tested later makes the verifier of Linux
 * 6.1 follow every value of it through all further shapes.
 */
FLOW_INLINE struct probe_answer probe_exact(const struct abi_table *table, __u64 hash, const struct hash_input *input)
{
	const struct bucket_layout layout = bucket_layout(BUCKET_16);
	struct bucket_pair pair = bucket_pair(hash, probe_geometry(table), layout);
	struct probe_view view;
	__u64 first, second;

	if (!probe_look(table, pair, BUCKET_16, &view))
		return (struct probe_answer){ PROBE_MISS, PROBE_NO_SLOT };
	first = bucket_match_word(view.first.word[0], layout, pair.fingerprint);
	second = bucket_match_word(view.second.word[0], layout, pair.fingerprint);
	if (first | second) {
		__u32 slot, end;
		__u64 tag;

		probe_touch(probe_slot(table, pair.first * BUCKET_SLOTS));
		probe_touch(probe_slot(table, pair.second * BUCKET_SLOTS));
		slot = probe_slot(table, probe_first_match(pair, first, second));
		tag = hash_tag(input, hash);
		if (!probe_record(slot, tag, &end))
			return probe_retry(table, hash, tag, PROBE_MISS);
		if (!probe_has_ended(table, end))
			return (struct probe_answer){ PROBE_HIT, slot };
		if (probe_missed(table, &view) == PROBE_MISS)
			return (struct probe_answer){ PROBE_MISS, PROBE_NO_SLOT };
		return probe_retry(table, hash, tag, PROBE_UNSETTLED);
	}
	if (probe_missed(table, &view) == PROBE_MISS)
		return (struct probe_answer){ PROBE_MISS, PROBE_NO_SLOT };
	return probe_retry(table, hash, hash_tag(input, hash), PROBE_UNSETTLED);
}

/* `hash` is that of `input`, which is where an exact table has the tag from. */
FLOW_INLINE struct probe_answer probe(const struct abi_table *table, __u64 hash, const struct hash_input *input)
{
	struct probe_answer answer;

	if (xc_options.is_exact)
		return probe_exact(table, hash, input);
	answer = probe_compact(table, hash);
	if (answer.result == PROBE_UNSETTLED)
		return probe_retry(table, hash, 0, PROBE_UNSETTLED);
	return answer;
}

#endif
