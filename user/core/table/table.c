// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The functions of table.h: sizes of tables, and the engine for each format of a running table. */
#include "table/insert_delete.h"
#include "table/table.h"
#include "table/semisort.h"

#define TABLE_BUCKETS_MIN ((1ULL << ABI_SLOTS_MIN_LOG2) / BUCKET_SLOTS)
#define TABLE_BUCKETS_MAX ((1ULL << ABI_SLOTS_MAX_LOG2) / BUCKET_SLOTS)
/*
 * The piece of a table that happens to get most keys is full first. With 2^14 buckets per piece, the table is then
 * 96.8 % full, or 96.0 % in the worst of 1,500 tables. With 2^13 buckets: 96.6 and 95.7 %.
 */
#define TABLE_PIECE_BUCKETS_MIN (1ULL << 14)
#define TABLE_STEPS 8 /* the most sizes from one power of two to the next */

struct bucket_geometry table_geometry(__u64 slots)
{
	__u64 buckets = slots / BUCKET_SLOTS + !!(slots % BUCKET_SLOTS), step;

	if (buckets < TABLE_BUCKETS_MIN)
		buckets = TABLE_BUCKETS_MIN;
	if (buckets > TABLE_BUCKETS_MAX)
		buckets = TABLE_BUCKETS_MAX;
	step = 1ULL << (63 - __builtin_clzll(buckets));
	if (step > TABLE_PIECE_BUCKETS_MIN)
		step = step / TABLE_STEPS > TABLE_PIECE_BUCKETS_MIN ? step / TABLE_STEPS : TABLE_PIECE_BUCKETS_MIN;
	buckets = (buckets + step - 1) & -step;
	/* The largest power of two that divides the number is the size of a piece. */
	return (struct bucket_geometry){ buckets, 64 - __builtin_ctzll(buckets) };
}

__u64 table_slots_of(struct bucket_geometry geometry)
{
	return (__u64)geometry.buckets * BUCKET_SLOTS;
}

__u64 table_slots_for(__u64 rules)
{
	__u64 slots = 1ULL << ABI_SLOTS_MIN_LOG2;

	while (slots * TABLE_LOAD_PERCENT / 100 < rules) {
		if (slots == 1ULL << ABI_SLOTS_MAX_LOG2)
			return slots + 1;
		slots = table_slots_of(table_geometry(slots + 1));
	}
	return slots;
}

__u64 table_address_slots(__u64 slots)
{
	return table_slots_of(table_geometry(slots > TABLE_ADDRESS_SLOTS_MIN ? slots : TABLE_ADDRESS_SLOTS_MIN));
}

__u64 table_bucket_bytes(enum bucket_format format, struct bucket_geometry geometry)
{
	return core_bytes(bucket_layout(format), geometry);
}

double table_false_positive_rate(enum bucket_format format, double load_factor)
{
	const struct bucket_layout layout = bucket_layout(format);

	if (layout.side)
		return 0;
	return 2 * layout.slots * load_factor / ((1ULL << layout.fingerprint_bits) - 1);
}

int table_open(struct table *table, enum bucket_format format, struct bucket_geometry geometry,
	       const struct table_memory *memory)
{
	const struct bucket_geometry nearest = table_geometry(table_slots_of(geometry));
	int error;

	*table = (struct table){};
	if (nearest.buckets != geometry.buckets || nearest.step_shift != geometry.step_shift ||
	    format > BUCKET_ADDRESS || (memory->record && format != BUCKET_16) ||
	    (format == BUCKET_ADDRESS && geometry.buckets < ADDRESS_BUCKETS_MIN))
		return -EINVAL;
	error = core_open(table, bucket_layout(format), geometry, memory);
	table->format = format;
	return error;
}

void table_close(struct table *table)
{
	free(table->search);
	*table = (struct table){};
}

__u64 table_slots(const struct table *table)
{
	return table_slots_of(table->geometry);
}

__u64 table_count(const struct table *table)
{
	return CORE_CALL(core_count, table);
}

/* Each layout has its own functions, because one function would save the registers that any layout needs. */
#define TABLE_FUNCTIONS(name, layout) \
	static __attribute__((noinline)) int insert_##name(struct table *table, const struct hash_value *key, \
							   __u32 end) \
	{ \
		return core_insert(table, layout, key, end); \
	} \
	static __attribute__((noinline)) int delete_##name(struct table *table, const struct hash_value *key) \
	{ \
		return core_delete(table, layout, key); \
	} \
	static __attribute__((noinline)) bool find_##name(const struct table *table, const struct hash_value *key, \
							  __u32 *slot) \
	{ \
		return core_find(table, layout, key, slot); \
	}

TABLE_FUNCTIONS(exact, core_exact())
TABLE_FUNCTIONS(16, bucket_layout(BUCKET_16))
TABLE_FUNCTIONS(32, bucket_layout(BUCKET_32))
TABLE_FUNCTIONS(8, bucket_layout(BUCKET_8))
TABLE_FUNCTIONS(17, bucket_layout(BUCKET_17))
TABLE_FUNCTIONS(address, bucket_layout(BUCKET_ADDRESS))

#define TABLE_CALL(function, table, ...) \
	((table)->memory.record       ? function##_exact(table, __VA_ARGS__) : \
	 (table)->format == BUCKET_16 ? function##_16(table, __VA_ARGS__) : \
	 (table)->format == BUCKET_32 ? function##_32(table, __VA_ARGS__) : \
	 (table)->format == BUCKET_8  ? function##_8(table, __VA_ARGS__) : \
	 (table)->format == BUCKET_17 ? function##_17(table, __VA_ARGS__) : \
					function##_address(table, __VA_ARGS__))

int table_insert(struct table *table, const struct hash_value *key, __u32 end)
{
	return TABLE_CALL(insert, table, key, end);
}

int table_delete(struct table *table, const struct hash_value *key)
{
	return TABLE_CALL(delete, table, key);
}

bool table_find(const struct table *table, const struct hash_value *key, __u32 *slot)
{
	return TABLE_CALL(find, table, key, slot);
}

__u64 table_address(const struct table *table, __u64 slot)
{
	const struct bucket_layout layout = bucket_layout(BUCKET_ADDRESS);
	const struct table_place place = { slot / BUCKET_SLOTS, slot % BUCKET_SLOTS };
	const __u32 fingerprint = table_load(table, layout, place);

	return fingerprint ? address_at(place.bucket, fingerprint, table->geometry, table->reciprocal) :
			     1ULL << PERMUTE_BITS;
}

int table_set_end(struct table *table, const struct hash_value *key, __u32 end, bool *is_done)
{
	const struct bucket_layout layout = core_exact();
	const struct bucket_pair pair = core_pair(table, layout, key);
	struct table_place place;
	__u32 present;
	int error;

	error = table->memory.record ? core_reach_pair(table, layout, &pair) : table_reach_buckets(table);
	if (error)
		return error;
	if (!table->memory.record)
		return table_find(table, key, NULL) ? 0 : -ENOENT;
	if (!core_find_key(table, layout, &pair, key->tag, &place))
		return -ENOENT;
	present = abi_record_end(*table_record(table, layout, place));
	if (is_done)
		*is_done = !end || (present && end >= present);
	if (!is_done || *is_done)
		__atomic_store_n(table_record(table, layout, place), abi_record(key->tag, end), __ATOMIC_RELEASE);
	return 0;
}

int table_reset_counts(struct table *table)
{
	const int error = table_reach_all(table);

	for (__u64 slot = 0; table->memory.counter && slot < table_slots(table) && !error; slot++)
		table_reset_count(&table->memory.counter[slot]);
	return error;
}
