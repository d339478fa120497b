// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A whole new table: in the memory of a filter that no packet looks at yet, and, with the programs that
 * look at it, in the place of one that runs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "available_memory.h"
#include "target.h"
#include "target_internal.h"

/*
 * Keys that met in too few buckets do not under another hash key, but for a chance in millions; one
 * table more that stays too full has other reasons.
 */
#define BUILD_TRIES 4

/* ---- from the store to a table ---- */

static void clear(struct target *target)
{
	static const enum kernel_map_name maps[] = { KERNEL_BUCKETS, KERNEL_RECORDS, KERNEL_HINTS };

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
		memset(target->filter.map[maps[i]].memory, 0, target->filter.map[maps[i]].bytes);
	target->table.used = 0;
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
	struct abi_config *config = target->filter.config;
	const bool is_new = target->filter.programs && !target->table.used;
	int error = draw_secret(&config->secret);

	if (error)
		return reason_set(reason, error, "cannot draw a random secret: %s", strerror(-error));
	/* The kernel has cleared what it has just made; clearing it again would take as long. */
	if (!is_new)
		clear(target);
	error = target_keys_collect(keys, reason);
	if (error)
		return error;
	error = table_build(&target->table, keys->entry, keys->count);
	return error ? reason_set(reason, error, "cannot fill a new table: %s", strerror(-error)) : 0;
}

int target_build(struct target *target, struct target_keys *keys, struct reason *reason)
{
	int error = build_once(target, keys, reason);

	for (int i = 1; i < BUILD_TRIES && error == -ENOSPC; i++)
		error = build_once(target, keys, reason);
	target_note_counts(target);
	if (error)
		return error == -ENOSPC ? target_full(target, keys->count, reason) : error;
	target_keys_shorten(keys);
	return target_keys_carry(keys, reason);
}

/* ---- a new filter ---- */

/* `keys`: how many it will be filled with, which takes memory of this process meanwhile. */
static int create(struct target *target, const struct abi_options *options, __u64 slots, __u64 keys,
		  const struct kernel_filter *predecessor, struct reason *reason)
{
	const struct bucket_geometry geometry = table_geometry(slots);
	const struct kernel_plan plan = {
		.options = *options,
		.slots = table_slots_of(geometry),
		.bucket_bytes = table_bucket_bytes(options->format, geometry),
		.predecessor = predecessor,
	};
	const __u64 old_slots = predecessor ? table_slots_of(target_geometry(predecessor)) : 0;
	struct kernel_filter filter;
	int error = memory_check(kernel_plan_bytes(&plan) +
					 keys * sizeof(struct table_entry) + (old_slots + slots) * sizeof(__u32),
				 "a table of that size",
				 "choose a smaller one, --no-counters or --compact", reason);

	*target = (struct target){};
	if (!error)
		error = kernel_create(&plan, &filter, reason);
	if (error)
		return error;
	filter.config->geometry = geometry;
	return target_open(target, &filter, reason);
}

int target_create(struct target *target, const struct abi_options *options, __u64 slots, __u64 keys,
		  struct reason *reason)
{
	return create(target, options, slots, keys, NULL, reason);
}

/* ---- in the place of another ---- */

/*
 * All but what belongs to the table itself. The shapes are not handed on: the new table has the hints and
 * the targets of its own keys.
 */
static void inherit(struct abi_config *config, const struct abi_config *old)
{
	struct bucket_geometry geometry = config->geometry;

	memcpy(config, old, sizeof(*config));
	memset(config->shapes, 0, sizeof(config->shapes));
	config->magic = config->run = 0;
	config->listener = 0;
	config->geometry = geometry;
	config->sequence = config->next_number = 0;
	config->moves = config->longest_path = 0;
}

static void add_count(struct abi_counter *to, const struct abi_counter *from)
{
	__atomic_fetch_add(&to->packets, from->packets, __ATOMIC_RELAXED);
	__atomic_fetch_add(&to->bytes, from->bytes & ~ABI_RULE_TAKEN, __ATOMIC_RELAXED);
}

/* By atomic additions: the new table's packets are being counted meanwhile. */
static void carry_counts(const struct target *from, const struct target *to,
			 const struct target_keys *keys)
{
	for (__u64 i = 0; keys->heir && i < table_slots(&from->table); i++)
		if (keys->heir[i])
			add_count(table_counter(&to->table, keys->heir[i] - 1), table_counter(&from->table, i));
}

struct target_successor {
	struct target target;
	struct target_keys keys; /* by which counts are carried over */
};

static int fill(struct target *old, struct target_successor *successor, struct store *store,
		struct reason *reason)
{
	struct target *new = &successor->target;
	const bool has_counts = old->filter.options.has_counts && new->filter.options.has_counts &&
				old->filter.config->magic;
	struct store_settings settings;
	struct store_info info;
	int error = store_info(store, &info);

	if (!error)
		error = store_settings(store, &settings);
	if (error)
		return target_store_failed(error, reason);
	inherit(new->filter.config, old->filter.config);
	new->filter.config->program = ABI_PROGRAM;
	target_set_policies(new->filter.config, &settings);
	new->filter.config->plan = info.plan;
	new->filter.config->options = new->filter.options;
	error = target_keys_open(&successor->keys, new, store, has_counts ? old : NULL, reason);
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

static int prepare(struct target *target, struct store *store, const struct abi_options *options, __u64 slots,
		   struct reason *reason)
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
	if (!error)
		error = create(&successor->target, options, slots, info.keys, &target->filter, reason);
	if (!error)
		error = fill(target, successor, store, reason);
	if (error)
		target_drop_successor(target);
	return error;
}

int target_prepare(struct target *target, struct store *store, __u64 slots, struct reason *reason)
{
	return prepare(target, store, &target->filter.options, slots, reason);
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

int target_succeed(struct target *target, struct reason *reason)
{
	struct target_successor *successor = target->successor;
	struct target *new = &successor->target;
	int error;

	start(new, target);
	error = kernel_replace(&target->filter, &new->filter, reason);
	if (error) {
		target_drop_successor(target);
		return error;
	}
	hand_listener_on(new->filter.config, target->filter.config);
	target_settle_heir(new->filter.config, target->filter.config);
	carry_counts(target, new, &successor->keys);
	new->state = target->state;
	new->cause = target->cause;
	new->slots_before = table_slots(&target->table);
	target_keys_close(&successor->keys);
	target->successor = NULL;
	target_close(target);
	*target = *new;
	free(successor);
	return 0;
}

int target_rebuild_as(struct target *target, struct store *store, const struct abi_options *options, __u64 slots,
		      struct reason *reason)
{
	int error = prepare(target, store, options, slots, reason);

	return error ? error : target_succeed(target, reason);
}

int target_rebuild(struct target *target, struct store *store, __u64 slots, struct reason *reason)
{
	return target_rebuild_as(target, store, &target->filter.options, slots, reason);
}
