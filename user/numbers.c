// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "numbers.h"

#include <errno.h>

int numbers_take(const struct table *table, __u32 *number)
{
	const struct table_memory *memory = &table->memory;
	const __u64 slots = table_slots(table);
	__u64 at;

	*number = 0;
	if (!memory->rule)
		return 0;
	at = *memory->next_number < slots ? *memory->next_number : 0;
	for (__u64 i = 0; i < slots; i++, at = at + 1 < slots ? at + 1 : 0) {
		struct abi_counter *rule = &memory->rule[at];

		if (rule->bytes & ABI_RULE_TAKEN)
			continue;
		__atomic_store_n(&rule->packets, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&rule->bytes, ABI_RULE_TAKEN, __ATOMIC_RELAXED);
		*memory->next_number = at + 1 < slots ? at + 1 : 0;
		*number = at;
		return 0;
	}
	return -ENOSPC;
}

void numbers_take_first(const struct table *table, __u64 count)
{
	const struct table_memory *memory = &table->memory;

	if (!memory->rule)
		return;
	for (__u64 i = 0; i < count; i++)
		memory->rule[i] = (struct abi_counter){ .bytes = ABI_RULE_TAKEN };
	*memory->next_number = count % table_slots(table);
}

void numbers_free(const struct table *table, __u32 number)
{
	if (table->memory.rule && number < table_slots(table))
		__atomic_fetch_and(&table->memory.rule[number].bytes, ~ABI_RULE_TAKEN,
				   __ATOMIC_RELAXED);
}

void numbers_repair(const struct table *table, const __u64 *used)
{
	const __u64 slots = table->memory.rule ? table_slots(table) : 0;

	for (__u64 i = 0; i < slots; i++) {
		struct abi_counter *rule = &table->memory.rule[i];
		const bool is_used = used[i / 64] >> i % 64 & 1;

		if (is_used && !(rule->bytes & ABI_RULE_TAKEN))
			__atomic_fetch_or(&rule->bytes, ABI_RULE_TAKEN, __ATOMIC_RELAXED);
		else if (!is_used && rule->bytes & ABI_RULE_TAKEN)
			numbers_free(table, i);
	}
}
