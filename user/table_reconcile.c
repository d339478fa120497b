// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Makes a live table hold a given set of entries: sorts both by identity, walks both together,
 * deletes what is too much, then inserts what is missing.
 */
#include <errno.h>
#include <stdlib.h>

#include "table.h"

#define SORT_DIGIT_BITS 8
#define SORT_DIGITS (1 << SORT_DIGIT_BITS)
#define SORT_SMALL 32 /* below, insertion is quicker */

/*
 * What the filter knows of a hash: its fingerprint and which two buckets. Hashes of one identity
 * are one to the table. In bucket order, so that the changes walk through memory.
 */
static __u64 hash_identity(const struct table *table, __u64 hash)
{
	struct bucket_pair pair = bucket_pair(hash, table->bucket_mask, table->step_shift);
	__u64 low = pair.first < pair.second ? pair.first : pair.second;

	return low << BUCKET_FINGERPRINT_BITS | pair.fingerprint;
}

static void hash_swap(__u64 *a, __u64 *b)
{
	__u64 other = *a;

	*a = *b;
	*b = other;
}

static void sort_small(const struct table *table, __u64 *hash, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		const __u64 inserted = hash[i], identity = hash_identity(table, inserted);
		size_t j = i;

		for (; j && hash_identity(table, hash[j - 1]) > identity; j--)
			hash[j] = hash[j - 1];
		hash[j] = inserted;
	}
}

/*
 * American flag sort by identity, in place: a table of 2^30 slots leaves no memory to spare.
 * `shift` is where the first digit stands; the last digit may overlap the one before it.
 */
static void sort(const struct table *table, __u64 *hash, size_t count, unsigned int shift)
{
	size_t end[SORT_DIGITS] = {}, next[SORT_DIGITS], at = 0;

	if (count < SORT_SMALL) {
		sort_small(table, hash, count);
		return;
	}
	for (size_t i = 0; i < count; i++)
		end[hash_identity(table, hash[i]) >> shift & (SORT_DIGITS - 1)]++;
	for (unsigned int digit = 0; digit < SORT_DIGITS; digit++) {
		next[digit] = at;
		at = end[digit] += at;
	}
	for (unsigned int digit = 0; digit < SORT_DIGITS; digit++)
		while (next[digit] < end[digit]) {
			__u64 *from = &hash[next[digit]];
			unsigned int to = hash_identity(table, *from) >> shift & (SORT_DIGITS - 1);

			hash_swap(from, &hash[next[to]++]);
		}
	for (unsigned int digit = 0; shift && digit < SORT_DIGITS; digit++) {
		size_t start = digit ? end[digit - 1] : 0;

		sort(table, hash + start, end[digit] - start,
		     shift > SORT_DIGIT_BITS ? shift - SORT_DIGIT_BITS : 0);
	}
}

static void sort_by_identity(const struct table *table, __u64 *hash, size_t count)
{
	unsigned int bits = 64 - table->step_shift + BUCKET_FINGERPRINT_BITS;

	sort(table, hash, count, bits - SORT_DIGIT_BITS);
}

/* One hash for each filled slot, which leads back to it. Returns them, sorted; NULL: no memory. */
static __u64 *live_hashes(const struct table *table)
{
	__u64 *live = malloc((table->used + 1) * sizeof(*live));
	size_t count = 0;

	for (__u64 bucket = 0; live && bucket <= table->bucket_mask; bucket++)
		for (unsigned int slot = 0; slot < BUCKET_SLOTS; slot++) {
			__u64 fingerprint = bucket_get(table->bucket[bucket], slot);

			if (fingerprint)
				live[count++] =
					fingerprint << (64 - BUCKET_FINGERPRINT_BITS) | bucket;
		}
	if (live)
		sort_by_identity(table, live, count);
	return live;
}

/* Deletes each of `live` that `wanted` lacks; brings what `live` lacks to the front of `wanted`. */
static void merge(struct table *table, const __u64 *live, __u64 *wanted, size_t count,
		  struct table_difference *difference)
{
	const __u64 *live_end = live + table->used;
	size_t missing = 0, i = 0;

	while (live < live_end || i < count) {
		__u64 have = live < live_end ? hash_identity(table, *live) : ~0ULL;
		__u64 want = i < count ? hash_identity(table, wanted[i]) : ~0ULL;

		if (have < want) {
			table_delete(table, *live++);
			difference->removed++;
		} else if (have > want) {
			hash_swap(&wanted[missing++], &wanted[i++]);
		} else {
			live++, i++;
			difference->kept++;
		}
	}
}

/*
 * Below the load the engine promises, only many entries of one identity fail, quickly, and the rest
 * fits; above it nearly every search fails, after its longest way.
 */
static int insert_all(struct table *table, const __u64 *hash, size_t count, __u64 *added)
{
	const __u64 promised = table_slots(table) * TABLE_LOAD_PERCENT / 100;
	int error = 0;

	for (size_t i = 0; i < count && !(error && table->used >= promised); i++) {
		if (table_insert(table, hash[i]))
			error = -ENOSPC;
		else
			(*added)++;
	}
	return error;
}

int table_reconcile(struct table *table, __u64 *hashes, size_t count,
		    struct table_difference *difference)
{
	__u64 *live;

	table->used = table_count(table);
	live = live_hashes(table);
	*difference = (struct table_difference){};
	if (!live)
		return -ENOMEM;
	sort_by_identity(table, hashes, count);
	merge(table, live, hashes, count, difference);
	free(live);
	return insert_all(table, hashes, count - difference->kept, &difference->added);
}
