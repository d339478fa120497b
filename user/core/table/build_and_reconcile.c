// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Changes many keys of a table in one call: table_build(), table_reconcile(). Maps the memory that they need. */
#include <string.h>

#include "base/memory.h"
#include "table/insert_delete.h"

/*
 * ---- maps parts of the table when they are first needed ----
 *
 * A small change needs few. To map and unmap a page takes 0.3 us, and a table of 10 million rules has 100,000 pages.
 */

#define TABLE_PART_SLOTS_MIN (1ULL << 14)

int table_reach(struct table *table, __u64 slot)
{
	const __u64 slots = table_slots(table), share = slots / TABLE_PARTS;
	const __u64 part_slots = share > TABLE_PART_SLOTS_MIN ? share : TABLE_PART_SLOTS_MIN;
	const __u64 part = slot / part_slots, first = part * part_slots;
	int error;

	if (!table->reach || table->reached[part / 64] >> part % 64 & 1)
		return 0;
	error = table->reach(table, first, slots - first < part_slots ? slots - first : part_slots);
	if (!error)
		table->reached[part / 64] |= 1ULL << part % 64;
	return error;
}

int table_reach_buckets(struct table *table)
{
	if (table->reach && !table->has_buckets && table->reach(table, 0, 0))
		return -ENOMEM;
	table->has_buckets = true;
	return 0;
}

int table_reach_all(struct table *table)
{
	const int error = table->reach ? table->reach(table, 0, table_slots(table)) : 0;

	/* A failed call may have unmapped parts. */
	memset(table->reached, 0, sizeof(table->reached));
	table->has_buckets = false;
	if (!error)
		table->reach = NULL;
	return error;
}

/* ---- fills an empty table ---- */

FLOW_INLINE int build(struct table *table, struct bucket_layout layout, const struct table_entry *entries, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int error;

		if (i + CORE_AHEAD < count)
			core_prefetch(table, layout, &entries[i + CORE_AHEAD].key);
		error = core_insert(table, layout, &entries[i].key, entries[i].end);
		if (error)
			return error;
	}
	return 0;
}

/* All counters are 0, so keys may move without them, which is faster. */
int table_build(struct table *table, const struct table_entry *entries, size_t count)
{
	struct abi_counter *counter = table->memory.counter;
	int error;

	table->memory.counter = NULL;
	error = CORE_CALL(build, table, entries, count);
	table->memory.counter = counter;
	return error;
}

/*
 * ---- makes a live table hold exactly the wanted entries ----
 *
 * Each wanted key claims an entry of the table, if there is one. Then the entries that no key claimed are deleted, and
 * the keys without an entry are inserted. Claims take one bit per slot; sorting the keys would take as much memory as
 * the keys.
 */

#define MARK_BITS 64

FLOW_INLINE bool claim_in(const struct table *table, struct bucket_layout layout, __u32 bucket, __u32 fingerprint,
			  __u64 tag, __u64 *kept, struct table_place *claimed)
{
	struct table_place place = { bucket, 0 };

	for (; core_find_entry(table, layout, place, fingerprint, tag, &place); place.slot++) {
		const __u64 at = table_slot(layout, place), bit = 1ULL << at % MARK_BITS;

		if (kept[at / MARK_BITS] & bit)
			continue;
		kept[at / MARK_BITS] |= bit;
		*claimed = place;
		return true;
	}
	return false;
}

/* Sets the end of a claimed entry to the wanted end. Returns 1 if it changed, else 0. */
FLOW_INLINE unsigned int retime(const struct table *table, struct bucket_layout layout, struct table_place place,
				const struct table_entry *entry)
{
	__u64 *record;
	__u32 end;

	if (!layout.has_records)
		return 0;
	record = table_record(table, layout, place);
	end = abi_record_end(*record);
	if (end == entry->end)
		return 0;
	if (end && entry->end && (end > entry->end ? end - entry->end : entry->end - end) <= TABLE_TICKS_TOLERATED)
		return 0;
	__atomic_store_n(record, abi_record(entry->key.tag, entry->end), __ATOMIC_RELEASE);
	return 1;
}

/*
 * Claims an entry of the table for each wanted entry, and sets its end. Moves the wanted entries without a claim to
 * the front of `entries`, and returns their number.
 */
FLOW_INLINE size_t claim_all(const struct table *table, struct bucket_layout layout, struct table_entry *entries,
			     size_t count, __u64 *kept, __u64 *retimed)
{
	size_t missing = 0;

	for (size_t i = 0; i < count; i++) {
		const struct table_entry entry = entries[i];
		const struct bucket_pair pair = core_pair(table, layout, &entry.key);
		struct table_place place;

		if (i + CORE_AHEAD < count)
			core_prefetch(table, layout, &entries[i + CORE_AHEAD].key);
		if (claim_in(table, layout, pair.first, pair.fingerprint, entry.key.tag, kept, &place) ||
		    claim_in(table, layout, pair.second, pair.fingerprint ^ layout.side, entry.key.tag, kept, &place)) {
			*retimed += retime(table, layout, place, &entry);
			continue;
		}
		entries[i] = entries[missing];
		entries[missing++] = entry;
	}
	return missing;
}

/*
 * Deletes the entries that no key claimed, from the lowest slot on, and returns their number. A delete from a
 * semi-sorted bucket moves only the entries in lower slots, which are already checked.
 */
FLOW_INLINE __u64 sweep(struct table *table, struct bucket_layout layout, const __u64 *kept)
{
	const __u64 slots = (__u64)table->geometry.buckets * layout.slots, before = table->used;

	for (__u64 slot = 0; slot < slots; slot++) {
		const struct table_place place = { slot / layout.slots, slot % layout.slots };
		const __u32 fingerprint = table_load(table, layout, place);

		if (fingerprint && !(kept[slot / MARK_BITS] >> slot % MARK_BITS & 1))
			core_erase(table, layout, place, fingerprint,
				   layout.has_records ? abi_record_tag(*table_record(table, layout, place)) : 0);
	}
	return before - table->used;
}

/*
 * Below the promised load, only an insert of too many equal entries fails, quickly, and the other entries still fit.
 * Above it, nearly every insert fails, slowly, so the first failure ends the loop.
 */
FLOW_INLINE int insert_all(struct table *table, struct bucket_layout layout, const struct table_entry *entries,
			   size_t count, __u64 *added)
{
	const __u64 promised = table_slots(table) * TABLE_LOAD_PERCENT / 100;
	int error = 0;

	for (size_t i = 0; i < count && !(error && table->used >= promised); i++) {
		if (i + CORE_AHEAD < count)
			core_prefetch(table, layout, &entries[i + CORE_AHEAD].key);
		if (core_insert(table, layout, &entries[i].key, entries[i].end))
			error = -ENOSPC;
		else
			(*added)++;
	}
	return error;
}

/* claim_all() for the whole table, which it maps and counts. `kept`: the claimed slots; the caller frees them. */
static int claim_entries(struct table *table, struct table_entry *entries, size_t count, __u64 **kept, size_t *missing,
			 struct table_difference *difference)
{
	*kept = calloc(table_slots(table) / MARK_BITS, sizeof(**kept));
	if (!*kept || table_reach_all(table))
		return -ENOMEM;
	table->used = table_count(table);
	*missing = CORE_CALL(claim_all, table, entries, count, *kept, &difference->retimed);
	return 0;
}

int table_add_missing(struct table *table, struct table_entry *entries, size_t count, bool is_later,
		      struct table_difference *difference)
{
	FREED __u64 *kept = NULL;
	size_t missing;
	int error = claim_entries(table, entries, count, &kept, &missing, difference);

	if (!error && table->used + missing > table_slots(table) * TABLE_LOAD_PERCENT / 100)
		error = -ENOSPC;
	for (size_t i = 0; !error && i < missing; i++)
		if (entries[i].is_later == is_later) {
			error = table_insert(table, &entries[i].key, entries[i].end);
			difference->added += !error;
		}
	return error;
}

int table_reconcile(struct table *table, struct table_entry *entries, size_t count, struct table_difference *difference)
{
	FREED __u64 *kept = NULL;
	size_t missing;
	int error;

	*difference = (struct table_difference){};
	error = claim_entries(table, entries, count, &kept, &missing, difference);
	if (error)
		return error;
	difference->kept = count - missing;
	difference->removed = CORE_CALL(sweep, table, kept);
	return CORE_CALL(insert_all, table, entries, missing, &difference->added);
}

/* ---- semisort.h ---- */

#define PREFIXES (1 << BUCKET_SORTED_PREFIX_BITS)

static __u16 prefixes[BUCKET_SORTED_CODES];

__attribute__((constructor)) static void make_prefixes(void)
{
	__u32 p[BUCKET_SLOTS];

	for (p[3] = 0; p[3] < PREFIXES; p[3]++)
		for (p[2] = 0; p[2] <= p[3]; p[2]++)
			for (p[1] = 0; p[1] <= p[2]; p[1]++)
				for (p[0] = 0; p[0] <= p[1]; p[0]++)
					prefixes[semisort_code(p)] = p[0] | p[1] << 4 | p[2] << 8 | p[3] << 12;
}

const __u16 *semisort_prefixes(void)
{
	return prefixes;
}
