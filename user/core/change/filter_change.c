// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How one change reaches the table of one filter: the states (enum filter_way) and all their transitions.
 *
 *                  filter_change_begin()
 *                           |
 *                           v   all added keys are in the table, and no more
 *                   FILTER_KEY_BY_KEY --------------------------------------> FILTER_KEYS_IN
 *                      |          |
 *    all rules deleted |          | filter_change_replace(): a new table is better, or needed
 *                      v          v
 *           FILTER_REFILL ----> FILTER_REPLACE
 *                   the keys need another size
 *
 * A filter changes its state only before the commit. A table gets the generation ABI_GENERATION_DIRTY before its
 * first change, and the store's generation when it is equal to the store again. An abort and the next change look
 * at the generation to see whether they must repair the table.
 */
#include "change/internal.h"

void filter_change_begin(struct filter *filter)
{
	filter_read_published(filter);
	filter->way = FILTER_KEY_BY_KEY;
}

void filter_change_keys_in(struct filter *filter)
{
	filter->way = FILTER_KEYS_IN;
}

/* Refilling is faster than deleting each key. */
void filter_change_refill(struct filter *filter)
{
	if (filter->way == FILTER_KEY_BY_KEY)
		filter->way = FILTER_REFILL;
}

/* The first cause stays. */
void filter_change_replace(struct filter *filter, enum filter_cause cause)
{
	if (filter->way == FILTER_REPLACE)
		return;
	filter->way = FILTER_REPLACE;
	filter->cause = cause;
}

int filter_change_prepare(const struct session *session, struct filter *filter, __u64 keys, struct reason *reason)
{
	const __u64 slots = filter_slots_to_grow_to(filter, keys);

	if (filter->way == FILTER_REFILL && slots != table_slots(&filter->table))
		filter_change_replace(filter, FILTER_TOO_SMALL);
	return filter->way == FILTER_REPLACE ? filter_build_successor(filter, session->store, NULL, slots, reason) : 0;
}

int filter_change_finish(struct session *session, struct filter *filter, struct reason *reason)
{
	switch (filter->way) {
	case FILTER_REPLACE:
		return filter_switch(filter, reason);
	case FILTER_REFILL:
		return filter_refill(filter, session->store, reason);
	default:
		return entries_settle(session, filter, reason);
	}
}

/* After an error the table differs from the store, and the next change repairs it. */
void filter_change_undo(struct session *session, struct filter *filter)
{
	struct reason ignored;
	struct store_info info;

	if (store_info(session->store, &info) || filter->kernel.config->generation == info.generation)
		return;
	if (filter->way == FILTER_KEYS_IN && !entries_take_back(session, filter))
		filter_set_generation(filter, info.generation);
	else
		filter_refill(filter, session->store, &ignored);
}
