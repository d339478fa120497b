// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Changes many keys of a table in one call: fills an empty one, or makes a live one hold what is wanted. Maps the memory for that. */
#include <string.h>

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

#define MARK_BITS 64 /* in a word of struct table_claims */

static bool is_kept(const __u64 *kept, __u64 slot)
{
	return kept[slot / MARK_BITS] >> slot % MARK_BITS & 1;
}

FLOW_INLINE bool claim_in(const struct table *table, struct bucket_layout layout, __u32 bucket, __u32 fingerprint,
			  __u64 tag, __u64 *kept, struct table_place *claimed)
{
	struct table_place place = { bucket, 0 };

	for (; core_find_entry(table, layout, place, fingerprint, tag, &place); place.slot++) {
		const __u64 slot = table_slot(layout, place);

		if (is_kept(kept, slot))
			continue;
		kept[slot / MARK_BITS] |= 1ULL << slot % MARK_BITS;
		*claimed = place;
		return true;
	}
	return false;
}

/* Sets the end of a claimed entry to the wanted end. Returns whether it changed. */
FLOW_INLINE bool retime(const struct table *table, struct bucket_layout layout, struct table_place place,
			const struct table_entry *entry)
{
	__u64 *record;
	__u32 end;

	if (!layout.has_records)
		return false;
	record = table_record(table, layout, place);
	end = abi_record_end(*record);
	if (end == entry->end)
		return false;
	if (end && entry->end && (end > entry->end ? end - entry->end : entry->end - end) <= TABLE_TICKS_TOLERATED)
		return false;
	__atomic_store_n(record, abi_record(entry->key.tag, entry->end), __ATOMIC_RELEASE);
	return true;
}

/*
 * Claims an entry of the table for each wanted entry, and sets its end if its turn is not after `turn`. Moves the wanted
 * entries without a claim to the front of `entries`, and returns their number.
 */
FLOW_INLINE size_t claim_all(const struct table *table, struct bucket_layout layout, struct table_entry *entries,
			     size_t count, __u32 turn, __u64 *kept, __u64 *retimed)
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
			*retimed += entry.turn <= turn && retime(table, layout, place, &entry);
			continue;
		}
		entries[i] = entries[missing];
		entries[missing++] = entry;
	}
	return missing;
}

/*
 * Deletes the entries that no key claimed, from the lowest slot on. A delete from a semi-sorted bucket moves only the
 * entries in lower slots, which are already checked.
 */
FLOW_INLINE void sweep(struct table *table, struct bucket_layout layout, const __u64 *kept)
{
	const __u64 slots = (__u64)table->geometry.buckets * layout.slots;

	for (__u64 slot = 0; slot < slots; slot++) {
		const struct table_place place = { slot / layout.slots, slot % layout.slots };
		const __u32 fingerprint = table_load(table, layout, place);

		if (fingerprint && !is_kept(kept, slot))
			core_erase(table, layout, place, fingerprint,
				   layout.has_records ? abi_record_tag(*table_record(table, layout, place)) : 0);
	}
}

/* See table_end_others(). A copy that an interrupted move has left stays as long as the wanted entry. */
FLOW_INLINE void end_others(struct table *table, struct bucket_layout layout, const __u64 *kept, __u32 now, __u32 later)
{
	for (__u64 slot = 0; slot < table_slots(table); slot++) {
		struct table_place place = { slot / layout.slots, slot % layout.slots }, twin;
		const __u32 fingerprint = table_load(table, layout, place);
		__u64 *record = table_record(table, layout, place), tag = abi_record_tag(*record);
		__u32 end = abi_record_end(*record);

		if (!fingerprint)
			continue;
		if (is_kept(kept, slot) || (core_find_twin(table, layout, place, fingerprint, tag, &twin) &&
					    is_kept(kept, table_slot(layout, twin)))) {
			if (end > now)
				end = end <= ABI_END_MAX - later ? end + later : 0;
		} else if (!end || end > now + later) {
			end = now + later;
		}
		if (end != abi_record_end(*record))
			__atomic_store_n(record, abi_record(tag, end), __ATOMIC_RELEASE);
	}
}

void table_end_others(struct table *table, const struct table_claims *claims, __u32 now, __u32 later)
{
	end_others(table, core_exact(), claims->slots, now, later);
}

void table_remove_others(struct table *table, const struct table_claims *claims)
{
	CORE_CALL(sweep, table, claims->slots);
}

/*
 * Below the promised load, only an insert of too many equal entries fails, quickly, and the other entries still fit.
 * Above it, nearly every insert fails, slowly, so the first failure ends the loop.
 */
FLOW_INLINE int insert_all(struct table *table, struct bucket_layout layout, const struct table_entry *entries,
			   size_t count, __u32 turn, __u64 *added)
{
	const __u64 promised = table_slots(table) * TABLE_LOAD_PERCENT / 100;
	int error = 0;

	for (size_t i = 0; i < count && !(error && table->used >= promised); i++) {
		if (i + CORE_AHEAD < count)
			core_prefetch(table, layout, &entries[i + CORE_AHEAD].key);
		if (entries[i].turn != turn)
			continue;
		if (core_insert(table, layout, &entries[i].key, entries[i].end))
			error = -ENOSPC;
		else
			(*added)++;
	}
	return error;
}

int table_claim(struct table *table, struct table_entry *entries, size_t count, __u32 turn, struct table_claims *claims,
		__u64 *retimed)
{
	*claims = (struct table_claims){ .slots = calloc(table_slots(table) / MARK_BITS, sizeof(*claims->slots)) };
	if (!claims->slots || table_reach_all(table))
		return -ENOMEM;
	table->used = table_count(table);
	claims->missing = CORE_CALL(claim_all, table, entries, count, turn, claims->slots, retimed);
	claims->others = table->used - (count - claims->missing);
	return 0;
}

void table_claims_close(struct table_claims *claims)
{
	free(claims->slots);
	*claims = (struct table_claims){};
}

int table_add_missing(struct table *table, struct table_entry *entries, size_t count, __u32 turn,
		      struct table_difference *difference)
{
	struct table_claims claims;
	int error = table_claim(table, entries, count, turn, &claims, &difference->retimed);

	if (!error)
		error = CORE_CALL(insert_all, table, entries, claims.missing, turn, &difference->added);
	table_claims_close(&claims);
	return error;
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
