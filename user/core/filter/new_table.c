// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Makes a whole new table, the successor, and puts it in the place of the old one. The successor is either the second
 * table of the same maps, or it is in new maps with new programs. No packet uses it until filter_switch().
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/waiting.h"
#include "filter/internal.h"

/*
 * If too many keys share a few buckets, a new secret solves it, except with a probability of one in millions.
 * A table that is still full after some secrets is full for another reason.
 */
#define BUILD_TRIES 4

/* Of each old slot: see struct filter_heirs. */
#define HEIR_BYTES (sizeof(__u32) + sizeof(struct abi_counter))

/* ---- from the store to a table ---- */

static void clear(struct table *table)
{
	if (!table->search)
		return;
	memset(table->memory.bucket, 0, table_bucket_bytes(table->format, table->geometry));
	if (table->memory.record)
		memset(table->memory.record, 0, table_slots(table) * sizeof(*table->memory.record));
	table_reset_counts(table);
	table->used = 0;
}

int filter_build(struct filter *filter, struct store *store, struct filter_heirs *heirs, struct reason *reason)
{
	/* The kernel has cleared new maps. Clearing them again would take as long. */
	bool is_clear = !filter->kernel.attachments_count && !filter->table.used;
	CLOSED_BY(filter_entries_close) struct filter_entries entries = {};
	struct abi_table *in_config = filter_abi_table(filter);
	int error;

	for (enum filter_part part = 0; part < FILTER_PARTS; part++)
		if (table_reach_all(&filter->tables.part[part]))
			return filter_unmapped_reason(reason);
	error = filter_entries_open(&entries, filter, store, true, reason);
	if (error)
		return error;
	error = -ENOSPC;
	for (int i = 0; i < BUILD_TRIES && error == -ENOSPC; i++) {
		error = random_draw(&in_config->secret, sizeof(in_config->secret));
		if (!error)
			error = random_draw(&in_config->addresses.secret, sizeof(in_config->addresses.secret));
		if (error)
			error = reason_set(reason, error, "cannot draw a random secret: %s", strerror(-error));
		if (!error)
			error = ticks_now(&in_config->epoch, reason);
		if (error)
			break;
		if (!is_clear) {
			for (enum filter_part part = 0; part < FILTER_PARTS; part++)
				clear(&filter->tables.part[part]);
			memset(filter_hints(filter).byte, 0, ABI_HINTS(in_config->hint_shift));
		}
		is_clear = false;
		error = filter_entries_collect(&entries, reason);
	}
	filter_save_counts(filter);
	if (error)
		return error == -ENOSPC ? filter_full_reason(filter, entries.expected, reason) : error;
	if (heirs->old)
		error = memory_check(HEIR_BYTES * filter_tables_slots(&heirs->old->tables), "counts", "", reason);
	if (!error)
		error = filter_heirs_find(heirs, filter, reason);
	/* Without memory for counts they begin anew: that refuses no change, and stops no undo. */
	if (error == -ENOMEM)
		filter_heirs_close(heirs);
	else if (error)
		return error;
	return filter_publish_shapes(filter, store, false, reason);
}

/* ---- a new filter ---- */

int filter_make_object_file(const struct abi_options *options, __u64 slots, struct kernel_sizes *plan, char **file,
			    size_t *bytes, struct reason *reason)
{
	const struct bucket_geometry geometry = table_geometry(slots);

	*plan = (struct kernel_sizes){ .options = *options,
				       .tables = options->is_alone ? 1 : ABI_TABLES,
				       .slots = table_slots_of(geometry),
				       .bucket_bytes = table_bucket_bytes(options->format, geometry),
				       .hint_shift = ABI_HINT_SHIFT_MOST };
	return kernel_make_object_file(plan, file, bytes, reason);
}

static void set_geometry(struct abi_table *in_config, struct filter_parts slots)
{
	struct abi_addresses *addresses = &in_config->addresses;

	in_config->geometry = table_geometry(slots.records);
	addresses->geometry = slots.addresses ? table_geometry(slots.addresses) : (struct bucket_geometry){};
	addresses->reciprocal = slots.addresses ? address_reciprocal(addresses->geometry.buckets) : 0;
}

/* `keys`: the number of keys that will be filled in, which takes memory of this process. */
static int create(struct filter *filter, const struct kernel_sizes *plan, struct filter_parts slots, __u64 keys,
		  struct reason *reason)
{
	struct kernel_filter kernel;
	const __u64 entries = keys < FILTER_ENTRIES_AT_ONCE ? keys : FILTER_ENTRIES_AT_ONCE;
	int error = memory_check(kernel_sizes_bytes(plan) + entries * sizeof(struct table_entry),
				 "a table of that size", "choose a smaller one, --no-counters or --compact", reason);

	*filter = (struct filter){};
	if (!error)
		error = kernel_create(plan, &kernel, reason);
	if (error)
		return error;
	filter_lay_out(&kernel, plan->tables, (struct filter_parts){ .records = plan->slots, .addresses = plan->addresses });
	set_geometry(&kernel.config->table[0], slots);
	kernel.config->geometry = table_geometry(slots.records + slots.addresses);
	return filter_open(filter, &kernel, reason);
}

int filter_create(struct filter *filter, const struct abi_options *options, __u64 slots, struct store *store,
		  struct reason *reason)
{
	struct abi_options chosen = *options;
	struct filter_parts of_parts;
	struct filter_need need;
	struct kernel_sizes plan;
	int error = filter_read_need(store, &need);

	if (error)
		return store_unread_reason(error, reason);
	of_parts = filter_plan_parts(&need, NULL, slots, &chosen);
	plan = filter_plan_maps(&chosen, of_parts, hints_shift_for(&need.shapes));
	return create(filter, &plan, of_parts, need.info.keys, reason);
}

int filter_create_like(struct filter *filter, const struct kernel_filter *kernel, struct reason *reason)
{
	const struct filter_parts room = filter_room_of_parts(kernel);
	const struct kernel_sizes plan = {
		.options = kernel->options,
		.tables = filter_tables(kernel),
		.slots = room.records,
		.bucket_bytes = kernel->map[KERNEL_BUCKETS].bytes / filter_tables(kernel),
		.addresses = room.addresses,
		.hint_shift = abi_active(kernel->config)->hint_shift,
	};

	return create(filter, &plan, filter_slots_of_parts(kernel), 0, reason);
}

/* ---- in the place of another ---- */

void filter_drop_successor(struct filter *filter)
{
	if (!filter->successor)
		return;
	filter_heirs_close(&filter->successor->heirs);
	filter_close(&filter->successor->filter);
	free(filter->successor);
	filter->successor = NULL;
}

/* Waits until no packet uses the table that was active before. Then that table may be filled again. */
static int wait_for_old_table(struct abi_config *config)
{
	int error = config->settled == config->active ? 0 : grace_wait();

	if (!error)
		config->settled = config->active;
	return error;
}

static int prepare_in_maps(const struct filter *filter, struct filter *new, struct filter_parts slots,
			   struct reason *reason)
{
	int error = wait_for_old_table(filter->kernel.config);
	struct abi_table *in_config;

	if (error)
		return reason_set(reason, error, "cannot wait for a grace period: %s", strerror(-error));
	*new = (struct filter){ .kernel = filter->kernel, .which = !filter->which, .shares_maps = true };
	in_config = filter_abi_table(new);
	set_geometry(in_config, slots);
	in_config->addresses.used = in_config->rates = 0;
	in_config->sequence = in_config->moves = in_config->used = in_config->longest_path = 0;
	memset(in_config->shapes, 0, sizeof(in_config->shapes));
	filter_read_published(new);
	error = filter_open_table_memory(new, in_config->geometry);
	return error ? reason_set(reason, error == -EINVAL ? -EPROTO : error, "cannot make a new table: %s",
				  strerror(-error)) :
		       0;
}

static int prepare_new_maps(const struct filter *filter, struct filter *new, const struct abi_options *options,
			    struct filter_parts slots, __u64 keys, __u32 hint_shift, struct reason *reason)
{
	struct kernel_sizes plan = filter_plan_maps(options, slots, hint_shift);
	struct bucket_geometry geometry;
	struct abi_config *config;
	__u8 asks_conntrack;
	int error;

	plan.predecessor = &filter->kernel;
	error = create(new, &plan, slots, keys, reason);
	if (error)
		return error;
	config = new->kernel.config;
	geometry = config->geometry;
	asks_conntrack = config->asks_conntrack;
	/* Copy the old config, then set what belongs to the table and to the new programs. */
	memcpy(config, filter->kernel.config, ABI_COMMON_BYTES);
	config->magic = config->run = 0;
	config->listener = config->active = 0;
	config->geometry = geometry;
	config->asks_conntrack = asks_conntrack;
	config->options = plan.options;
	return 0;
}

/* A program behind a dispatcher cannot get new maps. */
static int refuse_new_maps(const struct filter *filter, const struct kernel_attachment *held, __u64 slots,
			   struct reason *reason)
{
	const unsigned long long room = filter_room(&filter->kernel);
	const bool is_alone = filter_tables(&filter->kernel) == 1;
	char options[64];

	if (slots <= room && !is_alone)
		return kernel_held_reason(&filter->kernel, held, " with the options of load", -EBUSY, reason,
					  "the filter is of another kind or build");
	snprintf(options, sizeof(options), " --capacity %llu", slots * TABLE_LOAD_PERCENT / 100);
	return kernel_held_reason(&filter->kernel, held, options, -EBUSY, reason,
				  "the maps have room for %s of %llu slots", is_alone ? "one table" : "two tables",
				  room);
}

/* Opens the new table in the maps that suit it. `options`: of a filter of another kind; NULL: of this one. */
static int prepare(struct filter *filter, struct filter *new, const struct abi_options *options, __u64 slots,
		   const struct filter_need *need, struct reason *reason)
{
	const struct kernel_attachment *held = kernel_held_attachment(&filter->kernel);
	const struct abi_options present = filter->kernel.options;
	struct abi_options chosen = options ? *options : present;
	const struct filter_parts of_parts = filter_plan_parts(need, filter, slots, &chosen);
	const __u32 hint_shift = hints_shift_for(&need->shapes);

	/* Four times as many hints are worth new maps and programs. Twice as many are not. */
	if (!options && chosen.has_addresses == present.has_addresses && filter_fits_into_maps(filter, of_parts) &&
	    (held || hint_shift + 1 >= filter_abi_table(filter)->hint_shift))
		return prepare_in_maps(filter, new, of_parts, reason);
	if (held && need->info.keys > filter_room(&filter->kernel) * TABLE_LOAD_PERCENT / 100)
		return filter_full_reason(filter, need->info.keys, reason);
	if (held)
		return refuse_new_maps(filter, held, slots, reason);
	return prepare_new_maps(filter, new, &chosen, of_parts, need->info.keys, hint_shift, reason);
}

static int fill_successor(struct filter *filter, struct store *store, const struct abi_options *options, __u64 slots,
			  struct reason *reason)
{
	struct filter_heirs *heirs = &filter->successor->heirs;
	struct filter *new = &filter->successor->filter;
	bool has_counts; /* of rules: the old table has them and the new table gets them */
	struct filter_need need;
	int error = store_unread_reason(filter_read_need(store, &need), reason);

	if (!error)
		error = prepare(filter, new, options, slots, &need, reason);
	if (error)
		return error;
	/* The change has read much of the store. Its pages would take memory while there are two tables. */
	store_forget_pages(store);
	filter_abi_table(new)->plan = need.info.plan;
	has_counts = filter->kernel.options.has_counts && new->kernel.options.has_counts &&
		     filter->kernel.config->magic;
	if (has_counts && filter_map_entries(filter))
		return filter_unmapped_reason(reason);
	*heirs = (struct filter_heirs){ .old = has_counts ? filter : NULL, .store = store };
	error = filter_build(new, store, heirs, reason);
	return error ? error : filter_set_policies(new, store, reason);
}

int filter_build_successor(struct filter *filter, struct store *store, const struct abi_options *options, __u64 slots,
			   struct reason *reason)
{
	int error;

	filter_drop_successor(filter);
	filter->successor = calloc(1, sizeof(*filter->successor));
	if (!filter->successor)
		return reason_set(reason, -ENOMEM, "no memory for a new table");
	error = fill_successor(filter, store, options, slots, reason);
	if (error)
		filter_drop_successor(filter);
	return error;
}

/* Copies the lease of a listener to the new config. Later the listener extends it there itself. */
static void hand_listener_on(struct abi_config *config, const struct abi_config *old)
{
	const __u64 lease = __atomic_load_n(&old->listener, __ATOMIC_ACQUIRE);

	if ((__u32)lease <= (__u32)config->listener)
		return;
	config->sample_every = old->sample_every;
	config->sample_credit = old->sample_credit;
	__atomic_store_n(&config->listener, lease, __ATOMIC_RELEASE);
}

/* `active` is the one write that makes all interfaces use the other table. What the config repeats of it comes before. */
static void switch_table(struct filter *new)
{
	struct abi_config *config = new->kernel.config;

	config->geometry = table_geometry(filter_tables_slots(&new->tables));
	config->used = filter_abi_table(new)->used + filter_abi_table(new)->addresses.used;
	__atomic_store_n(&config->active, config->active + 1, __ATOMIC_RELEASE);
	wait_for_old_table(config);
}

static int switch_programs(struct filter *filter, struct filter *new, struct reason *reason)
{
	struct abi_config *config = new->kernel.config, *old = filter->kernel.config;
	int error;

	hand_listener_on(config, old);
	config->magic = old->magic;
	__atomic_fetch_or(&config->run, old->run, __ATOMIC_RELEASE);
	filter_begin_replacing(config, old);
	error = kernel_replace(&filter->kernel, &new->kernel, reason);
	if (error)
		return error;
	hand_listener_on(config, old);
	filter_end_replacing(config, old);
	return 0;
}

/*
 * Counts are carried before the switch, and again after the wait, when no packet uses the old table: carry_counts.c.
 *
 * From the switch on there is no way back: errors of the wait and of the search for heirs lose counts at most, and the
 * wait is repeated before the old table is filled again.
 */
int filter_switch(struct filter *filter, struct reason *reason)
{
	struct filter_successor *successor = filter->successor;
	struct filter *new = &successor->filter;
	int error = 0;

	filter_heirs_carry(&successor->heirs, new);
	if (new->shares_maps)
		switch_table(new);
	else
		error = switch_programs(filter, new, reason);
	if (error) {
		filter_drop_successor(filter);
		return error;
	}
	filter_heirs_find(&successor->heirs, new, &(struct reason){});
	filter_heirs_carry(&successor->heirs, new);
	filter_heirs_close(&successor->heirs);
	filter->successor = NULL;
	new->state = filter->state;
	new->cause = filter->cause;
	new->slots_before = filter_tables_slots(&filter->tables);
	if (new->shares_maps) {
		filter_tables_close(&filter->tables);
		new->shares_maps = false;
	} else {
		filter_close(filter);
	}
	filter_note_readers(new);
	*filter = *new;
	free(successor);
	return 0;
}

int filter_rebuild(struct filter *filter, struct store *store, const struct abi_options *options, __u64 slots,
		   struct reason *reason)
{
	int error = filter_build_successor(filter, store, options, slots, reason);

	return error ? error : filter_switch(filter, reason);
}
