/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds a kick-out path and moves the entries on it. If both buckets of a new key are full, entries must move to
 * their other buckets. The search finds the whole path first, the shortest one. Then the entries move, the last one
 * first, into the free slot at the end of the path. So every entry has a place at any time.
 */
#ifndef XDP_CUCKOO_TABLE_KICK_PATH_H
#define XDP_CUCKOO_TABLE_KICK_PATH_H

#include <errno.h>

#include "table/find_entry.h"

/* A bucket that the search has reached. The two buckets of the key are their own parents. */
struct table_node {
	__u32 bucket;
	__u16 parent; /* index of the node from which an entry would move here */
	__u8 slot;    /* of that entry, in the parent */
};

struct table_search {
	unsigned int count;
	struct table_node node[TABLE_SEARCH_NODES];
};

/* Queues a bucket. The prefetch has time until the bucket's turn comes. */
FLOW_INLINE void core_push(struct table *table, struct bucket_layout layout, __u32 bucket, unsigned int parent,
			   unsigned int slot)
{
	struct table_search *search = table->search;

	table_prefetch(table, layout, bucket);
	search->node[search->count++] = (struct table_node){ bucket, parent, slot };
}

/* Whether the path to a node contains the bucket. A path with a circle is never the shortest. */
static inline bool core_is_on_path(const struct table_search *search, unsigned int at, __u32 bucket)
{
	while (search->node[at].bucket != bucket) {
		if (search->node[at].parent == at)
			return false;
		at = search->node[at].parent;
	}
	return true;
}

/* Searches breadth first from both buckets of a key. Returns the node with a free slot, and *free; -ENOSPC; -ENOMEM. */
FLOW_INLINE int core_search(struct table *table, struct bucket_layout layout, const struct bucket_pair *pair,
			    struct table_place *free)
{
	struct table_search *search = table->search;

	if (table_reach_buckets(table))
		return -ENOMEM;
	search->count = 0;
	core_push(table, layout, pair->first, 0, 0);
	core_push(table, layout, pair->second, 1, 0);
	for (unsigned int at = 0; at < search->count; at++) {
		const __u32 number = search->node[at].bucket;
		const struct bucket bucket = table_bucket(table, layout, number);

		if (core_find_free(table, layout, number, free))
			return at;
		for (unsigned int slot = 0; slot < layout.slots; slot++) {
			const __u32 fingerprint = bucket_get(bucket, layout, slot, table->prefixes);
			const __u32 child = core_other(table, layout, number, fingerprint);

			if (search->count < TABLE_SEARCH_NODES && !core_is_on_path(search, at, child))
				core_push(table, layout, child, at, slot);
		}
	}
	return -ENOSPC;
}

/* Maps all records and counters of a path, before any entry moves. 0 or -ENOMEM. */
FLOW_INLINE int core_reach_path(struct table *table, struct bucket_layout layout, unsigned int at)
{
	const struct table_node *node = table->search->node;
	int error = core_reach(table, layout, node[at].bucket);

	for (; node[at].parent != at && !error; at = node[at].parent)
		error = core_reach(table, layout, node[node[at].parent].bucket);
	return error;
}

/*
 * Moves the entries of a path. Afterwards *free is a slot in one of the key's two buckets. A path has no bucket
 * twice, so no earlier move changes a slot that the search saw. The slot that a move frees is searched again,
 * because a semi-sorted bucket sorts its entries at each store.
 */
FLOW_INLINE void core_move_path(struct table *table, struct bucket_layout layout, unsigned int at,
				struct table_place *free)
{
	const struct table_node *node = table->search->node;
	unsigned int length = 0;

	for (; node[at].parent != at; at = node[at].parent, length++) {
		struct table_place from = { node[node[at].parent].bucket, node[at].slot };

		table_move(table, layout, from, *free);
		core_find_free(table, layout, from.bucket, free);
	}
	if (length > table->longest_path)
		table->longest_path = length;
}

#endif
