/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Looks one key up in a table. abi.h defines the words. A key has two buckets. Both are read before either is tested,
 * so that their cache misses overlap. In an exact table the record of a slot decides whether a matching fingerprint is
 * the key's. Tests compile this file for the host too: see maps.h.
 *
 * Why there are several tries: the writer may move an entry from one bucket to the other during a look-up. It copies
 * the entry, increments the table's sequence, then overwrites the source. A reader that saw neither copy sees that the
 * sequence changed, and tries again.
 *
 * Why that works where processors reorder loads: a load whose address is computed from the value of an earlier load
 * comes after it, on Armv8 and RISC-V. A try loads the sequence, then both buckets, then the records of slots that
 * match, then the sequence again. Each address depends on the loads of the step before: see lookup_after(). The record
 * of the first try needs no help, because its slot is computed from both buckets. tests/helpers/dependencies.py checks
 * this in the object code, tests/helpers/memory_order.py checks that it is enough.
 */
#ifndef XDP_CUCKOO_LOOKUP_KEY_H
#define XDP_CUCKOO_LOOKUP_KEY_H

#include "abi.h"
#include "bucket.h"
#include "hash.h"
#include "maps.h"
#include "verifier.h"

#define LOOKUP_SLOTS (2 * BUCKET_SLOTS) /* of the two buckets of a key */

enum lookup_result {
	LOOKUP_MISS,
	LOOKUP_HIT,
	LOOKUP_UNSETTLED, /* entries moved during the try, so it may have missed the key */
};

#define LOOKUP_NO_SLOT (~0U)
#define LOOKUP_DRAWN (1U << 31) /* no slot has this bit: see count_draw() */

struct lookup_answer {
	enum lookup_result result;
	__u32 slot; /* in the maps, of a hit in an exact table; else LOOKUP_NO_SLOT */
};

/* What one try reads. */
struct lookup_view {
	__u64 sequence;
	struct bucket first, second;
	__u64 after; /* of all loads of buckets and records so far: see lookup_after() */
};

/*
 * Returns 0, but computes it from `seen`, in a way that compilers cannot know. If you add it to an address, a load
 * from there comes after the load of `seen`. Call it before you compare `seen` with anything: after a comparison, a
 * compiler may use the equal value instead.
 */
FLOW_INLINE __u64 lookup_after(__u64 seen)
{
#if ABI_LOADS_IN_ORDER
	(void)seen;
	return 0;
#elif defined(__bpf__)
	asm volatile("%0 &= 0" : "+r"(seen));
	return seen;
#else
	__atomic_thread_fence(__ATOMIC_ACQUIRE); /* tests on the host */
	return seen & 0;
#endif
}

/* Copies each member by itself, not byte by byte. */
FLOW_INLINE struct bucket_geometry lookup_geometry(const struct bucket_geometry *geometry)
{
	return (struct bucket_geometry){ READ_ONCE(geometry->buckets), READ_ONCE(geometry->step_shift) };
}

FLOW_INLINE const void *lookup_locate(const struct abi_table *table, __u32 bucket, enum bucket_format format)
{
	bucket += format == BUCKET_ADDRESS ? READ_ONCE(table->addresses.first_bucket) : READ_ONCE(table->first_bucket);
	return maps_bucket(format == BUCKET_8 ? bucket / 2 : bucket);
}

FLOW_INLINE struct bucket lookup_read(const void *at, __u32 bucket, enum bucket_format format)
{
	const __u64 *word = at;
	const __u32 *half = at;

	if (format == BUCKET_8)
		return (struct bucket){ { READ_ONCE(half[bucket % 2]) } };
	if (format == BUCKET_32)
		return (struct bucket){ { READ_ONCE(word[0]), READ_ONCE(word[1]) } };
	return (struct bucket){ { READ_ONCE(word[0]) } };
}

/* Reads both buckets. False if the map does not have them. */
FLOW_INLINE int lookup_buckets(const struct abi_table *table, struct bucket_pair pair, enum bucket_format format,
			       struct lookup_view *view)
{
	const void *first = lookup_locate(table, pair.first, format);
	const void *second = lookup_locate(table, pair.second, format);

	__u64 after;

	if (!first || !second)
		return 0;
	view->sequence = READ_ONCE(table->sequence);
	after = lookup_after(view->sequence);
	view->first = lookup_read(first + after, pair.first, format);
	view->second = lookup_read(second + after, pair.second, format);
	view->after =
		lookup_after(view->first.word[0] | view->first.word[1] | view->second.word[0] | view->second.word[1]);
	return 1;
}

/* The result of a try that did not find the key. */
FLOW_INLINE enum lookup_result lookup_missed(const struct abi_table *table, const struct lookup_view *view)
{
	const struct abi_table *again = (const void *)table + view->after;

	return READ_ONCE(again->sequence) == view->sequence ? LOOKUP_MISS : LOOKUP_UNSETTLED;
}

/* Whether the record of this slot has the tag. If so, *end is the record's end. */
FLOW_INLINE int lookup_record(__u32 slot, __u64 tag, struct lookup_view *view, __u32 *end)
{
	const __u64 *at = maps_record(slot);
	__u64 record, difference;

	if (!at)
		return 0;
	record = READ_ONCE(*at);
	view->after |= lookup_after(record);
	difference = record ^ tag;
	*end = difference;
	return difference <= ABI_END_MAX;
}

/*
 * Loads the records of a bucket into the cache. Under attack the processor predicts a match, so this miss
 * overlaps with the misses of the buckets. A packet that matches no fingerprint does not load records.
 */
FLOW_INLINE void lookup_touch(__u32 slot)
{
	const __u64 *record = maps_record(slot);

	if (record)
		(void)READ_ONCE(*record);
}

/* A key has one entry. If the entry has ended, the key matches nothing. */
FLOW_INLINE int lookup_has_ended(const struct abi_table *table, __u32 end)
{
	return end && maps_tick() - READ_ONCE(table->epoch) >= end;
}

/* Whether a key is looked up in the addresses; whether a record decides; and the hash, or the permuted prefix. */
FLOW_INLINE int lookup_is_address(const struct hash_input *input)
{
	__u64 id = input->last;

	hide_from_compiler(id); /* else clang 19 asks this first, and the verifier follows both ways at each look-up */
	return xc_options.has_addresses && input->family == FLOW_IPV4 && id & ABI_SHAPE_ADDRESSES;
}

FLOW_INLINE int lookup_has_tag(const struct hash_input *input)
{
	return xc_options.is_exact && !lookup_is_address(input);
}

FLOW_INLINE __u64 lookup_hash_of(const struct abi_table *table, const struct hash_input *input)
{
	return lookup_is_address(input) ? permute(&table->addresses.secret,
						  permute_number(bpf_ntohl((__be32)input->word[0]),
								 bpf_ntohl((__be32)input->mask[0]))) :
					  hash_of(input);
}

/* The number of a slot in the maps, which hold both tables. */
FLOW_INLINE __u32 lookup_slot(const struct abi_table *table, __u32 slot)
{
	return READ_ONCE(table->first_slot) + slot;
}

/*
 * The slot of the first match, in an order that alternates between the two buckets. Above its lowest bit, a match may
 * have false bits, but the first match is the lowest bit. The code has no branch: a match is equally likely in either
 * bucket, so a branch would be mispredicted half the time.
 *
 * After the shifts, possible matches are 8 bits apart. Each slot of the second bucket comes before the same slot of the
 * first. The multiplication moves the number of the lowest match to the top three bits.
 */
#define LOOKUP_ORDER 0x0020406080a0c0e0ULL

FLOW_INLINE __u32 lookup_first_match(struct bucket_pair pair, __u64 first, __u64 second)
{
	__u64 match = (first | second >> 8) >> 7;
	__u64 order = (match & -match) * LOOKUP_ORDER >> 61;
	__u32 step = pair.first ^ pair.second;

	hide_from_compiler(order); /* else some branch on its lowest bit */
	return (pair.second ^ (step & -(__u32)(order & 1))) * BUCKET_SLOTS + (order >> 1);
}

/* ---- a fingerprint decides: compact tables, and addresses, where it is exact ---- */

/* One try. In the addresses, `hash` is a permuted prefix. */
FLOW_INLINE struct lookup_answer lookup_fingerprints(const struct abi_table *table, __u64 hash,
						     enum bucket_format format)
{
	const struct bucket_layout layout = bucket_layout(format);
	const __u16 *prefixes = maps_prefixes();
	struct bucket_pair pair = format == BUCKET_ADDRESS ?
					  address_pair(hash, lookup_geometry(&table->addresses.geometry),
						       READ_ONCE(table->addresses.reciprocal)) :
					  bucket_pair(hash, lookup_geometry(&table->geometry), layout);
	struct lookup_view view;
	__u64 first, second;

	if (!lookup_buckets(table, pair, format, &view))
		return (struct lookup_answer){ LOOKUP_MISS, LOOKUP_NO_SLOT };
	first = bucket_match(view.first, layout, pair.fingerprint, prefixes);
	second = bucket_match(view.second, layout, pair.fingerprint | layout.side, prefixes);
	if (!(first | second))
		return (struct lookup_answer){ lookup_missed(table, &view), LOOKUP_NO_SLOT };
	if (format != BUCKET_ADDRESS || !xc_options.has_counts)
		return (struct lookup_answer){ LOOKUP_HIT, LOOKUP_NO_SLOT };
	return (struct lookup_answer){ LOOKUP_HIT, READ_ONCE(table->addresses.first_slot) +
							   lookup_first_match(pair, first, second) };
}

FLOW_INLINE struct lookup_answer lookup_compact(const struct abi_table *table, __u64 hash)
{
	switch (xc_options.has_addresses ? BUCKET_ADDRESS : xc_options.format) {
	case BUCKET_ADDRESS:
		return lookup_fingerprints(table, hash, BUCKET_ADDRESS);
	case BUCKET_32:
		return lookup_fingerprints(table, hash, BUCKET_32);
	case BUCKET_8:
		return lookup_fingerprints(table, hash, BUCKET_8);
	case BUCKET_17:
		return lookup_fingerprints(table, hash, BUCKET_17);
	default:
		return lookup_fingerprints(table, hash, BUCKET_16);
	}
}

/* ---- exact tables: a record decides ---- */

/* One try that checks every slot whose fingerprint matches. */
FLOW_INLINE struct lookup_answer lookup_records(const struct abi_table *table, __u64 hash, __u64 tag)
{
	const struct bucket_layout layout = bucket_layout(BUCKET_16);
	struct bucket_pair pair = bucket_pair(hash, lookup_geometry(&table->geometry), layout);
	struct lookup_view view;

	if (!lookup_buckets(table, pair, BUCKET_16, &view))
		return (struct lookup_answer){ LOOKUP_MISS, LOOKUP_NO_SLOT };
	for (unsigned int i = 0; i < LOOKUP_SLOTS; i++) {
		struct bucket bucket = i < BUCKET_SLOTS ? view.first : view.second;
		__u32 at, end;
		__u32 slot;

		hide_from_compiler(hash); /* computes the pair again, because the stack has no room to keep it */
		pair = bucket_pair(hash, lookup_geometry(&table->geometry), layout);
		at = i < BUCKET_SLOTS ? pair.first : pair.second;
		slot = lookup_slot(table, at * BUCKET_SLOTS + i % BUCKET_SLOTS);
		if (bucket_get(bucket, layout, i % BUCKET_SLOTS, 0) != pair.fingerprint ||
		    !lookup_record(slot + view.after, tag, &view, &end))
			continue;
		if (lookup_has_ended(table, end))
			break;
		return (struct lookup_answer){ LOOKUP_HIT, slot };
	}
	return (struct lookup_answer){ lookup_missed(table, &view), LOOKUP_NO_SLOT };
}

/* ---- the tries, for all kinds of table ---- */

/* A global function cannot return a struct, so it returns an answer packed into one number. */
FLOW_INLINE __u64 lookup_pack(struct lookup_answer answer)
{
	return (__u64)answer.result << 32 | answer.slot;
}

FLOW_INLINE struct lookup_answer lookup_unpack(__u64 packed)
{
	return (struct lookup_answer){ (enum lookup_result)(packed >> 32), packed };
}

/* One more try, which checks every matching slot. Returns the packed answer. One function for all tables needs more stack. */
RARE_FUNCTION __u64 lookup_try_exact(const struct abi_table *table, __u64 hash, __u64 tag)
{
	return table ? lookup_pack(lookup_records(table, hash, tag)) : 0;
}

RARE_FUNCTION __u64 lookup_try_compact(const struct abi_table *table, __u64 hash)
{
	return table ? lookup_pack(lookup_compact(table, hash)) : 0;
}

#define LOOKUP_NO_TAG 1 /* a fingerprint decides; a tag has no such bit */

/*
 * All tries after the first. In `first_try`, its result, LOOKUP_MISS means that a fingerprint matched, but not its
 * record. Returns the packed answer.
 */
RARE_FUNCTION __u64 lookup_again(const struct abi_table *table, __u64 hash, __u64 tag, enum lookup_result first_try)
{
	__u64 packed = 0, tries = 0;

	KEEP_LOOP
	while (tries < ABI_SEQUENCE_TRIES - 1) {
		packed = xc_options.is_exact && tag != LOOKUP_NO_TAG ? lookup_try_exact(table, hash, tag) :
								       lookup_try_compact(table, hash);
		tries++;
		if (packed >> 32 != LOOKUP_UNSETTLED)
			break;
	}
	tries -= first_try != LOOKUP_UNSETTLED;
	if (tries)
		maps_count(ABI_COUNTER_RETRIES, tries);
	if (xc_options.is_exact && first_try == LOOKUP_MISS && packed >> 32 == LOOKUP_MISS)
		maps_count(ABI_COUNTER_STOPPED, 1);
	return packed;
}

FLOW_INLINE struct lookup_answer lookup_retry(const struct abi_table *table, __u64 hash, __u64 tag,
					      enum lookup_result first_try)
{
	return lookup_unpack(lookup_again(table, hash, tag, first_try));
}

/*
 * The first try is inline and checks at most one record. Most packets match no fingerprint at all, and the
 * others mostly match the right one.
 */
FLOW_INLINE struct lookup_answer lookup_exact(const struct abi_table *table, __u64 hash, const struct hash_input *input)
{
	const struct bucket_layout layout = bucket_layout(BUCKET_16);
	struct bucket_pair pair = bucket_pair(hash, lookup_geometry(&table->geometry), layout);
	struct lookup_view view;
	__u64 first, second;

	if (!lookup_buckets(table, pair, BUCKET_16, &view))
		return (struct lookup_answer){ LOOKUP_MISS, LOOKUP_NO_SLOT };
	first = bucket_match_word(view.first.word[0], layout, pair.fingerprint);
	second = bucket_match_word(view.second.word[0], layout, pair.fingerprint);
	if (first | second) {
		__u32 slot, end;
		__u64 tag;

		lookup_touch(lookup_slot(table, pair.first * BUCKET_SLOTS));
		lookup_touch(lookup_slot(table, pair.second * BUCKET_SLOTS));
		slot = lookup_slot(table, lookup_first_match(pair, first, second));
		/* Here the misses of counter and record overlap. count_rule() would wait for its miss alone. */
		if (xc_options.has_counts)
			maps_touch_count(slot);
		tag = hash_tag(input, hash);
		if (!lookup_record(slot, tag, &view, &end))
			return lookup_retry(table, hash, tag, LOOKUP_MISS);
		if (!lookup_has_ended(table, end))
			return (struct lookup_answer){ LOOKUP_HIT, slot };
		if (lookup_missed(table, &view) == LOOKUP_MISS)
			return (struct lookup_answer){ LOOKUP_MISS, LOOKUP_NO_SLOT };
		return lookup_retry(table, hash, tag, LOOKUP_UNSETTLED);
	}
	if (lookup_missed(table, &view) == LOOKUP_MISS)
		return (struct lookup_answer){ LOOKUP_MISS, LOOKUP_NO_SLOT };
	return lookup_retry(table, hash, hash_tag(input, hash), LOOKUP_UNSETTLED);
}

/* Whether one try finds that the table surely lacks the key. If not, lookup_once() tells more. */
FLOW_INLINE int lookup_lacks(const struct abi_table *table, __u64 hash, const struct hash_input *input)
{
	if (lookup_is_address(input))
		return 0;
	switch (xc_options.format) {
	case BUCKET_32:
		return lookup_fingerprints(table, hash, BUCKET_32).result == LOOKUP_MISS;
	case BUCKET_8:
		return lookup_fingerprints(table, hash, BUCKET_8).result == LOOKUP_MISS;
	case BUCKET_17: /* this needs more stack than there is */
		return 0;
	default:
		return lookup_fingerprints(table, hash, BUCKET_16).result == LOOKUP_MISS;
	}
}

/* One try that checks every matching slot. It is a call, so its caller needs little stack. */
FLOW_INLINE struct lookup_answer lookup_once(const struct abi_table *table, __u64 hash, const struct hash_input *input)
{
	__u64 packed = lookup_has_tag(input) ? lookup_try_exact(table, hash, hash_tag(input, hash)) :
					       lookup_try_compact(table, hash);

	if (lookup_has_tag(input) && packed >> 32 == LOOKUP_MISS)
		maps_count(ABI_COUNTER_STOPPED, 1);
	return lookup_unpack(packed);
}

/* `hash` is the look-up hash of `input`. An exact table also computes the tag of `input`. */
FLOW_INLINE struct lookup_answer lookup_key(const struct abi_table *table, __u64 hash, const struct hash_input *input)
{
	struct lookup_answer answer;

	if (lookup_has_tag(input))
		return lookup_exact(table, hash, input);
	answer = lookup_compact(table, hash);
	return answer.result == LOOKUP_UNSETTLED ? lookup_retry(table, hash, LOOKUP_NO_TAG, LOOKUP_UNSETTLED) : answer;
}

#endif
