// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "counters/by_list.h"

struct summing {
	const struct rule_counts *counts;
	struct list_counts *sums;
};

static int sum(const struct rule *rule, void *context)
{
	const struct summing *summing = context;
	struct abi_counter count;

	if (rule->timeout_ms < 0)
		return 0;
	count = rule_counts_of(summing->counts, rule);
	for (__u64 left = rule_owners_now(rule); left; left &= left - 1) {
		struct list_count *of = &summing->sums->of[__builtin_ctzll(left)][rule->action];

		of->rules++;
		of->count.packets += count.packets;
		of->count.bytes += count.bytes;
	}
	return 0;
}

int list_counts_read(struct store *store, struct rule_counts *counts, struct list_counts *sums)
{
	struct summing summing = { counts, sums };
	int error = store_shapes(store, &counts->shapes);

	*sums = (struct list_counts){};
	return error ? error : store_each(store, sum, &summing);
}
