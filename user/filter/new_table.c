// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A whole new table: in the memory of a filter that no packet looks at yet, and, with the programs that
 * look at it, in the place of one that runs.
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
 * Keys that met in too few buckets do not under another hash key, but for a chance in millions; one
 * table more that stays too full has other reasons.
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

/* 0 or -errno; getrandom() may stop after 256 bytes. */
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

static int build_once(struct target *target, struct target_keys *keys, struct reason *reason)
{
	const bool is_new = !target->filter.attachments_count && !target->table.used;
	int error = draw_secret(&target_own(target)->secret);

	if (table_reach_all(&target->table))
		return target_unmapped(reason);
	if (error)
		return reason_set(reason, error, "cannot draw a random secret: %s", strerror(-error));
	error = ticks_now(&target_own(target)->epoch, reason);
	if (error)
		return error;
	/* The kernel has cleared what it has just made; clearing it again would take as long. */
	if (!is_new)
		clear(target);
	return target_keys_collect(keys, reason);
}

int target_build(struct target *target, struct target_keys *keys, struct reason *reason)
{
	int error = build_once(target, keys, reason);

	for (int i = 1; i < BUILD_TRIES && error == -ENOSPC; i++)
		error = build_once(target, keys, reason);
	target_note_counts(target);
	if (error)
		return error == -ENOSPC ? target_full(target, keys->expected, reason) : error;
	target_keys_shorten(keys);
	return target_keys_carry(keys, reason);
}

/* ---- a new filter ---- */

/*
 * Room for a second table, by which a whole change needs no new maps, costs memory: little where tables are small,
 * which get some to grow as well.
 */
#define ROOM_SLOTS_LEAST (1ULL << 17)
#define ROOM_BYTES_MOST (64ULL << 20) /* of a table that has room for another */

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

/* `keys`: how many it will be filled with, which takes memory of this process meanwhile. */
static int create(struct target *target, const struct kernel_plan *plan, struct bucket_geometry geometry, __u64 keys,
		  struct reason *reason)
{
	const __u64 old_slots = plan->predecessor ? table_slots_of(target_geometry(plan->predecessor)) : 0;
	struct kernel_filter filter;
	const __u64 entries = keys < TARGET_KEYS_AT_ONCE ? keys : TARGET_KEYS_AT_ONCE;
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

/* All but what belongs to the table itself. */
static void inherit(struct abi_config *config, const struct abi_config *old)
{
	const struct bucket_geometry geometry = config->geometry;

	memcpy(config, old, ABI_HEAD_BYTES);
	config->magic = config->run = 0;
	config->listener = config->active = 0;
	config->geometry = geometry;
}

static void add_count(struct abi_counter *to, const struct abi_counter *from)
{
	__atomic_fetch_add(&to->packets, from->packets, __ATOMIC_RELAXED);
	__atomic_fetch_add(&to->bytes, from->bytes, __ATOMIC_RELAXED);
}

/* By atomic additions: the new table's packets are being counted meanwhile. */
static void carry_counts(const struct target *from, const struct target *to, const struct target_keys *keys)
{
	for (__u64 i = 0; keys->heir && i < table_slots(&from->table); i++)
		if (keys->heir[i] - 1 < table_slots(&to->table))
			add_count(&to->table.memory.counter[keys->heir[i] - 1], &from->table.memory.counter[i]);
}

struct target_successor {
	struct target target;
	struct target_keys keys; /* by which counts are carried over */
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
		return target_unmapped(reason);
	error = target_keys_open(&successor->keys, new, store, has_counts ? old : NULL, true, reason);
	if (!error)
		error = target_build(new, &successor->keys, reason);
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
	target_keys_close(&target->successor->keys);
	target_close(&target->successor->target);
	free(target->successor);
	target->successor = NULL;
}

/* Maps of much more room than is wanted give memory back only if others take their place. */
static bool fits_beside(const struct target *target, __u64 slots)
{
	const __u64 room = target_room(&target->filter), wanted = table_slots_of(table_geometry(slots));

	return target_tables(&target->filter) == ABI_TABLES && wanted <= room &&
	       (room <= ROOM_SLOTS_LEAST || room / 4 <= wanted || kernel_held_attachment(&target->filter));
}

bool target_can_prepare(const struct target *target, __u64 slots)
{
	return fits_beside(target, slots) || !kernel_held_attachment(&target->filter);
}

/* Then nobody counts any more in the table that was put aside, and it may be filled again. */
static int wait_for_packets(struct abi_config *config)
{
	int error = config->settled == config->active ? 0 : grace_wait();

	if (!error)
		config->settled = config->active;
	return error;
}

static int prepare_beside(const struct target *target, struct target *new, __u64 slots, struct reason *reason)
{
	int error = wait_for_packets(target->filter.config);
	struct abi_table *own;

	if (error)
		return reason_set(reason, error, "cannot wait for the packets under way: %s", strerror(-error));
	*new = (struct target){ .filter = target->filter, .which = !target->which, .is_beside = true };
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

static int prepare_anew(const struct target *target, struct target *new, const struct abi_options *options, __u64 slots,
			__u64 keys, struct reason *reason)
{
	struct kernel_plan plan = plan_room(options, slots);
	int error;

	plan.predecessor = &target->filter;
	error = create(new, &plan, table_geometry(slots), keys, reason);
	if (error)
		return error;
	inherit(new->filter.config, target->filter.config);
	new->filter.config->options = *options;
	return 0;
}

static int held_refused(const struct kernel_filter *filter, struct reason *reason)
{
	const struct kernel_attachment *held = kernel_held_attachment(filter);

	return reason_set(reason, -EBUSY,
			  "on '%s' libxdp's dispatcher holds the filter, so it keeps its maps, which have "
			  "room for %llu slots; take it off (xdp-loader unload %s -i %u) and load it again with --capacity",
			  held->interface, (unsigned long long)target_room(filter), held->interface, held->prog_id);
}

static int prepare(struct target *target, struct store *store, const struct abi_options *options, __u64 slots,
		   bool is_beside, struct reason *reason)
{
	struct target_successor *successor = calloc(1, sizeof(*successor));
	struct store_info info;
	int error = store_info(store, &info);

	target_drop_successor(target);
	target->successor = successor;
	if (!successor)
		return reason_set(reason, -ENOMEM, "no memory for a new table");
	if (error)
		target_store_failed(error, reason);
	else if (is_beside)
		error = prepare_beside(target, &successor->target, slots, reason);
	else if (kernel_held_attachment(&target->filter))
		error = info.keys > target_room(&target->filter) * TABLE_LOAD_PERCENT / 100 ?
				target_full(target, info.keys, reason) :
				held_refused(&target->filter, reason);
	else
		error = prepare_anew(target, &successor->target, options, slots, info.keys, reason);
	if (!error)
		error = fill(target, successor, store, info.plan, reason);
	if (error)
		target_drop_successor(target);
	return error;
}

int target_prepare(struct target *target, struct store *store, __u64 slots, struct reason *reason)
{
	return prepare(target, store, &target->filter.options, slots, fits_beside(target, slots), reason);
}

/* Whoever listens goes on, by what it was last seen to want; it comes for the new table's lease by itself. */
static void hand_listener_on(struct abi_config *config, const struct abi_config *old)
{
	const __u64 lease = __atomic_load_n(&old->listener, __ATOMIC_ACQUIRE);

	if ((__u32)lease <= (__u32)config->listener)
		return;
	config->sample_every = old->sample_every;
	config->sample_credit = old->sample_credit;
	__atomic_store_n(&config->listener, lease, __ATOMIC_RELEASE);
}

void target_make_heir(struct abi_config *config, const struct abi_config *old)
{
	const __u32 panic = __atomic_load_n(&old->run, __ATOMIC_ACQUIRE) & ABI_RUN_PANIC;

	__atomic_store_n(&config->run, (config->run & ~ABI_RUN_PANIC) | panic | ABI_RUN_HEIR, __ATOMIC_RELEASE);
}

void target_settle_heir(struct abi_config *config, const struct abi_config *old)
{
	__u32 run = __atomic_load_n(&config->run, __ATOMIC_ACQUIRE), settled;

	do {
		if (!(run & ABI_RUN_HEIR))
			return;
		settled = (run & ~(ABI_RUN_HEIR | ABI_RUN_PANIC)) |
			  (__atomic_load_n(&old->run, __ATOMIC_ACQUIRE) & ABI_RUN_PANIC);
	} while (!__atomic_compare_exchange_n(&config->run, &run, settled, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

static void start(struct target *new, const struct target *old)
{
	struct abi_config *config = new->filter.config;

	hand_listener_on(config, old->filter.config);
	config->magic = ABI_MAGIC;
	__atomic_fetch_or(&config->run, old->filter.config->run | ABI_RUN_SET_UP, __ATOMIC_RELEASE);
	target_make_heir(config, old->filter.config);
}

/* New programs over new maps, in the place of those that run. */
static int replace_filter(struct target *target, struct target *new, struct reason *reason)
{
	int error;

	start(new, target);
	error = kernel_replace(&target->filter, &new->filter, reason);
	if (error)
		return error;
	hand_listener_on(new->filter.config, target->filter.config);
	target_settle_heir(new->filter.config, target->filter.config);
	return 0;
}

/* The other table of the same maps: all interfaces change in the same instant. */
static void exchange_tables(struct abi_config *config, const struct target *new)
{
	config->geometry = new->table.geometry;
	config->used = new->table.used;
	__atomic_store_n(&config->active, config->active + 1, __ATOMIC_RELEASE);
	wait_for_packets(config);
}

/* `target` takes over what `new` is: in the same maps, or in its own. */
static void become(struct target *target, struct target *new)
{
	new->state = target->state;
	new->cause = target->cause;
	new->slots_before = table_slots(&target->table);
	if (new->is_beside) {
		table_close(&target->table);
		new->is_beside = false;
	} else {
		target_close(target);
	}
	*target = *new;
}

int target_succeed(struct target *target, struct reason *reason)
{
	struct target_successor *successor = target->successor;
	struct target *new = &successor->target;
	int error = new->is_beside ? 0 : replace_filter(target, new, reason);

	if (new->is_beside)
		exchange_tables(target->filter.config, new);
	if (error) {
		target_drop_successor(target);
		return error;
	}
	error = target_keys_carry(&successor->keys, reason);
	carry_counts(target, new, &successor->keys);
	target_keys_close(&successor->keys);
	target->successor = NULL;
	become(target, new);
	free(successor);
	return error;
}

static int rebuild(struct target *target, struct store *store, const struct abi_options *options, __u64 slots,
		   bool is_beside, struct reason *reason)
{
	int error = prepare(target, store, options, slots, is_beside, reason);

	return error ? error : target_succeed(target, reason);
}

int target_rebuild_as(struct target *target, struct store *store, const struct abi_options *options, __u64 slots,
		      struct reason *reason)
{
	return rebuild(target, store, options, slots, false, reason);
}

int target_rebuild(struct target *target, struct store *store, __u64 slots, struct reason *reason)
{
	return rebuild(target, store, &target->filter.options, slots, fits_beside(target, slots), reason);
}
