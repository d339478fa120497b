// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Makes the table that packets use equal to the store, without a second table, whatever it holds.
 * The order:
 *
 *    new shapes beside the old ones
 *    hints of what comes; no shortcuts
 *    entries of pass rules that are missing; wait; those of other rules      all that have room
 *    policies
 *    entries that are too much: all end at once                              one store: see end_at_once()
 *    they are removed
 *    what had no room before
 *    hints and shortcuts as wanted; the old shapes go
 *
 * So if both the old rules and the new ones pass a packet, it passes at each moment. The same holds
 * if both drop it, as long as old and new have room beside each other, as shapes and as entries.
 * Without that room it may pass for a moment. But while a drop rule is there, so are its exceptions.
 * A compact table keeps no ends, and the records of a table of some months may have no room for
 * them. There, old exceptions may go first.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "filter/internal.h"

struct filling {
	struct filter_entries entries;
	struct table_claims claims[FILTER_PARTS];
	struct table_difference difference;
	bool lacks_room;   /* for entries beside the old ones */
	bool lacks_shapes; /* for shapes beside the old ones */
};

static void close_filling(struct filling *filling)
{
	for (enum filter_part part = 0; part < FILTER_PARTS; part++)
		table_claims_close(&filling->claims[part]);
	filter_entries_close(&filling->entries);
}

/* A packet that has looked for pass rules must not find a drop rule that came with one. */
static int add_missing(struct filling *filling, struct reason *reason)
{
	struct filter *filter = filling->entries.filter;
	int error = 0;

	filling->lacks_room = false;
	for (__u32 turn = 0; turn < 2 && !filling->lacks_room; turn++) {
		const struct table_difference before = filling->difference;

		/*
		 * A key may leave one part for the other. So if one is full, the other gets its
		 * entries all the same.
		 */
		for (enum filter_part part = 0; part < FILTER_PARTS; part++) {
			const struct filter_collected *wanted = &filling->entries.part[part];
			struct table *table = &filter->tables.part[part];

			error = table->search ? table_add_missing(table, wanted->entry, wanted->count, turn,
								  &filling->difference) :
						0;
			if (error && error != -ENOSPC)
				return reason_set(reason, error, "no memory to fill the table");
			filling->lacks_room |= error == -ENOSPC;
		}
		error = filling->difference.added != before.added || filling->difference.retimed != before.retimed ?
				filter_wait_for_packets(filter, reason) :
				0;
		if (error)
			return error;
	}
	return 0;
}

#define LATER 1024 /* ticks: a minute at least, and so longer than it takes */

/*
 * Nothing tells which of the old entries are those of pass rules. So all of them end later, and
 * then the epoch, from which ends count, goes back by as much. The ends of entries that stay are
 * moved before that.
 */
static int end_at_once(struct filling *filling, struct reason *reason)
{
	struct filter *filter = filling->entries.filter;
	struct abi_table *in_config = filter_abi_table(filter);
	const struct filter_collected *wanted = &filling->entries.part[FILTER_RECORDS];
	__u32 now;
	int error;

	/* Without the kernel's clock they go one by one, */
	if (ticks_now(&now, &(struct reason){}))
		return 0;
	/* The process that has set the epoch may have been ahead. */
	now = (__s32)(now - in_config->epoch) > 0 ? now - in_config->epoch : 0;
	/* and in a table so old that no record can hold the new end. */
	if (now > ABI_END_MAX - LATER)
		return 0;
	table_end_others(&filter->table, &filling->claims[FILTER_RECORDS], now, LATER);
	error = filter_wait_for_packets(filter, reason);
	if (error)
		return error;
	__atomic_store_n(&in_config->epoch, in_config->epoch - LATER, __ATOMIC_RELEASE);
	for (struct table_entry *entry = wanted->entry; entry < wanted->entry + wanted->count; entry++)
		if (entry->end > now) /* too far ahead for a record: as filter_end() */
			entry->end = entry->end <= ABI_END_MAX - LATER ? entry->end + LATER : 0;
	/* A packet may have loaded the old epoch before it looks up what goes now. */
	return filter_wait_for_packets(filter, reason);
}

/* The addresses have no pass rules: theirs go before the exceptions to them. */
static int remove_others(struct filling *filling, struct store *store, struct reason *reason)
{
	struct filter *filter = filling->entries.filter;
	int error = 0;

	for (enum filter_part part = FILTER_PARTS; part-- > 0 && !error;) {
		const struct filter_collected *wanted = &filling->entries.part[part];
		struct table_claims *claims = &filling->claims[part];
		struct table *table = &filter->tables.part[part];

		if (!table->search)
			continue;
		if (table_claim(table, wanted->entry, wanted->count, 1, claims, &filling->difference.retimed))
			return reason_set(reason, -ENOMEM, "no memory to fill the table");
		filling->difference.removed += claims->others;
		if (table->memory.record && claims->others && filter_publishes_pass(filter))
			error = end_at_once(filling, reason);
		if (part == FILTER_RECORDS && filling->lacks_shapes && !error)
			error = filter_publish_shapes(filter, store, false, reason);
		if (!error)
			table_remove_others(table, claims);
	}
	return error;
}

/*
 * The hints in use get the bits of new entries before these come, and keep the bits of old ones
 * until these are gone.
 */
static int make_equal(struct filling *filling, struct store *store, struct reason *reason)
{
	struct filter *filter = filling->entries.filter;
	const struct hints in_use = filter_hints(filter);
	FREED __u8 *wanted = calloc(ABI_HINTS(in_use.shift), sizeof(*wanted));
	int error;

	if (!wanted)
		return reason_set(reason, -ENOMEM, "no memory for hints");
	filling->entries.hints.byte = wanted;
	error = filter_entries_collect(&filling->entries, reason);
	if (error)
		return error;
	hints_clear_all_shortcuts(in_use);
	hints_add(in_use, wanted);
	error = add_missing(filling, reason);
	if (!error)
		error = filter_set_policies(filter, store, reason);
	if (!error)
		error = remove_others(filling, store, reason);
	if (!error && filling->lacks_room)
		error = add_missing(filling, reason);
	if (!error && filling->lacks_room)
		error = filter_full_reason(filter, filling->entries.collected, reason);
	filling->difference.kept = filling->entries.collected - filling->difference.added;
	if (!error)
		hints_replace(in_use, wanted);
	return error;
}

int filter_fill_in_place(struct filter *filter, struct store *store, struct table_difference *difference,
			 struct reason *reason)
{
	CLOSED_BY(close_filling) struct filling filling = {};
	struct store_info info;
	int error = store_info(store, &info);

	if (error)
		return store_unread_reason(error, reason);
	filter->kernel.config->generation = ABI_GENERATION_DIRTY;
	/* If all rules go, the policies and the empty list of shapes come first. */
	if (!info.rules)
		error = filter_set_policies(filter, store, reason);
	if (!error)
		error = filter_publish_shapes(filter, store, info.rules, reason);
	filling.lacks_shapes = error == -E2BIG || error == -ENOSPC;
	if (!error || filling.lacks_shapes)
		error = filter_entries_open(&filling.entries, filter, store, false, reason);
	if (!error)
		error = make_equal(&filling, store, reason);
	if (difference)
		*difference = filling.difference;
	if (!error)
		error = filter_publish_shapes(filter, store, false, reason);
	if (error)
		return error;
	filter_abi_table(filter)->plan = info.plan;
	filter_set_generation(filter, info.generation);
	return 0;
}
