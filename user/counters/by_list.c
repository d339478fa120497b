// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "counters/by_list.h"

#include <errno.h>
#include <time.h>

#define RULES_A_LOOK 4096 /* at the clock */

struct summing {
	const struct rule_counts *counts;
	struct list_counts *sums;
	__u64 rules;
	__s64 end_ms; /* 0: no limit */
};

static __s64 now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static int sum(const struct rule *rule, void *context)
{
	struct summing *summing = context;
	struct abi_counter count;

	if (++summing->rules % RULES_A_LOOK == 0 && summing->end_ms && now_ms() > summing->end_ms)
		return -ETIME;
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

int list_counts_read(struct store *store, struct rule_counts *counts, __s64 limit_ms, struct list_counts *sums)
{
	struct summing summing = { .counts = counts, .sums = sums, .end_ms = limit_ms ? now_ms() + limit_ms : 0 };
	int error = store_shapes(store, &counts->shapes);

	*sums = (struct list_counts){};
	return error ? error : store_each(store, sum, &summing);
}
