// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Prints the stores of the engine, in their order, for tests/helpers/memory_order.py: `store_order [swapped]`. A line is one
 * change of a table that has the key K in its first bucket:
 *
 *   TABLE CHANGE WHERE=WHAT...
 *
 * WHERE is "sequence", or "bucket" or "record" with the number of one of K's buckets. WHAT is the new value: a number, or
 * the owner of a record. With "swapped", a move overwrites the source before it writes the copy.
 */
#include <stdio.h>
#include <string.h>

static void note_store(const void *at);

#undef __atomic_store_n
#define __atomic_store_n(at, value, order) \
	do { \
		__atomic_store(at, &(__typeof__(*(at))){ value }, order); \
		note_store(at); \
	} while (0)
#include "table/insert_delete.h"

/* Both have the same buckets and the same fingerprint. */
static const struct hash_value key_k = { 0x1234ULL << 48, 1ULL << ABI_END_BITS };
static const struct hash_value key_y = { 0x1234ULL << 48, 2ULL << ABI_END_BITS };

#define TENANT_END 1

static struct table table;
static struct bucket_layout layout;
static struct table_place places[2];
static bool is_swapped;

static void note_store(const void *at)
{
	if (at == table.memory.sequence)
		printf(" sequence=%llu", *table.memory.sequence);
	for (int i = 0; i < 2; i++) {
		const void *bucket = (const __u64 *)table.memory.bucket + places[i].bucket;

		if (at == bucket)
			printf(" bucket%d=%d", i, table_load(&table, layout, places[i]) != 0);
		if (layout.has_records && at == table_record(&table, layout, places[i]))
			printf(" record%d=%c", i, abi_record_tag(*(const __u64 *)at) == key_k.tag ? 'K' : 'Y');
	}
}

static void move(int from, int to)
{
	const __u32 fingerprint = table_load(&table, layout, places[from]);
	const __u64 record = layout.has_records ? *table_record(&table, layout, places[from]) : 0;

	if (!is_swapped) {
		table_move(&table, layout, places[from], places[to]);
		return;
	}
	table_store(&table, layout, places[from], 0);
	table_announce(&table);
	table_publish(&table, layout, places[to], fingerprint, record);
}

static int bounce(void)
{
	move(0, 1);
	move(1, 0);
	return 0;
}

/* While K is in its other bucket, another key uses its slot. */
static int lend_slot(void)
{
	int error;

	move(0, 1);
	error = core_insert(&table, layout, &key_y, TENANT_END);
	if (!error)
		error = core_delete(&table, layout, &key_y);
	move(1, 0);
	return error;
}

/* Runs one change in a table that holds K, and prints its line. */
static int run(const char *name, struct bucket_layout of, const struct table_memory *memory, int (*change)(void))
{
	const struct bucket_geometry geometry = table_geometry(1 << ABI_SLOTS_MIN_LOG2);
	struct bucket_pair pair;
	int error;

	layout = of;
	memset(memory->bucket, 0, core_bytes(layout, geometry));
	*memory->sequence = 0;
	error = core_open(&table, layout, geometry, memory);
	if (error)
		return error;
	pair = core_pair(&table, layout, &key_k);
	places[0] = places[1] = (struct table_place){ ~0U, 0 };
	error = core_insert(&table, layout, &key_k, 0);
	places[0].bucket = pair.first;
	places[1].bucket = pair.second;
	fputs(name, stdout);
	if (!error)
		error = change();
	putchar('\n');
	free(table.search);
	return error;
}

int main(int argc, char **argv)
{
	static __u64 bucket[(1 << ABI_SLOTS_MIN_LOG2) / BUCKET_SLOTS], record[1 << ABI_SLOTS_MIN_LOG2], sequence;
	const struct table_memory compact = { .bucket = bucket, .sequence = &sequence };
	const struct table_memory exact = { .bucket = bucket, .record = record, .sequence = &sequence };
	int error;

	is_swapped = argc > 1 && !strcmp(argv[1], "swapped");
	error = run("compact bounce", bucket_layout(BUCKET_16), &compact, bounce);
	if (!error)
		error = run("exact bounce", core_exact(), &exact, bounce);
	if (!error)
		error = run("exact tenant", core_exact(), &exact, lend_slot);
	if (error)
		fprintf(stderr, "store_order: %s\n", strerror(-error));
	return !!error;
}
