// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "counters/counters.h"

#include <errno.h>
#include <stdlib.h>

#include "filter/filter.h"

void rule_counts_close(struct rule_counts *counts)
{
	for (size_t i = 0; counts->tables && i < counts->count; i++)
		filter_tables_close(&counts->tables[i]);
	free(counts->tables);
	kernel_filters_free(counts->filters, counts->count);
}

int rule_counts_open(struct rule_counts *counts, const char *name, struct reason *reason)
{
	size_t running = 0, counting = 0;
	int error =
		kernel_find_filters((struct kernel_wish){ .must_see = name }, &counts->filters, &counts->count, reason);

	if (error)
		return error;
	counts->tables = calloc(counts->count + 1, sizeof(*counts->tables));
	if (!counts->tables)
		return reason_set(reason, -ENOMEM, "not enough memory");
	for (size_t i = 0; i < counts->count; i++) {
		const struct kernel_filter *filter = &counts->filters[i];

		if (!kernel_is_named(filter->config, name))
			continue;
		running++;
		error = filter->options.has_counts ? filter_open_tables(filter, &counts->tables[i]) : -EOPNOTSUPP;
		if (error == -ENOMEM)
			return filter_unmapped_reason(reason);
		counting += !error;
	}
	if (counting)
		return 0;
	return running ? -EOPNOTSUPP : -ENOENT;
}

struct counted_rule {
	const struct rule_counts *counts;
	struct abi_counter sum;
};

static int count_key(const struct rule_key *key, bool is_shared, void *context)
{
	struct counted_rule *counted = context;

	(void)is_shared;
	for (size_t i = 0; i < FILTER_PARTS * counted->counts->count; i++) {
		const struct filter_tables *tables = &counted->counts->tables[i / FILTER_PARTS];
		const struct abi_config *config = counted->counts->filters[i / FILTER_PARTS].config;
		const struct abi_counter *counter;
		__u32 slot;

		if (!tables->part->memory.counter ||
		    !filter_find(abi_active(config), tables, key, i % FILTER_PARTS, &slot))
			continue;
		counter = filter_counter(tables, slot);
		counted->sum.packets += counter->packets;
		counted->sum.bytes += counter->bytes;
	}
	return 0;
}

struct abi_counter rule_counts_of(const struct rule_counts *counts, const struct rule *rule)
{
	struct counted_rule counted = { .counts = counts };

	keys_each(&counts->shapes, rule, count_key, &counted);
	return counted.sum;
}

/* ---- by list ---- */

struct summing {
	const struct rule_counts *counts;
	struct list_counts *sums;
};

static int sum(const struct rule *rule, void *context)
{
	const struct summing *summing = context;
	const __u64 owners = rule_owners_now(rule);
	struct abi_counter count = {};

	if (rule->timeout_ms < 0)
		return 0;
	if (summing->counts)
		count = rule_counts_of(summing->counts, rule);
	for (__u64 left = owners; left; left &= left - 1) {
		struct list_count *of = &summing->sums->of[__builtin_ctzll(left)][rule->action];

		of->rules++;
		of->only += !(owners & (owners - 1));
		of->hit += count.packets != 0;
		of->count.packets += count.packets;
		of->count.bytes += count.bytes;
	}
	return 0;
}

int list_counts_read(struct store *store, struct rule_counts *counts, struct list_counts *sums)
{
	struct summing summing = { counts, sums };
	int error = counts ? store_shapes(store, &counts->shapes) : 0;

	*sums = (struct list_counts){};
	return error ? error : store_each(store, sum, &summing);
}
