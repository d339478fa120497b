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

/* ---- of all filters ---- */

static bool can_replace(const struct filter *filter)
{
	return filter_can_build_successor(filter, filter_slots(&filter->kernel));
}

void change_at_once(const struct session *session)
{
	for (size_t i = 0; i < session->filters_count; i++)
		if (can_replace(&session->filters[i]))
			filter_change_replace(&session->filters[i], FILTER_AT_ONCE);
}

bool change_can_replace_all(const struct session *session)
{
	for (size_t i = 0; i < session->filters_count; i++)
		if (!can_replace(&session->filters[i]))
			return false;
	return true;
}

void change_replace_all(struct session *session)
{
	for (size_t i = 0; i < session->filters_count; i++)
		if (can_replace(&session->filters[i]))
			filter_change_replace(&session->filters[i], FILTER_NEW_PLAN);
		else
			filter_change_refill(&session->filters[i]);
}
