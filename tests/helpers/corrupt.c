// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Damages the table of the running filter in this network namespace, through its maps as the tool
 * itself writes them: the first place that it can, from a bucket on. Prints what a comparison with the
 * store must find of it: "missing N foreign N ends N".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kernel.h"
#include "table/insert_delete.h"
#include "filter/filter.h"

struct damage {
	__u64 missing, foreign, ends;
};

FLOW_INLINE bool is_filled(const struct table *table, struct bucket_layout layout, struct table_place place)
{
	return table_load(table, layout, place) != 0;
}

/* The first filled slot of bucket `from` or a later one; `place` is where. */
FLOW_INLINE bool find_filled(const struct table *table, struct bucket_layout layout, __u32 from,
			     struct table_place *place)
{
	*place = (struct table_place){ from, 0 };
	for (; place->bucket < table->geometry.buckets; place->bucket++)
		for (place->slot = 0; place->slot < layout.slots; place->slot++)
			if (is_filled(table, layout, *place))
				return true;
	return false;
}

FLOW_INLINE struct damage lose_bucket(struct table *table, struct bucket_layout layout, __u32 from)
{
	struct damage damage = {};
	struct table_place place;

	if (!find_filled(table, layout, from, &place))
		return damage;
	for (place.slot = 0; place.slot < layout.slots; place.slot++)
		damage.missing += is_filled(table, layout, place);
	for (unsigned int word = 0; word < (bucket_bits(layout) > 64 ? 2 : 1); word++)
		table_store_word(table, layout, place.bucket, word, 0);
	return damage;
}

FLOW_INLINE struct damage add_foreign(struct table *table, struct bucket_layout layout, __u32 from)
{
	const __u64 record = abi_record(0x666f726569676eULL << ABI_END_BITS, 0);
	struct table_place place;

	for (__u32 bucket = from; bucket < table->geometry.buckets; bucket++)
		if (core_find_free(table, layout, bucket, &place)) {
			table_publish(table, layout, place, 1, record);
			return (struct damage){ .foreign = 1 };
		}
	return (struct damage){};
}

/* An entry twice, as a writer that died during a move leaves it. */
FLOW_INLINE struct damage double_entry(struct table *table, struct bucket_layout layout, __u32 from)
{
	struct table_place entry, to;

	for (; find_filled(table, layout, from, &entry); from = entry.bucket + 1) {
		const __u32 fingerprint = table_load(table, layout, entry);

		if (!core_find_free(table, layout, entry.bucket, &to))
			continue;
		table_publish(table, layout, to, fingerprint,
			      layout.has_records ? *table_record(table, layout, entry) : 0);
		return (struct damage){ .foreign = 1 };
	}
	return (struct damage){};
}

/* The same across buckets, of one that has been counted where it was to go. */
FLOW_INLINE struct damage half_move(struct table *table, struct bucket_layout layout, __u32 from)
{
	struct table_place entry, to;

	for (; find_filled(table, layout, from, &entry); from = entry.bucket + 1) {
		const __u32 fingerprint = table_load(table, layout, entry);
		const __u32 other = entry.bucket ^ bucket_step(fingerprint, table->geometry.step_shift);

		if (!layout.has_records || other == entry.bucket || !core_find_free(table, layout, other, &to))
			continue;
		table_publish(table, layout, to, fingerprint, *table_record(table, layout, entry));
		table_move_count(table, layout, entry, to);
		return (struct damage){ .foreign = 1 };
	}
	return (struct damage){};
}

FLOW_INLINE struct damage change_tag(struct table *table, struct bucket_layout layout, __u32 from)
{
	struct table_place place;

	if (!layout.has_records || !find_filled(table, layout, from, &place))
		return (struct damage){};
	*table_record(table, layout, place) ^= 1ULL << ABI_END_BITS;
	return (struct damage){ .missing = 1, .foreign = 1 };
}

/* A rule for good that has ended. */
FLOW_INLINE struct damage end_entry(struct table *table, struct bucket_layout layout, __u32 from)
{
	struct table_place place;

	if (!layout.has_records || !find_filled(table, layout, from, &place))
		return (struct damage){};
	*table_record(table, layout, place) |= 1;
	return (struct damage){ .ends = 1 };
}

FLOW_INLINE struct damage corrupt(struct table *table, struct bucket_layout layout, const char *what, __u32 from)
{
	if (!strcmp(what, "bucket"))
		return lose_bucket(table, layout, from);
	if (!strcmp(what, "foreign"))
		return add_foreign(table, layout, from);
	if (!strcmp(what, "double"))
		return double_entry(table, layout, from);
	if (!strcmp(what, "half-moved"))
		return half_move(table, layout, from);
	if (!strcmp(what, "tag"))
		return change_tag(table, layout, from);
	if (!strcmp(what, "end"))
		return end_entry(table, layout, from);
	return (struct damage){};
}

/* What no comparison counts, and filling mends all the same. */
static bool clear_hints(const struct kernel_filter *filter, const char *what)
{
	const struct kernel_map *hints = &filter->map[KERNEL_HINTS];

	if (strcmp(what, "hints"))
		return false;
	memset(hints->memory, 0, hints->bytes);
	return true;
}

/* As if the table had been made so long ago that its records can tell ends for a second more, at most. */
static bool set_epoch_back(const struct kernel_filter *filter, const char *what)
{
	struct reason reason;
	double per_second;
	__u32 now;

	if (strcmp(what, "epoch") || kernel_tick(&now, &per_second, &reason))
		return false;
	filter->config->table[filter->config->active % ABI_TABLES].epoch = now + (__u32)per_second - ABI_END_MAX;
	return true;
}

/* As if another version of the tool had set the filter up. */
static bool age(const struct kernel_filter *filter, const char *what)
{
	if (strcmp(what, "version"))
		return false;
	filter->config->version--;
	return true;
}

/* The config says another kind of table than the maps are. */
static bool contradict(const struct kernel_filter *filter, const char *what)
{
	if (strcmp(what, "options"))
		return false;
	filter->config->options.is_exact ^= 1;
	return true;
}

int main(int argc, char **argv)
{
	struct damage damage = {};
	struct kernel_filter *filters = NULL;
	struct reason reason;
	struct filter_tables tables = {};
	bool is_done = false;
	size_t count = 0;

	if (argc >= 2 && argc <= 3 && !kernel_find_filters((struct kernel_wish){ 0 }, &filters, &count, &reason) &&
	    count == 1 && !filter_open_tables(filters, &tables)) {
		is_done = clear_hints(filters, argv[1]) || age(filters, argv[1]) || set_epoch_back(filters, argv[1]) ||
			  contradict(filters, argv[1]);
		/* Of a table with addresses, that part. */
		damage = CORE_CALL(corrupt, &tables.part[filters->options.has_addresses], argv[1],
				   argc == 3 ? strtoul(argv[2], NULL, 10) : 0);
		is_done |= damage.missing || damage.foreign || damage.ends;
	}
	if (!is_done) {
		fputs("usage: corrupt bucket|foreign|double|half-moved|tag|end|hints|version|epoch|options [BUCKET]; with one "
		      "running filter that has what is named\n",
		      stderr);
		return 2;
	}
	filter_tables_close(&tables);
	kernel_filters_free(filters, count);
	printf("missing %llu foreign %llu ends %llu\n", (unsigned long long)damage.missing,
	       (unsigned long long)damage.foreign, (unsigned long long)damage.ends);
	return 0;
}
