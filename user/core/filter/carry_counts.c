// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Carries the counts of rules over from an old table to a new one. Each slot of the old table has a counter. Its heir is
 * the slot of the new table whose rule matches the same packets. The plan of the store says which shapes are looked up as
 * longer ones. Under a new plan a rule has other keys than before, so the heir is the slot of one of its new keys.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "filter/internal.h"

/*
 * Visits the counters of a table. Maps one part of them after the other, because all of them are more than half of the
 * table. 0 or -ENOMEM.
 */
#define PART_SLOTS (1ULL << 12)

static int each_counter(const struct filter *filter,
			void (*visit)(__u64 slot, const struct abi_counter *counter, void *context), void *context)
{
	const __u64 records = table_slots(&filter->table), slots = filter_tables_slots(&filter->tables);
	const struct abi_table *in_config = filter_abi_table(filter);
	__u64 count;

	for (__u64 first = 0; first < slots; first += count) { /* slots have the numbers of filter_find() */
		const __u64 left = (first < records ? records : slots) - first;
		const __u64 at = first < records ? in_config->first_slot + first :
						   in_config->addresses.first_slot + first - records;
		const struct abi_counter *counter;

		count = left < PART_SLOTS ? left : PART_SLOTS;
		counter = kernel_map_window(&filter->kernel.map[KERNEL_COUNTS], at * sizeof(*counter),
					    count * sizeof(*counter));
		if (!counter)
			return -ENOMEM;
		for (__u64 i = 0; i < count; i++)
			visit(first + i, &counter[i], context);
		kernel_unmap_window(counter, count * sizeof(*counter));
	}
	return 0;
}

struct carrying {
	struct filter_entries *entries;
	__u64 *counted, counted_bits; /* which old keys need an heir, by their tags: see mark_counted() */
	__u32 *narrowest;             /* under a new plan, by new slot: the narrowest rule with its key */
	__u32 rule;                   /* the number of the present rule; the first of the store is 1 */
	bool has_any;                 /* at least one old key needs an heir */
};

static __u64 counted_bit(const struct carrying *carrying, __u64 tag)
{
	return (tag >> ABI_END_BITS) & (carrying->counted_bits - 1);
}

/*
 * Marks the old keys that need an heir: those that have a count now and had none in an earlier search. In `counted` the
 * tag of the key chooses a bit, which other keys may share. Most keys have no count, and the bit saves their look-up.
 */
static void mark_counted(__u64 slot, const struct abi_counter *counter, void *context)
{
	struct carrying *carrying = context;
	const struct filter_entries *entries = carrying->entries;
	const __u32 mark = ~entries->searches;
	__u64 bit;

	if (!counter->packets || (entries->heir[slot] && entries->heir[slot] != mark))
		return;
	bit = counted_bit(carrying, filter_tag(&entries->predecessor->tables, slot));
	entries->heir[slot] = mark;
	carrying->counted[bit / 64] |= 1ULL << bit % 64;
	carrying->has_any = true;
}

static bool find_slot(const struct filter *filter, const struct rule_key *key, __u32 *slot)
{
	return filter_find(filter_abi_table(filter), &filter->tables, key, FILTER_ADDRESSES, slot) ||
	       filter_find(filter_abi_table(filter), &filter->tables, key, FILTER_RECORDS, slot);
}

/* Whether a key of the old table has the bit that mark_counted() sets, in either part. */
static bool may_be_counted(const struct carrying *carrying, const struct rule_key *key)
{
	const struct filter *old = carrying->entries->predecessor;

	for (enum filter_part part = 0; part <= filter_part_of(old, &key->shape, false); part++) {
		const __u64 bit = counted_bit(carrying, filter_hash(filter_abi_table(old), key, part).tag);

		if (carrying->counted[bit / 64] >> bit % 64 & 1)
			return true;
	}
	return false;
}

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
static bool find_heir(const struct carrying *carrying, const struct rule_key *key, const struct rule_shape *probed,
		      __u32 *heir)
{
	const __u64 last = (1ULL << rule_expansion_bits(&key->shape, probed)) - 1;
	__u32 slot;

	for (__u64 i = 0; i <= last; i++) {
		const struct rule_key expanded = rule_expand(key, probed, last - i);

		if (!find_slot(carrying->entries->filter, &expanded, &slot))
			return false;
		if (!i || carrying->narrowest[slot] == carrying->rule)
			*heir = slot;
		if (carrying->narrowest[slot] == carrying->rule)
			break;
	}
	return true;
}

/*
 * Sets the heirs for one rule. The store visits wider rules before narrower ones, so the narrowest rule that
 * had a key gets its count.
 */
static int carry_rule(const struct rule *rule, void *context)
{
	struct carrying *carrying = context;
	const struct filter_entries *entries = carrying->entries;
	const struct filter *from = entries->predecessor;
	struct rule_key own[RULE_KEYS_MAX];
	const size_t count = rule_keys(rule, own);

	carrying->rule++;
	for (const struct rule_key *key = own; key < own + count; key++) {
		const struct rule_shape *probed = &shape_list_find(&entries->shapes, &key->shape)->probed_as;
		struct rule_shape old_probed = *probed;
		__u32 old_slot, heir;
		bool is_same;

		if (entries->is_replanned && !find_old_shape(from, key, &old_probed))
			continue;
		is_same = !memcmp(&old_probed, probed, sizeof(old_probed));
		if (!is_same && !find_heir(carrying, key, probed, &heir))
			continue;
		for (__u64 i = 0; i < 1ULL << rule_expansion_bits(&key->shape, &old_probed); i++) {
			const struct rule_key old = rule_expand(key, &old_probed, i);

			if (!may_be_counted(carrying, &old) || (is_same && !find_slot(entries->filter, &old, &heir)))
				continue;
			/* It is in both parts if a change failed that moved it. */
			for (enum filter_part part = 0; part < FILTER_PARTS; part++)
				if (filter_find(filter_abi_table(from), &from->tables, &old, part, &old_slot))
					entries->heir[old_slot] = heir + 1;
		}
	}
	return 0;
}

static int record_narrowest(const struct rule_key *key, bool is_shared, void *context)
{
	const struct carrying *carrying = context;
	__u32 slot;

	(void)is_shared;
	if (find_slot(carrying->entries->filter, key, &slot))
		carrying->narrowest[slot] = carrying->rule;
	return 0;
}

static int record_narrowest_of(const struct rule *rule, void *context)
{
	struct carrying *carrying = context;

	carrying->rule++;
	return keys_each(&carrying->entries->shapes, rule, record_narrowest, carrying);
}

int filter_entries_find_heirs(struct filter_entries *entries, struct reason *reason)
{
	struct carrying carrying = { .entries = entries, .counted_bits = 64 };
	int error = 0;

	if (!entries->predecessor)
		return 0;
	while (carrying.counted_bits < 2 * filter_tables_slots(&entries->predecessor->tables))
		carrying.counted_bits *= 2;
	carrying.counted = calloc(carrying.counted_bits / 64, sizeof(*carrying.counted));
	if (!entries->heir)
		entries->heir = calloc(filter_tables_slots(&entries->predecessor->tables), sizeof(*entries->heir));
	if (!entries->carried)
		entries->carried = calloc(filter_tables_slots(&entries->predecessor->tables), sizeof(*entries->carried));
	if (!entries->heir || !entries->carried || !carrying.counted) {
		error = -ENOMEM;
	} else {
		error = each_counter(entries->predecessor, mark_counted, &carrying);
	}
	entries->has_heirs |= carrying.has_any;
	if (carrying.has_any && !error) {
		if (entries->is_replanned) {
			carrying.narrowest = calloc(filter_tables_slots(&entries->filter->tables), sizeof(*carrying.narrowest));
			error = carrying.narrowest ? store_each(entries->store, record_narrowest_of, &carrying) :
						     -ENOMEM;
		}
		carrying.rule = 0;
		if (!error)
			error = store_each(entries->store, carry_rule, &carrying);
	}
	entries->searches++;
	free(carrying.counted);
	free(carrying.narrowest);
	if (error == -ENOMEM)
		return reason_set(reason, error, "no memory to carry counts over");
	return store_unread_reason(error, reason);
}

struct carrying_to {
	struct filter_entries *entries;
	const struct filter *filter;
};

static void carry(__u64 slot, const struct abi_counter *old, void *context)
{
	const struct carrying_to *to = context;
	const __u32 heir = to->entries->heir[slot] - 1;
	struct abi_counter *carried = &to->entries->carried[slot], now, *counter;

	if (heir >= filter_tables_slots(&to->filter->tables))
		return;
	counter = filter_counter(&to->filter->tables, heir);
	now.packets = __atomic_load_n(&old->packets, __ATOMIC_RELAXED);
	now.bytes = __atomic_load_n(&old->bytes, __ATOMIC_RELAXED);
	/* Atomic, because packets may be counted in the new table already. */
	__atomic_fetch_add(&counter->packets, now.packets - carried->packets, __ATOMIC_RELAXED);
	__atomic_fetch_add(&counter->bytes, now.bytes - carried->bytes, __ATOMIC_RELAXED);
	*carried = now;
}

void filter_entries_carry_counts(struct filter_entries *entries, const struct filter *to)
{
	struct carrying_to carrying = { entries, to };

	/* Without memory the counts stay in the old table. */
	if (entries->has_heirs)
		each_counter(entries->predecessor, carry, &carrying);
}
