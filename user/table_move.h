/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How an entry moves while readers look on: the writer's half of the protocol whose other half is
 * bpf/probe.h. Internal to the engine; a file of its own so that a test can put a wrong order in
 * its place and see readers miss.
 */
#ifndef XDP_CUCKOO_TABLE_MOVE_H
#define XDP_CUCKOO_TABLE_MOVE_H

#include "grace.h"
#include "table.h"

struct table_place {
	__u64 bucket;
	unsigned int slot;
};

static inline __u16 table_load(const struct table *table, struct table_place place)
{
	return bucket_get(table->bucket[place.bucket], place.slot);
}

/* The whole word at once: a reader sees the bucket before or after, never between. */
static inline void table_store(struct table *table, struct table_place place, __u16 fingerprint)
{
	__u64 *word = &table->bucket[place.bucket];

	__atomic_store_n(word, bucket_set(*word, place.slot, fingerprint), __ATOMIC_RELEASE);
}

/*
 * Between the store of an entry's copy and the overwriting of the entry: from here on, a reader
 * who looked at the copy's place too early and finds the entry gone sees that the sequence changed.
 * That needs loads that stay in order. Where they do not, nobody who looked too early may still be at
 * work. It is the plain variant, one wait a move, 8-16 ms each.
 */
static inline void table_announce(struct table *table)
{
	__atomic_store_n(table->sequence, *table->sequence + 1, __ATOMIC_RELEASE);
#ifndef __x86_64__
	grace_wait();
#endif
}

/* Moves the entry at `from` to the free place `to`. A crash in between leaves one too many. */
static inline void table_move(struct table *table, struct table_place from, struct table_place to)
{
	table_store(table, to, table_load(table, from));
	table_announce(table);
	table_store(table, from, 0);
	table->moves++;
}

#endif
