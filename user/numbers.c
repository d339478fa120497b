// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "numbers.h"

#include <errno.h>

static bool take_if_free(const struct table *table, __u64 number)
{
	struct abi_counter *rule = table_counter(table, number);

	if (rule->bytes & ABI_RULE_TAKEN)
		return false;
	__atomic_store_n(&rule->packets, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&rule->bytes, ABI_RULE_TAKEN, __ATOMIC_RELAXED);
	return true;
}

/* The first that is free, from where the last search ended, all round. */
static int take_any(const struct table *table, __u32 *number)
{
	const __u64 slots = table_slots(table);
	__u64 *next = table->memory.next_number, at = *next < slots ? *next : 0;

	for (__u64 i = 0; i < slots; i++) {
		const __u64 taken = at;

		at = at + 1 < slots ? at + 1 : 0;
		if (!take_if_free(table, taken))
			continue;
		*next = at;
		*number = taken;
		return 0;
	}
	return -ENOSPC;
}

int numbers_take(const struct table *table, __u64 slot, __u32 *number)
{
	*number = 0;
	if (!table->memory.has_counts)
		return 0;
	*number = slot;
	return take_if_free(table, slot) ? 0 : take_any(table, number);
}

void numbers_free(const struct table *table, __u32 number)
{
	if (table->memory.has_counts && number < table_slots(table))
		__atomic_fetch_and(&table_counter(table, number)->bytes, ~ABI_RULE_TAKEN,
				   __ATOMIC_RELAXED);
}

/* What is 0 is not written: of a large table most, which stays in no cache. */
void numbers_reset(const struct table *table)
{
	const __u64 slots = table->memory.has_counts ? table_slots(table) : 0;

	for (__u64 i = 0; i < slots; i++) {
		struct abi_counter *rule = table_counter(table, i);

		if (rule->packets)
			__atomic_store_n(&rule->packets, 0, __ATOMIC_RELAXED);
		if (rule->bytes & ~ABI_RULE_TAKEN)
			__atomic_fetch_and(&rule->bytes, ABI_RULE_TAKEN, __ATOMIC_RELAXED);
	}
}

void numbers_repair(const struct table *table, const __u64 *used)
{
	const __u64 slots = table->memory.has_counts ? table_slots(table) : 0;

	for (__u64 i = 0; i < slots; i++) {
		struct abi_counter *rule = table_counter(table, i);
		const bool is_used = used[i / 64] >> i % 64 & 1;

		if (is_used && !(rule->bytes & ABI_RULE_TAKEN))
			__atomic_fetch_or(&rule->bytes, ABI_RULE_TAKEN, __ATOMIC_RELAXED);
		else if (!is_used && rule->bytes & ABI_RULE_TAKEN)
			numbers_free(table, i);
	}
}
