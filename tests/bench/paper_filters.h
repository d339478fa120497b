/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The filters of the paper behind one interface that works on arrays of keys, so that no indirect call
 * stands between two keys: our engine in any layout, and the baselines. Keys are random 64-bit
 * numbers; each operation of every filter hashes its key by the same quick function, as the paper's
 * code does: a strong hash takes as long as the rest, and would hide the filters' differences.
 */
#ifndef PAPER_FILTERS_H
#define PAPER_FILTERS_H

#include "baseline/blocked_bloom.h"
#include "baseline/bloom.h"
#include "baseline/dleft.h"
#include "baseline/quotient.h"
#include "paper_output.h"
#include "table/insert_delete.h"

#define BLOOM_BITS_PER_ITEM 13 /* and 9 hashes: the paper's table 3 */
#define BLOOM_HASHES 9
#define CUCKOO_FULL_PERCENT 95
#define QUOTIENT_FULL_PERCENT 90
#define QUOTIENT_REMAINDER_BITS 9
#define DLEFT_FULL_PERCENT 88 /* some insert fails at 89 to 92 */

struct cuckoo {
	struct table table;
	__u64 sequence;
};

struct raw_filter {
	size_t bytes;       /* of its memory */
	size_t packed_bits; /* what the paper's layout, without unused bits, would take */
	size_t items;       /* with which it is full */
	union {
		struct cuckoo cuckoo;
		struct bloom bloom;
		struct blocked_bloom blocked_bloom;
		struct quotient quotient;
		struct dleft dleft;
	};
};

/*
 * All return for how many keys it went well; inserting stops at the first that did not. `delete` is
 * NULL where a filter cannot.
 */
struct filter_batches {
	size_t (*insert)(struct raw_filter *filter, const __u64 *key, size_t count);
	size_t (*contains)(struct raw_filter *filter, const __u64 *key, size_t count);
	size_t (*delete)(struct raw_filter *filter, const __u64 *key, size_t count);
};

struct filter_kind {
	const char *name;
	struct filter_batches batches;
	/* Of about so many bytes. 0 or -ENOMEM. */
	int (*open)(struct raw_filter *filter, struct bucket_layout layout, size_t bytes);
	void (*close)(struct raw_filter *filter);
	struct bucket_layout layout; /* of cuckoo filters */
	struct {
		double bits_per_item, false_positive_percent, construction_mops;
	} paper; /* its table 3; 0: not there */
};

/* ---- keys ---- */

/* SplitMix64: Steele, Lea, Flood, OOPSLA 2014. A permutation: different numbers, different keys. */
static __u64 key_of(__u64 number)
{
	__u64 x = number * 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* Keys of a set of their own for each run, up to 2^40 of them; those that no filter holds. */
#define KEY_SET(run) ((__u64)(run) << 40)
#define KEY_ABSENT (1ULL << 63)
#define KEYS_BATCH 65536

static void keys_fill(__u64 *key, size_t count, __u64 first)
{
	for (size_t i = 0; i < count; i++)
		key[i] = key_of(first + i);
}

/* The finaliser of Appleby's MurmurHash3. */
static inline __u64 key_hash(__u64 key)
{
	key = (key ^ key >> 33) * 0xff51afd7ed558ccdULL;
	key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53ULL;
	return key ^ key >> 33;
}

/* ---- operations ---- */

/* The last argument is an expression in `filter` and `hash`: whether it went well. */
#define FILTER_INSERT_ALL(name, is_done) \
	static size_t name(struct raw_filter *filter, const __u64 *key, size_t count) \
	{ \
		size_t done = 0; \
		for (; done < count; done++) { \
			const __u64 hash = key_hash(key[done]); \
			if (!(is_done)) \
				break; \
		} \
		return done; \
	}

#define FILTER_COUNT(name, is_done) \
	static size_t name(struct raw_filter *filter, const __u64 *key, size_t count) \
	{ \
		size_t done = 0; \
		for (size_t i = 0; i < count; i++) { \
			const __u64 hash = key_hash(key[i]); \
			done += (is_done); \
		} \
		return done; \
	}

#define FILTER_BATCHES(name) \
	FILTER_INSERT_ALL(name##_insert_all, !name##_insert(&filter->name, hash)) \
	FILTER_COUNT(name##_contains_all, name##_contains(&filter->name, hash))

FILTER_BATCHES(bloom)
FILTER_BATCHES(blocked_bloom)
FILTER_BATCHES(quotient)
FILTER_COUNT(quotient_delete_all, !quotient_delete(&filter->quotient, hash))
FILTER_BATCHES(dleft)
FILTER_COUNT(dleft_delete_all, !dleft_delete(&filter->dleft, hash))

/* Compact: the other elements are 0. */
#define CUCKOO_LAYOUT(slot_count, bits, lane) \
	{ \
		.slots = (slot_count), .fingerprint_bits = (bits), .lane_bits = (lane) \
	}

/* The engine with a layout, whose elements are constants. */
#define FILTER_CUCKOO(name, ...) \
	FILTER_INSERT_ALL(name##_insert_all, \
			  !core_insert(&filter->cuckoo.table, (struct bucket_layout)CUCKOO_LAYOUT(__VA_ARGS__), \
				       &(struct hash_value){ .hash = hash }, 0)) \
	FILTER_COUNT(name##_contains_all, \
		     core_find(&filter->cuckoo.table, (struct bucket_layout)CUCKOO_LAYOUT(__VA_ARGS__), \
			       &(struct hash_value){ .hash = hash }, NULL)) \
	FILTER_COUNT(name##_delete_all, \
		     !core_delete(&filter->cuckoo.table, (struct bucket_layout)CUCKOO_LAYOUT(__VA_ARGS__), \
				  &(struct hash_value){ .hash = hash }))

/*
 * The engine's table of addresses (include/permute.h). Its keys are IPv4 addresses, so it first makes one of the
 * key: it undoes key_of(), and keeps the low bits of the number and whether the key is an absent one. This takes longer
 * than key_hash().
 */
static inline __u64 key_address(__u64 key)
{
	key = (key ^ key >> 31 ^ key >> 62) * 0x319642b2d24d8ec3;
	key = (key ^ key >> 27 ^ key >> 54) * 0x96de1b173f119089;
	key = (key ^ key >> 30 ^ key >> 60) * 0xf1de83e19937733d;
	return (key >> 32 & 1U << 31) | (key & ((1U << 31) - 1));
}

static struct permute_secret perfect_secret;

#define PERFECT_LAYOUT \
	{ \
		.slots = BUCKET_SLOTS, .fingerprint_bits = 16, .lane_bits = 16, .side = BUCKET_SIDE \
	}
#define PERFECT_CALL(function, ...) \
	function(&filter->cuckoo.table, (struct bucket_layout)PERFECT_LAYOUT, \
		 &(struct hash_value){ .hash = permute(&perfect_secret, permute_number(key_address(key[i]), ~0U)) }, \
		 ##__VA_ARGS__)

static size_t perfect_insert_all(struct raw_filter *filter, const __u64 *key, size_t count)
{
	size_t i = 0;

	while (i < count && !PERFECT_CALL(core_insert, 0))
		i++;
	return i;
}

static size_t perfect_contains_all(struct raw_filter *filter, const __u64 *key, size_t count)
{
	size_t done = 0;

	for (size_t i = 0; i < count; i++)
		done += PERFECT_CALL(core_find, NULL);
	return done;
}

static size_t perfect_delete_all(struct raw_filter *filter, const __u64 *key, size_t count)
{
	size_t done = 0;

	for (size_t i = 0; i < count; i++)
		done += !PERFECT_CALL(core_delete);
	return done;
}

#define FILTER_BATCHES_OF(name) \
	{ \
		name##_insert_all, name##_contains_all, name##_delete_all \
	}

/* ---- memory ---- */

/* Any number of buckets rounded down to three binary digits, in the largest pieces that give it. */
static struct bucket_geometry cuckoo_geometry(__u64 buckets)
{
	const unsigned int digits = 64 - __builtin_clzll(buckets);

	if (digits > 3)
		buckets = buckets >> (digits - 3) << (digits - 3);
	return (struct bucket_geometry){ buckets, 64 - __builtin_ctzll(buckets) };
}

static int cuckoo_open(struct raw_filter *filter, struct bucket_layout layout, size_t bytes)
{
	const struct bucket_geometry geometry = cuckoo_geometry(bytes * 8 / bucket_bits(layout));
	const __u64 slots = (__u64)geometry.buckets * layout.slots;
	struct table_memory memory = { .sequence = &filter->cuckoo.sequence };

	filter->bytes = core_bytes(layout, geometry);
	filter->packed_bits = slots * (layout.fingerprint_bits - !layout.lane_bits);
	filter->items = slots * CUCKOO_FULL_PERCENT / 100;
	memory.bucket = baseline_allocate(filter->bytes);
	if (!memory.bucket)
		return -ENOMEM;
	return core_open(&filter->cuckoo.table, layout, geometry, &memory);
}

static int perfect_open(struct raw_filter *filter, struct bucket_layout layout, size_t bytes)
{
	const size_t least = 5 << 16 << 3; /* the first that cuckoo_geometry() keeps above ADDRESS_BUCKETS_MIN */

	for (size_t i = 0; i < 2 * PERMUTE_ROUNDS; i++)
		perfect_secret.round[i / 2][i % 2] = key_of(~i);
	return cuckoo_open(filter, layout, bytes > least ? bytes : least);
}

static void cuckoo_close(struct raw_filter *filter)
{
	free(filter->cuckoo.table.memory.bucket);
	free(filter->cuckoo.table.search);
}

static int bloom_kind_open(struct raw_filter *filter, struct bucket_layout layout, size_t bytes)
{
	(void)layout;
	filter->bytes = bytes;
	filter->packed_bits = bytes * 8;
	filter->items = filter->packed_bits / BLOOM_BITS_PER_ITEM;
	return bloom_open(&filter->bloom, filter->packed_bits, BLOOM_HASHES);
}

static void bloom_kind_close(struct raw_filter *filter)
{
	bloom_close(&filter->bloom);
}

static int blocked_bloom_kind_open(struct raw_filter *filter, struct bucket_layout layout, size_t bytes)
{
	const size_t blocks = bytes / BASELINE_LINE_BYTES;

	(void)layout;
	filter->bytes = blocks * BASELINE_LINE_BYTES;
	filter->packed_bits = filter->bytes * 8;
	filter->items = filter->packed_bits / BLOOM_BITS_PER_ITEM;
	return blocked_bloom_open(&filter->blocked_bloom, blocks, BLOOM_HASHES);
}

static void blocked_bloom_kind_close(struct raw_filter *filter)
{
	blocked_bloom_close(&filter->blocked_bloom);
}

/* The power of two of cells that takes from 3/4 to 3/2 of the bytes: log2. */
static unsigned int nearest_log2(size_t bytes, unsigned int cell_bits)
{
	unsigned int bits = 0;

	while (((size_t)cell_bits << bits) < bytes * 8 * 3 / 4)
		bits++;
	return bits;
}

static int quotient_kind_open(struct raw_filter *filter, struct bucket_layout layout, size_t bytes)
{
	const unsigned int slot_bits = QUOTIENT_REMAINDER_BITS + QUOTIENT_META_BITS;
	const unsigned int log2 = nearest_log2(bytes, slot_bits);

	(void)layout;
	filter->packed_bits = (size_t)slot_bits << log2;
	filter->bytes = filter->packed_bits / 8;
	filter->items = (1ULL << log2) * QUOTIENT_FULL_PERCENT / 100;
	return quotient_open(&filter->quotient, log2, QUOTIENT_REMAINDER_BITS);
}

static void quotient_kind_close(struct raw_filter *filter)
{
	quotient_close(&filter->quotient);
}

static int dleft_kind_open(struct raw_filter *filter, struct bucket_layout layout, size_t bytes)
{
	const unsigned int log2 = nearest_log2(bytes, DLEFT_TABLES * DLEFT_BUCKET_BITS);

	(void)layout;
	filter->packed_bits = (size_t)(DLEFT_TABLES * DLEFT_BUCKET_BITS) << log2;
	filter->bytes = filter->packed_bits / 8;
	filter->items = ((size_t)(DLEFT_TABLES * DLEFT_CELLS) << log2) * DLEFT_FULL_PERCENT / 100;
	return dleft_open(&filter->dleft, log2);
}

static void dleft_kind_close(struct raw_filter *filter)
{
	dleft_close(&filter->dleft);
}

/* How many of so many absent keys are found. */
static size_t filter_count_absent(struct raw_filter *filter, const struct filter_batches *batches, size_t absent)
{
	static __u64 key[KEYS_BATCH];
	size_t found = 0, count;

	for (size_t i = 0; i < absent; i += count) {
		count = absent - i < KEYS_BATCH ? absent - i : KEYS_BATCH;
		keys_fill(key, count, KEY_ABSENT + i);
		found += batches->contains(filter, key, count);
	}
	return found;
}

static void raw_filter_open(struct raw_filter *filter, const struct filter_kind *kind, size_t bytes)
{
	*filter = (struct raw_filter){};
	if (kind->open(filter, kind->layout, bytes))
		die("%s: no memory for %zu bytes", kind->name, bytes);
}

#endif
