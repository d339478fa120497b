// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Inserts and deletes one key of a target, and sets when it ends. */
#include "filter/hints.h"
#include "filter/internal.h"
#include "kernel/ticks.h"

#define STOPPED_MS 100 /* reading two clocks takes less, unless the process was stopped */

/*
 * Reads two clocks. If this process was stopped between the two reads, it starts again; otherwise the rule
 * would end late by that time.
 */
int target_tick(const struct store *store, __s64 timeout_ms, __u32 *tick, struct reason *reason)
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

__u32 target_end(const struct target *target, __u32 tick)
{
	const __u32 epoch = target_own(target)->epoch;

	if (!tick || tick - epoch <= ABI_END_MAX)
		return tick ? tick - epoch + (tick == epoch) : 0;
	return tick < epoch;
}

bool target_has_aged(const struct target *target, __u32 tick)
{
	struct reason ignored;
	__u32 now;

	return tick && !ticks_now(&now, &ignored) && now - target_own(target)->epoch > ABI_END_MAX / 2;
}

int target_insert(struct target *target, const struct rule_key *key, __u32 tick)
{
	const struct hash_value value = rule_hash(key, &target_own(target)->secret);
	__u64 hint;
	int error = target_hint(target, &key->shape, &hint);

	if (error)
		return error;
	hints_mark(target_hints(target), key, hint);
	error = table_insert(&target->table, &value, target_end(target, tick));
	if (!error && !tick)
		hints_set_shortcuts(target_hints(target), key);
	return error;
}

int target_delete(struct target *target, const struct rule_key *key)
{
	const struct hash_value value = rule_hash(key, &target_own(target)->secret);

	hints_clear_shortcuts(target_hints(target), key);
	return table_delete(&target->table, &value);
}

int target_set_end(struct target *target, const struct rule_key *key, __u32 tick)
{
	const struct hash_value value = rule_hash(key, &target_own(target)->secret);
	int error;

	if (!target->filter.options.is_exact)
		return 0;
	if (tick)
		hints_clear_shortcuts(target_hints(target), key);
	error = table_set_end(&target->table, &value, target_end(target, tick));
	if (!error && !tick)
		hints_set_shortcuts(target_hints(target), key);
	return error;
}
