// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Carries the counts of rules over from an old table to a new one. Each slot of the old table has a
 * counter. Its heir is the slot of the new table whose rule matches the same packets. The order, of
 * which filter_switch() has the second part:
 *
 *    the new table is filled
 *    heirs are found, if anything was counted      takes as long as to read the store
 *    the store commits
 *    counts are carried                            so nobody who reads counts sees them go back
 *    packets use the new table; wait               from here on the old counts stand still
 *    heirs are found, if nothing was counted before
 *    counts are carried                            only what has come since the first time
 */
#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "filter/internal.h"

/*
 * Visits the counters of a table until `visit` returns false. Slots have the numbers of
 * filter_find(). Maps one part of them after the other, because all of them are more than half of
 * the table. 0 or -ENOMEM.
 */
#define PART_SLOTS (1ULL << 12)

static int each_counter(const struct filter *filter,
			bool (*visit)(__u64 slot, const struct abi_counter *counter, void *context), void *context)
{
	const __u64 records = table_slots(&filter->table), slots = filter_tables_slots(&filter->tables);
	const struct abi_table *in_config = filter_abi_table(filter);
	bool goes_on = true;
	__u64 count;

	for (__u64 first = 0; first < slots && goes_on; first += count) {
		const __u64 left = (first < records ? records : slots) - first;
		const __u64 at = first < records ? in_config->first_slot + first :
						   in_config->addresses.first_slot + first - records;
		const struct abi_counter *counter;

		count = left < PART_SLOTS ? left : PART_SLOTS;
		counter = kernel_map_window(&filter->kernel.map[KERNEL_COUNTS], at * sizeof(*counter),
					    count * sizeof(*counter));
		if (!counter)
			return -ENOMEM;
		for (__u64 i = 0; i < count && goes_on; i++)
			goes_on = visit(first + i, &counter[i], context);
		kernel_unmap_window(counter, count * sizeof(*counter));
	}
	return 0;
}

static bool is_zero(__u64 slot, const struct abi_counter *counter, void *context)
{
	(void)slot;
	*(bool *)context = counter->packets;
	return !counter->packets;
}

static bool find_slot(const struct filter *filter, const struct rule_key *key, __u32 *slot)
{
	return filter_find(filter_abi_table(filter), &filter->tables, key, FILTER_ADDRESSES, slot) ||
	       filter_find(filter_abi_table(filter), &filter->tables, key, FILTER_RECORDS, slot);
}

/* ---- under a new plan ----
 *
 * The plan of the store says which shapes are looked up as longer ones (rule/shapes.h). Under a new plan a rule has other
 * keys than before, so the heir is the slot of one of its new keys.
 */

struct heir_search {
	struct filter_heirs *heirs;
	const struct filter *new;
	struct shape_list shapes; /* of the new table */
	bool is_replanned;
	__u32 *narrowest; /* if it is: by new slot, the narrowest rule with its key */
	__u32 rule;       /* the number of the present rule; the first of the store is 1 */
};

/*
 * Finds the shape that the key was looked up as under the old plan. Nothing stores the old plan, but the old
 * table shows it: it has every key that this key expanded to.
 */
static bool find_old_shape(const struct filter *old, const struct rule_key *key, struct rule_shape *probed)
{
	const struct abi_shape_list *list = abi_shapes(filter_abi_table(old), key->shape.family);
	__u32 slot;

	*probed = key->shape;
	if (find_slot(old, key, &slot))
		return true;
	for (__u32 i = 0; i < list->count; i++) {
		unsigned int bits = 64;
		bool has_all = true;

		*probed = rule_shape_of_compiled(abi_shape_at(list, i), key->shape.family);
		probed->fields &= ~RULE_ADDRESSES;
		if (rule_can_expand(&key->shape, probed))
			bits = rule_expansion_bits(&key->shape, probed);
		/* Not more look-ups than the table has keys. */
		if (bits >= 64 || 1ULL << bits > filter_abi_table(old)->used + filter_abi_table(old)->addresses.used)
			continue;
		for (__u64 n = 0; n < 1ULL << bits && has_all; n++) {
			const struct rule_key expanded = rule_expand(key, probed, n);

			has_all = find_slot(old, &expanded, &slot);
		}
		if (has_all)
			return true;
	}
	return false;
}

/*
 * Finds the slot of the new table that gets the counts of this key of the present rule. It prefers a slot
 * that no narrower rule has, since that rule would show packets that it does not match. The search starts
 * with the last expanded key, because lists name the first networks of a prefix more often.
 */
static bool find_heir(const struct heir_search *search, const struct rule_key *key, const struct rule_shape *probed,
		      __u32 *heir)
{
	const __u64 last = (1ULL << rule_expansion_bits(&key->shape, probed)) - 1;
	__u32 slot;

	for (__u64 i = 0; i <= last; i++) {
		const struct rule_key expanded = rule_expand(key, probed, last - i);

		if (!find_slot(search->new, &expanded, &slot))
			return false;
		if (!i || search->narrowest[slot] == search->rule)
			*heir = slot;
		if (search->narrowest[slot] == search->rule)
			break;
	}
	return true;
}

static int note_narrowest(const struct rule_key *key, bool is_shared, void *context)
{
	const struct heir_search *search = context;
	__u32 slot;

	(void)is_shared;
	if (find_slot(search->new, key, &slot))
		search->narrowest[slot] = search->rule;
	return 0;
}

/* The store visits wider rules before narrower ones. */
static int note_rule(const struct rule *rule, void *context)
{
	struct heir_search *search = context;

	search->rule++;
	return keys_each(&search->shapes, rule, note_narrowest, search);
}

/* ---- heirs ---- */

/* Of the slots that the old table has for this key of a rule, under the plan of that table. */
static void find_heirs_of_key(const struct heir_search *search, const struct rule_key *key)
{
	const struct rule_shape *probed = &shape_list_find(&search->shapes, &key->shape)->probed_as;
	const struct filter *old = search->heirs->old;
	struct rule_shape old_probed = *probed;
	__u32 old_slot, heir;
	bool is_same;

	if (search->is_replanned && !find_old_shape(old, key, &old_probed))
		return;
	is_same = rule_shape_equal(&old_probed, probed);
	if (!is_same && !find_heir(search, key, probed, &heir))
		return;
	for (__u64 i = 0; i < 1ULL << rule_expansion_bits(&key->shape, &old_probed); i++) {
		const struct rule_key old_key = rule_expand(key, &old_probed, i);

		/* It is in both parts if a change failed that moved it. */
		for (enum filter_part part = 0; part < FILTER_PARTS; part++)
			if (filter_find(filter_abi_table(old), &old->tables, &old_key, part, &old_slot) &&
			    (!is_same || find_slot(search->new, &old_key, &heir)))
				search->heirs->slot[old_slot] = heir + 1;
	}
}

/* The narrowest rule that had a key comes last, and so gets its count. */
static int find_heirs_of_rule(const struct rule *rule, void *context)
{
	struct heir_search *search = context;
	struct rule_key keys[RULE_KEYS_MAX];
	const size_t count = rule_keys(rule, keys);

	search->rule++;
	for (size_t i = 0; i < count; i++)
		find_heirs_of_key(search, &keys[i]);
	return 0;
}

int filter_heirs_find(struct filter_heirs *heirs, const struct filter *new, struct reason *reason)
{
	struct heir_search search = { .heirs = heirs, .new = new };
	FREED __u32 *narrowest = NULL;
	bool is_counted = false;
	int error;

	if (!heirs->old || heirs->slot)
		return 0;
	error = each_counter(heirs->old, is_zero, &is_counted);
	if (!error && !is_counted)
		return 0;
	heirs->slot = calloc(filter_tables_slots(&heirs->old->tables), sizeof(*heirs->slot));
	heirs->carried = calloc(filter_tables_slots(&heirs->old->tables), sizeof(*heirs->carried));
	search.is_replanned = filter_abi_table(heirs->old)->plan != filter_abi_table(new)->plan;
	if (search.is_replanned)
		narrowest = calloc(filter_tables_slots(&new->tables), sizeof(*narrowest));
	if (error || !heirs->slot || !heirs->carried || (search.is_replanned && !narrowest))
		return reason_set(reason, -ENOMEM, "no memory to carry counts over");
	search.narrowest = narrowest;
	error = store_shapes(heirs->store, &search.shapes);
	if (!error && search.is_replanned)
		error = store_each(heirs->store, note_rule, &search);
	search.rule = 0;
	if (!error)
		error = store_each(heirs->store, find_heirs_of_rule, &search);
	return store_unread_reason(error, reason);
}

void filter_heirs_close(struct filter_heirs *heirs)
{
	free(heirs->slot);
	free(heirs->carried);
	*heirs = (struct filter_heirs){};
}

/* ---- counts ---- */

struct carrying {
	const struct filter_heirs *heirs;
	const struct filter *to;
};

static bool carry(__u64 slot, const struct abi_counter *old, void *context)
{
	const struct carrying *carrying = context;
	const __u32 heir = carrying->heirs->slot[slot];
	struct abi_counter *carried = &carrying->heirs->carried[slot], now, *counter;

	if (!heir)
		return true;
	counter = filter_counter(&carrying->to->tables, heir - 1);
	now.packets = __atomic_load_n(&old->packets, __ATOMIC_RELAXED);
	now.bytes = __atomic_load_n(&old->bytes, __ATOMIC_RELAXED);
	/* Atomic, because packets may be counted in the new table already. */
	__atomic_fetch_add(&counter->packets, now.packets - carried->packets, __ATOMIC_RELAXED);
	__atomic_fetch_add(&counter->bytes, now.bytes - carried->bytes, __ATOMIC_RELAXED);
	*carried = now;
	return true;
}

void filter_heirs_carry(const struct filter_heirs *heirs, const struct filter *to)
{
	/* Without memory the counts stay in the old table. */
	if (heirs->slot && heirs->carried)
		each_counter(heirs->old, carry, &(struct carrying){ heirs, to });
}
