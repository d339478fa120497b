// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Inserts and deletes one key of a filter, and sets when it ends. */
#include "filter/hints.h"
#include "filter/internal.h"
#include "kernel/ticks.h"

#define AHEAD_TICKS 16 /* at most, by which processes differ: one, and time to spare */
#define STOPPED_MS 100 /* reading two clocks takes less, unless the process was stopped */

/*
 * Reads two clocks. If this process was stopped between the two reads, it starts again; otherwise the rule
 * would end late by that time.
 */
int filter_tick(const struct store *store, __s64 timeout_ms, __u32 *tick, struct reason *reason)
{
	__s64 lag_ms, left_ms;
	int error;

	do {
		lag_ms = timeout_ms ? store_lag_ms(store) : 0;
		left_ms = timeout_ms - lag_ms;
		/* 0 means never, so a timeout that ends now counts as just over. */
		error = ticks_at(timeout_ms && !left_ms ? -1 : left_ms, tick, reason);
	} while (!error && timeout_ms && store_lag_ms(store) - lag_ms > STOPPED_MS);
	return error;
}

__u32 filter_end(const struct filter *filter, __u32 tick)
{
	const __u32 epoch = filter_own(filter)->epoch;

	if (!tick || tick - epoch <= ABI_END_MAX)
		return tick ? tick - epoch + (tick == epoch) : 0;
	return tick < epoch;
}

bool filter_has_aged(const struct filter *filter, __u32 tick)
{
	const __u32 epoch = filter_own(filter)->epoch;
	struct reason ignored;
	__u32 now;

	if (!tick || ticks_now(&now, &ignored))
		return false;
	/* Another process may have made the table, and its estimate of the tick may be ahead. */
	return now - epoch > ABI_END_MAX / 2 && epoch - now > AHEAD_TICKS;
}

int filter_insert(struct filter *filter, const struct rule_key *key, __u32 tick)
{
	const struct hash_value value = rule_hash(key, &filter_own(filter)->secret);
	__u64 hint;
	int error = filter_hint(filter, &key->shape, &hint);

	if (error)
		return error;
	hints_mark(filter_hints(filter), key, hint);
	error = table_insert(&filter->table, &value, filter_end(filter, tick));
	if (!error && !tick)
		hints_set_shortcuts(filter_hints(filter), key);
	return error;
}

int filter_delete(struct filter *filter, const struct rule_key *key)
{
	const struct hash_value value = rule_hash(key, &filter_own(filter)->secret);

	hints_clear_shortcuts(filter_hints(filter), key);
	return table_delete(&filter->table, &value);
}

int filter_set_end(struct filter *filter, const struct rule_key *key, __u32 tick)
{
	const struct hash_value value = rule_hash(key, &filter_own(filter)->secret);
	int error;

	if (!filter->kernel.options.is_exact)
		return 0;
	if (tick)
		hints_clear_shortcuts(filter_hints(filter), key);
	error = table_set_end(&filter->table, &value, filter_end(filter, tick));
	if (!error && !tick)
		hints_set_shortcuts(filter_hints(filter), key);
	return error;
}
