// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Makes a whole new table and puts it in the place of the old one. The new table is either the second table
 * of the same maps, or it is in new maps with new programs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/available_memory.h"
#include "base/grace_period.h"
#include "filter/filter.h"
#include "filter/internal.h"
#include "kernel/ticks.h"

/*
 * If too many keys share a few buckets, a new secret solves it, except with a probability of one in millions.
 * A table that is still full after some secrets is full for another reason.
 */
#define BUILD_TRIES 4

/* ---- from the store to a table ---- */

static void clear(struct target *target)
{
	struct table *table = &target->table;

	memset(table->memory.bucket, 0, table_bucket_bytes(table->format, table->geometry));
	if (table->memory.record)
		memset(table->memory.record, 0, table_slots(table) * sizeof(*table->memory.record));
	table_reset_counts(table);
	memset(target_hints(target), 0, ABI_HINTS);
	table->used = 0;
}

/* 0 or -errno. getrandom() may return after 256 bytes. */
static int draw_secret(struct hash_secret *secret)
{
	size_t done = 0;

	while (done < sizeof(*secret)) {
		const ssize_t drawn = getrandom((char *)secret + done, sizeof(*secret) - done, 0);

		if (drawn < 0 && errno != EINTR)
			return -errno;
		done += drawn > 0 ? drawn : 0;
	}
	return 0;
}

static int build_once(struct target *target, struct target_entries *entries, struct reason *reason)
{
	const bool is_new = !target->filter.attachments_count && !target->table.used;
	int error = draw_secret(&target_own(target)->secret);

	if (table_reach_all(&target->table))
		return target_say_unmapped(reason);
	if (error)
		return reason_set(reason, error, "cannot draw a random secret: %s", strerror(-error));
	error = ticks_now(&target_own(target)->epoch, reason);
	if (error)
		return error;
	/* The kernel has cleared new maps. Clearing them again would take as long. */
	if (!is_new)
		clear(target);
	return target_entries_collect(entries, reason);
}

int target_build(struct target *target, struct target_entries *entries, struct reason *reason)
{
	int error = build_once(target, entries, reason);

	for (int i = 1; i < BUILD_TRIES && error == -ENOSPC; i++)
		error = build_once(target, entries, reason);
	target_note_counts(target);
	if (error)
		return error == -ENOSPC ? target_say_full(target, entries->expected, reason) : error;
	target_entries_set_shortcuts(entries);
	return target_entries_find_heirs(entries, reason);
}

/* ---- a new filter ---- */

/*
 * Maps get room for a second table, so that a whole change needs no new maps. This costs memory, so only
 * tables up to a limit get it. Small tables also get room to grow.
 */
#define ROOM_SLOTS_LEAST (1ULL << 17)
#define ROOM_BYTES_MOST (64ULL << 20) /* of one table */

static struct kernel_plan plan_room(const struct abi_options *options, __u64 slots)
{
	const bool has_least = options->is_alone || slots >= ROOM_SLOTS_LEAST;
	const struct bucket_geometry geometry = table_geometry(has_least ? slots : ROOM_SLOTS_LEAST);
	struct kernel_plan plan = { .options = *options,
				    .tables = 1,
				    .slots = table_slots_of(geometry),
				    .bucket_bytes = table_bucket_bytes(options->format, geometry) };

	if (!options->is_alone && kernel_plan_bytes(&plan) <= ROOM_BYTES_MOST)
		plan.tables = ABI_TABLES;
	return plan;
}

/* `keys`: the number of keys that will be filled in, which takes memory of this process. */
static int create(struct target *target, const struct kernel_plan *plan, struct bucket_geometry geometry, __u64 keys,
		  struct reason *reason)
{
	const __u64 old_slots = plan->predecessor ? table_slots_of(target_geometry(plan->predecessor)) : 0;
	struct kernel_filter filter;
	const __u64 entries = keys < TARGET_ENTRIES_AT_ONCE ? keys : TARGET_ENTRIES_AT_ONCE;
	int error =
		memory_check(kernel_plan_bytes(plan) + entries * sizeof(struct table_entry) + old_slots * sizeof(__u32),
			     "a table of that size", "choose a smaller one, --no-counters or --compact", reason);

	*target = (struct target){};
	if (!error)
		error = kernel_create(plan, &filter, reason);
	if (error)
		return error;
	target_lay_out(filter.config, plan->tables, plan->slots);
	filter.config->geometry = filter.config->table[0].geometry = geometry;
	return target_open(target, &filter, reason);
}

int target_create(struct target *target, const struct abi_options *options, __u64 slots, __u64 keys,
		  struct reason *reason)
{
	const struct kernel_plan plan = plan_room(options, slots);

	return create(target, &plan, table_geometry(slots), keys, reason);
}

int target_create_like(struct target *target, const struct kernel_filter *filter, struct reason *reason)
{
	const struct kernel_plan plan = {
		.options = filter->options,
		.tables = target_tables(filter),
		.slots = target_room(filter),
		.bucket_bytes = filter->map[KERNEL_BUCKETS].bytes / target_tables(filter),
	};

	return create(target, &plan, target_geometry(filter), 0, reason);
}

/* ---- in the place of another ---- */

struct target_successor {
	struct target target;
	struct target_entries entries; /* has the heirs of counters */
};

static int fill(struct target *old, struct target_successor *successor, struct store *store, __u64 plan,
		struct reason *reason)
{
	struct target *new = &successor->target;
	const bool has_counts = old->filter.options.has_counts && new->filter.options.has_counts &&
				old->filter.config->magic;
	int error;

	target_own(new)->plan = plan;
	if (has_counts && table_reach_all(&old->table))
		return target_say_unmapped(reason);
	error = target_entries_open(&successor->entries, new, store, has_counts ? old : NULL, true, reason);
	if (!error)
		error = target_build(new, &successor->entries, reason);
	if (!error)
		error = target_publish(new, store, reason);
	return error;
}

struct abi_config *target_successor_config(const struct target *target)
{
	return target->successor ? target->successor->target.filter.config : NULL;
}

void target_drop_successor(struct target *target)
{
	if (!target->successor)
		return;
	target_entries_close(&target->successor->entries);
	target_close(&target->successor->target);
	free(target->successor);
	target->successor = NULL;
}

/*
 * Whether the second table of the same maps can have this many slots. If the maps have much more room than
 * wanted, new maps are better, because they save memory.
 */
static bool fits_into_maps(const struct target *target, __u64 slots)
{
	const __u64 room = target_room(&target->filter), wanted = table_slots_of(table_geometry(slots));

	return target_tables(&target->filter) == ABI_TABLES && wanted <= room &&
	       (room <= ROOM_SLOTS_LEAST || room / 4 <= wanted || kernel_held_attachment(&target->filter));
}

bool target_can_prepare(const struct target *target, __u64 slots)
{
	return fits_into_maps(target, slots) || !kernel_held_attachment(&target->filter);
}

/* Waits until no packet uses the table that was active before. Then that table may be filled again. */
static int wait_for_packets(struct abi_config *config)
{
	int error = config->settled == config->active ? 0 : grace_wait();

	if (!error)
		config->settled = config->active;
	return error;
}

static int prepare_in_maps(const struct target *target, struct target *new, __u64 slots, struct reason *reason)
{
	int error = wait_for_packets(target->filter.config);
	struct abi_table *own;

	if (error)
		return reason_set(reason, error, "cannot wait for a grace period: %s", strerror(-error));
	*new = (struct target){ .filter = target->filter, .which = !target->which, .shares_maps = true };
	own = target_own(new);
	own->geometry = table_geometry(slots);
	own->sequence = own->moves = own->used = own->longest_path = 0;
	memset(own->shapes, 0, sizeof(own->shapes));
	target_begin(new);
	error = target_open_own(new, own->geometry);
	return error ? reason_set(reason, error == -EINVAL ? -EPROTO : error, "cannot make a new table: %s",
				  strerror(-error)) :
		       0;
}

static int prepare_new_maps(const struct target *target, struct target *new, const struct abi_options *options,
			    __u64 slots, __u64 keys, struct reason *reason)
{
	struct kernel_plan plan = plan_room(options, slots);
	struct bucket_geometry geometry;
	struct abi_config *config;
	int error;

	plan.predecessor = &target->filter;
	error = create(new, &plan, table_geometry(slots), keys, reason);
	if (error)
		return error;
	config = new->filter.config;
	geometry = config->geometry;
	/* Copy the old config, then set what belongs to the table. */
	memcpy(config, target->filter.config, ABI_HEAD_BYTES);
	config->magic = config->run = 0;
	config->listener = config->active = 0;
	config->geometry = geometry;
	config->options = *options;
	return 0;
}

static int say_held(const struct kernel_filter *filter, struct reason *reason)
{
	const struct kernel_attachment *held = kernel_held_attachment(filter);

	return reason_set(reason, -EBUSY,
			  "on '%s' libxdp's dispatcher holds the filter, so it keeps its maps, which have "
			  "room for %llu slots; take it off (xdp-loader unload %s -i %u) and load it again with --capacity",
			  held->interface, (unsigned long long)target_room(filter), held->interface, held->prog_id);
}

static int prepare(struct target *target, struct store *store, const struct abi_options *options, __u64 slots,
		   bool shares_maps, struct reason *reason)
{
	struct target_successor *successor = calloc(1, sizeof(*successor));
	struct store_info info;
	int error = store_info(store, &info);

	target_drop_successor(target);
	target->successor = successor;
	if (!successor)
		return reason_set(reason, -ENOMEM, "no memory for a new table");
	if (error)
		target_say_store_unread(error, reason);
	else if (shares_maps)
		error = prepare_in_maps(target, &successor->target, slots, reason);
	else if (kernel_held_attachment(&target->filter))
		error = info.keys > target_room(&target->filter) * TABLE_LOAD_PERCENT / 100 ?
				target_say_full(target, info.keys, reason) :
				say_held(&target->filter, reason);
	else
		error = prepare_new_maps(target, &successor->target, options, slots, info.keys, reason);
	if (!error)
		error = fill(target, successor, store, info.plan, reason);
	if (error)
		target_drop_successor(target);
	return error;
}

int target_prepare(struct target *target, struct store *store, __u64 slots, struct reason *reason)
{
	return prepare(target, store, &target->filter.options, slots, fits_into_maps(target, slots), reason);
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

/* Replaces the running programs by new ones, which use new maps. */
static int replace_filter(struct target *target, struct target *new, struct reason *reason)
{
	const struct abi_config *old = target->filter.config;
	struct abi_config *config = new->filter.config;
	int error;

	hand_listener_on(config, old);
	config->magic = ABI_MAGIC;
	__atomic_fetch_or(&config->run, old->run | ABI_RUN_SET_UP, __ATOMIC_RELEASE);
	target_make_heir(config, old);
	error = kernel_replace(&target->filter, &new->filter, reason);
	if (error)
		return error;
	hand_listener_on(config, old);
	target_settle_heir(config, old);
	return 0;
}

/* Makes the other table of the same maps active: all interfaces change at the same instant. */
static void exchange_tables(struct abi_config *config, const struct target *new)
{
	config->geometry = new->table.geometry;
	config->used = new->table.used;
	__atomic_store_n(&config->active, config->active + 1, __ATOMIC_RELEASE);
	wait_for_packets(config);
}

/* Makes `target` what `new` is. */
static void become(struct target *target, struct target *new)
{
	new->state = target->state;
	new->cause = target->cause;
	new->slots_before = table_slots(&target->table);
	if (new->shares_maps) {
		table_close(&target->table);
		new->shares_maps = false;
	} else {
		target_close(target);
	}
	*target = *new;
}

int target_succeed(struct target *target, struct reason *reason)
{
	struct target_successor *successor = target->successor;
	struct target *new = &successor->target;
	int error = new->shares_maps ? 0 : replace_filter(target, new, reason);

	if (new->shares_maps)
		exchange_tables(target->filter.config, new);
	if (error) {
		target_drop_successor(target);
		return error;
	}
	error = target_entries_find_heirs(&successor->entries, reason);
	target_entries_carry_counts(&successor->entries, target, new);
	target_entries_close(&successor->entries);
	target->successor = NULL;
	become(target, new);
	free(successor);
	return error;
}

int target_rebuild_as(struct target *target, struct store *store, const struct abi_options *options, __u64 slots,
		      struct reason *reason)
{
	int error = prepare(target, store, options, slots, false, reason);

	return error ? error : target_succeed(target, reason);
}

int target_rebuild(struct target *target, struct store *store, __u64 slots, struct reason *reason)
{
	int error = target_prepare(target, store, slots, reason);

	return error ? error : target_succeed(target, reason);
}
