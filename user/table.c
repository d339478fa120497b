// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Insert, delete, contains. An insert first looks for the whole path of moves and changes nothing
 * meanwhile; the path is then moved from its free end, so that every entry has a home at any time.
 */
#include <errno.h>
#include <stdlib.h>

#include "abi.h"
#include "table.h"
#include "table_move.h"

#define TABLE_BUCKETS_MIN ((1ULL << ABI_SLOTS_MIN_LOG2) / BUCKET_SLOTS)
#define TABLE_BUCKETS_MAX ((1ULL << ABI_SLOTS_MAX_LOG2) / BUCKET_SLOTS)

/* A bucket on the way from one of the key's two, which are their own parents. */
struct table_node {
	__u32 bucket;
	__u16 parent; /* index of the node whose entry would move here */
	__u8 slot;    /* of that entry */
};

struct table_search {
	unsigned int count;
	struct table_node node[TABLE_SEARCH_NODES];
};

static unsigned int bucket_filled(__u64 bucket)
{
	const __u64 low = ~BUCKET_LANE_HIGH;

	return __builtin_popcountll((((bucket & low) + low) | bucket) & BUCKET_LANE_HIGH);
}

int table_open(struct table *table, __u64 *bucket, __u64 buckets, __u64 *sequence)
{
	*table = (struct table){ .bucket = bucket, .sequence = sequence };
	if (buckets & (buckets - 1) || buckets < TABLE_BUCKETS_MIN || buckets > TABLE_BUCKETS_MAX)
		return -EINVAL;
	table->bucket_mask = buckets - 1;
	table->step_shift = __builtin_clzll(buckets) + 1;
	table->search = malloc(sizeof(*table->search));
	if (!table->search)
		return -ENOMEM;
	return 0;
}

__u64 table_count(const struct table *table)
{
	__u64 count = 0;

	for (__u64 i = 0; i <= table->bucket_mask; i++)
		count += bucket_filled(table->bucket[i]);
	return count;
}

void table_close(struct table *table)
{
	free(table->search);
	*table = (struct table){};
}

/* A match is exact for the lowest slot it names: borrows only run upwards. */
static bool bucket_find(const struct table *table, __u64 bucket, __u16 fingerprint,
			struct table_place *place)
{
	__u64 match = bucket_match(table->bucket[bucket], fingerprint);

	if (match)
		*place = (struct table_place){ bucket,
					       __builtin_ctzll(match) / BUCKET_FINGERPRINT_BITS };
	return match;
}

static bool pair_find(const struct table *table, const struct bucket_pair *pair, __u16 fingerprint,
		      struct table_place *place)
{
	return bucket_find(table, pair->first, fingerprint, place) ||
	       bucket_find(table, pair->second, fingerprint, place);
}

/* Queues a bucket; it is tested when its turn comes, which gives the prefetch time. */
static void search_push(struct table *table, __u64 bucket, unsigned int parent, unsigned int slot)
{
	struct table_search *search = table->search;

	__builtin_prefetch(&table->bucket[bucket]);
	search->node[search->count++] = (struct table_node){ bucket, parent, slot };
}

/* A circle on a path leads nowhere that a shorter path does not. */
static bool search_is_on_path(const struct table_search *search, unsigned int at, __u64 bucket)
{
	while (search->node[at].bucket != bucket) {
		if (search->node[at].parent == at)
			return false;
		at = search->node[at].parent;
	}
	return true;
}

static void search_expand(struct table *table, unsigned int at)
{
	struct table_search *search = table->search;
	__u64 bucket = search->node[at].bucket;

	for (unsigned int slot = 0; slot < BUCKET_SLOTS; slot++) {
		__u16 fingerprint = table_load(table, (struct table_place){ bucket, slot });
		__u64 child = bucket ^ bucket_step(fingerprint, table->step_shift);

		if (search->count < TABLE_SEARCH_NODES && !search_is_on_path(search, at, child))
			search_push(table, child, at, slot);
	}
}

/*
 * Breadth first from both buckets of a key. Returns the index of the node whose bucket has a free
 * slot, and that slot as `free`; -ENOSPC where none is found.
 */
static int search_path(struct table *table, const struct bucket_pair *pair,
		       struct table_place *free)
{
	struct table_search *search = table->search;

	search->count = 0;
	search_push(table, pair->first, 0, 0);
	search_push(table, pair->second, 1, 0);
	for (unsigned int at = 0; at < search->count; at++) {
		if (bucket_find(table, search->node[at].bucket, 0, free))
			return at;
		search_expand(table, at);
	}
	return -ENOSPC;
}

/* Makes a slot free in one of a key's two buckets: moves the entries of a path, the last first. */
static int pair_make_room(struct table *table, const struct bucket_pair *pair,
			  struct table_place *free)
{
	const struct table_node *node = table->search->node;
	unsigned int length = 0;
	int at = search_path(table, pair, free);

	if (at < 0)
		return at;
	for (; node[at].parent != at; at = node[at].parent, length++) {
		struct table_place from = { node[node[at].parent].bucket, node[at].slot };

		table_move(table, from, *free);
		*free = from;
	}
	if (length > table->longest_path)
		table->longest_path = length;
	return 0;
}

int table_insert(struct table *table, __u64 hash)
{
	struct bucket_pair pair = bucket_pair(hash, table->bucket_mask, table->step_shift);
	struct table_place place;

	if (!pair_find(table, &pair, 0, &place)) {
		int error = pair_make_room(table, &pair, &place);

		if (error)
			return error;
	}
	table_store(table, place, pair.fingerprint);
	table->used++;
	return 0;
}

int table_delete(struct table *table, __u64 hash)
{
	struct bucket_pair pair = bucket_pair(hash, table->bucket_mask, table->step_shift);
	struct table_place place, twin;

	if (!pair_find(table, &pair, pair.fingerprint, &place))
		return -ENOENT;
	/*
	 * An equal entry in the other bucket may have been inserted there after a reader looked: to
	 * that reader the two calls together are a move.
	 */
	if (place.bucket != pair.second && bucket_find(table, pair.second, pair.fingerprint, &twin))
		table_announce(table);
	table_store(table, place, 0);
	table->used--;
	return 0;
}

bool table_contains(const struct table *table, __u64 hash)
{
	struct bucket_pair pair = bucket_pair(hash, table->bucket_mask, table->step_shift);

	return bucket_match(table->bucket[pair.first], pair.fingerprint) |
	       bucket_match(table->bucket[pair.second], pair.fingerprint);
}

__u64 table_slots(const struct table *table)
{
	return (table->bucket_mask + 1) * BUCKET_SLOTS;
}

__u64 table_slots_for(__u64 rules)
{
	__u64 slots = 1ULL << ABI_SLOTS_MIN_LOG2;

	while (slots <= 1ULL << ABI_SLOTS_MAX_LOG2 && slots * TABLE_LOAD_PERCENT / 100 < rules)
		slots *= 2;
	return slots;
}
