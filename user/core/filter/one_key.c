// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One key of the table that packets use: it comes, ends at another tick, changes its part, goes.
 * Publishes no shape.
 *
 * A hint comes before its key, or packets would skip the look-up. Shortcuts (include/shape.h) come
 * after the key, and go before it.
 */
#include <errno.h>

#include "filter/internal.h"
#include "table/publish_order.h"

/* ---- when it ends ---- */

/* Two processes' estimates of the present tick differ by one at most; 16 leaves a margin. */
#define AHEAD_TICKS 16
#define STOPPED_MS 100 /* more time than this between two reads of clocks: the process was stopped */

/*
 * Reads two clocks: the store's, and that of the ticks. If this process was stopped between the two reads, the rule
 * would end later by that time. Then both are read again.
 */
int filter_tick(const struct store *store, __s64 timeout_ms, __u32 *tick, struct reason *reason)
{
	__s64 lag_ms, left_ms;
	int error;

	do {
		lag_ms = timeout_ms ? store_lag_ms(store) : 0;
		left_ms = timeout_ms - lag_ms;
		/*
		 * ticks_at(0) means never. A rule that ends in 0 ms must not stay for ever: -1 says that it has ended.
		 */
		error = ticks_at(timeout_ms && !left_ms ? -1 : left_ms, tick, reason);
	} while (!error && timeout_ms && store_lag_ms(store) - lag_ms > STOPPED_MS);
	return error;
}

__u32 filter_end(const struct filter *filter, __u32 tick)
{
	const __u32 epoch = filter_abi_table(filter)->epoch;

	/* An end at the epoch becomes 1, because 0 means never. */
	if (!tick || tick - epoch <= ABI_END_MAX)
		return tick ? tick - epoch + (tick == epoch) : 0;
	/* Before the epoch: ended, so 1. Too far ahead for a record: 0, and the tool deletes the entry later. */
	return tick < epoch;
}

bool filter_has_aged(const struct filter *filter, __u32 tick)
{
	const __u32 epoch = filter_abi_table(filter)->epoch;
	struct reason ignored;
	__u32 now;

	if (!tick || ticks_now(&now, &ignored))
		return false;
	/* The epoch may be just after `now`: another process set it, whose estimate of the tick is ahead. */
	return now - epoch > ABI_END_MAX / 2 && epoch - now > AHEAD_TICKS;
}

/* ---- it comes ---- */

int filter_insert(struct filter *filter, const struct rule_key *key, __u32 tick)
{
	const enum filter_part part = filter_part_of(filter, &key->shape, tick);
	const struct rule_shape shape = filter_shape_in(&key->shape, part);
	const struct hash_value value = filter_hash(filter_abi_table(filter), key, part);
	__u64 hint;
	int error = filter_assign_hint(filter, &shape, &hint);

	if (error)
		return error;
	hints_mark(filter_hints(filter), key, hint);
	error = table_insert(&filter->tables.part[part], &value, filter_end(filter, tick));
	if (!error && !tick)
		hints_set_shortcuts(filter_hints(filter), key);
	return error;
}

/* ---- it is in one part, or changes its part ---- */

/* Whether the part has the key: 1, 0 or -ENOMEM. */
static int find_in(struct filter *filter, const struct rule_key *key, enum filter_part part, __u32 *slot)
{
	const struct hash_value value = filter_hash(filter_abi_table(filter), key, part);
	struct table *table = &filter->tables.part[part];

	return table_reach_all(table) ? -ENOMEM : table_find(table, &value, slot);
}

/* What the key has counted in a slot of one part goes to its slot of the other. */
static void move_count(struct filter *filter, const struct rule_key *key, enum filter_part part, __u32 slot)
{
	const struct table_memory *from = &filter->tables.part[part].memory, *to = &filter->tables.part[!part].memory;
	__u32 to_slot;

	if (!from->counter || !from->counter[slot].packets || find_in(filter, key, !part, &to_slot) <= 0)
		return;
	/* For hits_step(). No packet looks for the key here, so this waits for none, as table_announce() may. */
	__atomic_fetch_add(to->sequence, 1, __ATOMIC_RELEASE);
	table_move_word(&from->counter[slot].packets, &to->counter[to_slot].packets);
	table_move_word(&from->counter[slot].bytes, &to->counter[to_slot].bytes);
}

void filter_join_counts(struct filter *filter, const struct rule_key *key, enum filter_part part)
{
	__u32 slot;

	if (filter_part_of(filter, &key->shape, false) && find_in(filter, key, !part, &slot) > 0)
		move_count(filter, key, !part, slot);
}

/* Takes the key out of a part after it has come to the other. Its count goes with it. */
static int take_from(struct filter *filter, const struct rule_key *key, enum filter_part part, __u32 slot, bool is_new,
		     struct reason *reason)
{
	const struct hash_value value = filter_hash(filter_abi_table(filter), key, part);
	int error = is_new ? filter_wait_for_packets(filter, reason) : 0;

	if (error)
		return error;
	error = table_delete(&filter->tables.part[part], &value);
	if (!error)
		move_count(filter, key, part, slot);
	return error;
}

/*
 * A key that may be an address. Before the commit it comes to the part to which it then belongs. After it, it leaves the
 * other one, so that at each moment it is in one of them.
 */
static int set_end_of_address(struct filter *filter, const struct rule_key *key, __u32 tick, bool *is_done,
			      struct reason *reason)
{
	const struct hash_value record = filter_hash(filter_abi_table(filter), key, FILTER_RECORDS);
	const enum filter_part part = filter_part_of(filter, &key->shape, tick), other = !part;
	__u32 slot, other_slot;
	const int is_there = find_in(filter, key, part, &slot), must_leave = find_in(filter, key, other, &other_slot);
	int error = 0;

	if (is_there < 0 || must_leave < 0)
		return -ENOMEM;
	if (!is_there && !must_leave)
		return -ENOENT;
	if (is_done)
		*is_done = !must_leave;
	else if (tick)
		hints_clear_shortcuts(filter_hints(filter), key);
	if (!is_there)
		error = filter_insert(filter, key, tick);
	else if (tick)
		error = table_set_end(&filter->table, &record, filter_end(filter, tick), must_leave ? NULL : is_done);
	if (!error && !tick)
		hints_set_shortcuts(filter_hints(filter), key);
	return !error && must_leave && !is_done ? take_from(filter, key, other, other_slot, !is_there, reason) : error;
}

int filter_set_end(struct filter *filter, const struct rule_key *key, __u32 tick, bool *is_done, struct reason *reason)
{
	const struct hash_value value = filter_hash(filter_abi_table(filter), key, FILTER_RECORDS);
	int error;

	if (!filter->kernel.options.is_exact)
		return 0;
	if (filter_part_of(filter, &key->shape, false) == FILTER_ADDRESSES)
		return set_end_of_address(filter, key, tick, is_done, reason);
	if (tick)
		hints_clear_shortcuts(filter_hints(filter), key);
	error = table_set_end(&filter->table, &value, filter_end(filter, tick), is_done);
	if (!error && !tick)
		hints_set_shortcuts(filter_hints(filter), key);
	return error;
}

/* ---- it goes ---- */

int filter_delete(struct filter *filter, const struct rule_key *key)
{
	int error = -ENOENT;

	hints_clear_shortcuts(filter_hints(filter), key);
	for (enum filter_part part = 0; part <= filter_part_of(filter, &key->shape, false); part++) {
		const struct hash_value value = filter_hash(filter_abi_table(filter), key, part);
		const int error_here = table_delete(&filter->tables.part[part], &value);

		if (error == -ENOENT || error_here == -ENOMEM)
			error = error_here;
	}
	return error;
}
