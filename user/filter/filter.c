// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A filter that runs: opened, kept equal to the store in place, its shapes published. */
#include "filter/filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "filter/hints.h"
#include "filter/internal.h"
#include "kernel/ticks.h"

#define STOPPED_MS 100 /* no command takes so long to read two clocks */

int target_full(const struct target *target, __u64 keys, struct reason *reason)
{
	const struct kernel_attachment *held = kernel_held_attachment(&target->filter);

	if (held)
		return reason_set(reason, -ENOSPC,
				  "table full: %llu keys do not fit into %llu slots, and on '%s' libxdp's dispatcher "
				  "holds the filter; take it off (xdp-loader unload %s -i %u), then load it "
				  "with --capacity %llu or more",
				  (unsigned long long)keys, (unsigned long long)table_slots(&target->table),
				  held->interface, held->interface, held->prog_id, 2 * (unsigned long long)keys);
	return reason_set(reason, -ENOSPC,
			  "table full: %llu keys do not fit into %llu slots, and a table holds at most %llu; "
			  "delete rules first",
			  (unsigned long long)keys, (unsigned long long)table_slots(&target->table),
			  (1ULL << ABI_SLOTS_MAX_LOG2) * TABLE_LOAD_PERCENT / 100);
}

int target_unmapped(struct reason *reason)
{
	return reason_set(reason, -ENOMEM, "no memory to map the filter's table");
}

int target_store_failed(int error, struct reason *reason)
{
	return reason_set(reason, error, "cannot read the store: %s", strerror(-error));
}

int target_of_another_store(const struct kernel_filter *filter, struct reason *reason)
{
	return reason_set(reason, -EEXIST,
			  "the filter '%s' on %s is filled from another store; give the --state it was "
			  "loaded with, or unload it first",
			  filter->config->name, filter->attachments[0].interface);
}

void target_defer(struct target *target, enum target_cause cause)
{
	target->is_deferred = true;
	if (!target->cause)
		target->cause = cause;
}

/* ---- entries ---- */

/* Whoever is stopped between the two clocks starts again, or the rule would end late by so much. */
int target_tick(const struct store *store, __s64 timeout_ms, __u32 *tick, struct reason *reason)
{
	__s64 lag_ms, left_ms;
	int error;

	do {
		lag_ms = timeout_ms ? store_lag_ms(store) : 0;
		left_ms = timeout_ms - lag_ms;
		/* What ends just now is not what never ends. */
		error = ticks_at(timeout_ms && !left_ms ? -1 : left_ms, tick, reason);
	} while (!error && timeout_ms && store_lag_ms(store) - lag_ms > STOPPED_MS);
	return error;
}

__u32 target_end(const struct target *target, __u32 tick)
{
	const __u32 epoch = target_own(target)->epoch;

	if (!tick || tick - epoch <= ABI_END_MAX)
		return tick ? tick - epoch + (tick == epoch) : 0;
	return tick < epoch;
}

bool target_has_aged(const struct target *target, __u32 tick)
{
	struct reason ignored;
	__u32 now;

	return tick && !ticks_now(&now, &ignored) && now - target_own(target)->epoch > ABI_END_MAX / 2;
}

static void set_shortcuts(const struct target *target, const struct rule_key *key)
{
	if (hints_can_shorten(&key->shape))
		hints_set_shortcuts(target_hints(target), key);
}

static void clear_shortcuts(const struct target *target, const struct rule_key *key)
{
	if (hints_can_shorten(&key->shape))
		hints_clear_shortcuts(target_hints(target), key);
}

int target_insert(struct target *target, const struct rule_key *key, __u32 tick)
{
	const struct hash_value value = rule_hash(key, &target_own(target)->secret);
	__u64 hint;
	int error = target_hint(target, &key->shape, &hint);

	if (error)
		return error;
	hints_mark(target_hints(target), key, hint);
	error = table_insert(&target->table, &value, target_end(target, tick));
	if (!error && !tick)
		set_shortcuts(target, key);
	return error;
}

int target_delete(struct target *target, const struct rule_key *key)
{
	const struct hash_value value = rule_hash(key, &target_own(target)->secret);

	clear_shortcuts(target, key);
	return table_delete(&target->table, &value);
}

int target_set_end(struct target *target, const struct rule_key *key, __u32 tick)
{
	const struct hash_value value = rule_hash(key, &target_own(target)->secret);
	int error;

	if (!target->filter.options.is_exact)
		return 0;
	if (tick)
		clear_shortcuts(target, key);
	error = table_set_end(&target->table, &value, target_end(target, tick));
	if (!error && !tick)
		set_shortcuts(target, key);
	return error;
}

/*
 * The hints are collected beside those in use, which keep their bits until no entry is left that needs
 * them; new entries are marked in both before they are in the table. Shortcuts go before any entry can.
 */
static int reconcile_keys(struct target *target, struct target_keys *keys, struct table_difference *difference,
			  struct reason *reason)
{
	__u8 *in_use = target_hints(target), *wanted = calloc(ABI_HINTS, sizeof(*wanted));
	int error;

	if (!wanted)
		return reason_set(reason, -ENOMEM, "no memory for hints");
	keys->hints = wanted;
	error = target_keys_collect(keys, reason);
	if (!error) {
		hints_clear_all_shortcuts(in_use);
		hints_add(in_use, wanted);
		error = table_reconcile(&target->table, keys->entry, keys->count, difference);
		if (error == -ENOSPC)
			target_full(target, keys->count, reason);
		else if (error)
			reason_set(reason, error, "no memory to fill the table");
	}
	if (!error) {
		hints_replace(in_use, wanted);
		target_keys_shorten(keys);
	}
	free(wanted);
	return error;
}

static int reconcile(struct target *target, struct store *store, struct table_difference *difference,
		     struct reason *reason)
{
	struct target_keys keys;
	int error = target_keys_open(&keys, target, store, NULL, false, reason);

	if (!error)
		error = reconcile_keys(target, &keys, difference, reason);
	target_keys_close(&keys);
	return error;
}

int target_fill(struct target *target, struct store *store, struct table_difference *difference, struct reason *reason)
{
	struct abi_config *config = target->filter.config;
	struct table_difference ignored;
	struct store_info info;
	int error = store_info(store, &info);

	if (error)
		return target_store_failed(error, reason);
	config->generation = ABI_GENERATION_DIRTY;
	/* Entries go in no order: where all do, none is in force by then, so that no exception goes before its rule. */
	error = info.rules ? 0 : target_publish(target, store, reason);
	if (!error)
		error = reconcile(target, store, difference ? difference : &ignored, reason);
	if (!error)
		error = target_publish(target, store, reason);
	if (error)
		return error;
	target_own(target)->plan = info.plan;
	target_set_generation(target, info.generation);
	return 0;
}

void target_note_counts(struct target *target)
{
	struct abi_table *own = target_own(target);

	own->used = target->table.used;
	own->moves += target->table.moves;
	target->table.moves = 0;
	if (own->longest_path < target->table.longest_path)
		own->longest_path = target->table.longest_path;
	if (!target->is_beside)
		target->filter.config->used = own->used;
}

void target_set_generation(struct target *target, __u64 generation)
{
	target_note_counts(target);
	__atomic_store_n(&target->filter.config->generation, generation, __ATOMIC_RELEASE);
}

/* ---- a filter's life ---- */

/* The slots that the maps have room for, in all tables. */
static __u64 all_slots(const struct kernel_filter *filter)
{
	return (__u64)filter->map[KERNEL_BUCKETS].entries * BUCKET_SLOTS * (filter->options.format == BUCKET_8 ? 2 : 1);
}

static bool holds(const struct target *target, __u64 keys)
{
	return keys <= table_slots(&target->table) * TABLE_LOAD_PERCENT / 100;
}

bool target_has_room(const struct target *target, __u64 keys)
{
	return holds(target, target->table.used + keys);
}

__u64 target_slots_to_grow_to(const struct target *target, __u64 keys)
{
	const __u64 room = target_room(&target->filter), slots = table_slots(&target->table);
	__u64 wanted = table_slots_for(keys + keys / 2);

	if (holds(target, keys))
		return slots;
	/* As many as the maps have room for, where these are enough: other maps would take a new program. */
	if (wanted > room && target_tables(&target->filter) == ABI_TABLES && table_slots_for(keys + keys / 8) <= room)
		return room;
	/* Another tool holds it: there are no other maps to be had. */
	if (wanted > room && kernel_held_attachment(&target->filter))
		return room;
	return wanted <= 1ULL << ABI_SLOTS_MAX_LOG2 ? wanted : table_slots_for(keys);
}

static int grow(struct target *target, struct store *store, const struct store_info *info, struct reason *reason)
{
	__u64 slots = target_slots_to_grow_to(target, info->keys);
	int error;

	error = target_rebuild(target, store, slots, reason);
	if (!error)
		target->filter.config->generation = info->generation;
	return error;
}

static int fill_new(struct target *target, struct store *store, struct reason *reason)
{
	struct target_keys keys;
	int error = target_keys_open(&keys, target, store, NULL, true, reason);

	if (!error)
		error = target_build(target, &keys, reason);
	if (!error)
		error = target_publish(target, store, reason);
	target_keys_close(&keys);
	return error;
}

/* ABI_RUN_SET_UP last: it makes the program look, and the table must be whole before. */
static int set_up(struct target *target, struct store *store, const char *name, const struct store_info *info,
		  struct reason *reason)
{
	struct abi_config *config = target->filter.config;
	int error;

	config->version = ABI_VERSION;
	config->options = target->filter.options;
	/* As another loader made them. */
	if (target_tables(&target->filter) == 1 && 2 * table_slots(&target->table) <= all_slots(&target->filter))
		target_lay_out(config, ABI_TABLES, all_slots(&target->filter) / ABI_TABLES);
	config->geometry = target_own(target)->geometry = target->table.geometry;
	target_own(target)->plan = info->plan;
	memcpy(config->store_id, info->id, sizeof(config->store_id));
	strncpy(config->name, name, sizeof(config->name) - 1);
	error = target_configure(target, store, reason);
	if (error)
		return error;
	if (!holds(target, info->keys))
		return grow(target, store, info, reason);
	error = fill_new(target, store, reason);
	if (error)
		return error;
	config->generation = info->generation;
	config->magic = ABI_MAGIC;
	__atomic_fetch_or(&config->run, ABI_RUN_SET_UP, __ATOMIC_RELEASE);
	return 0;
}

/*
 * In place, where the targets of shapes are what they were; else entries would go before others take
 * their place.
 */
static int repair(struct target *target, struct store *store, const struct store_info *info, struct reason *reason)
{
	const bool is_same_plan = target_own(target)->plan == info->plan;
	int error;

	if (!is_same_plan && target_can_prepare(target, target_slots_to_grow_to(target, info->keys)))
		return grow(target, store, info, reason);
	error = target_fill(target, store, NULL, reason);
	return error == -ENOSPC ? grow(target, store, info, reason) : error;
}

int target_update(struct target *target, struct store *store, const char *name, struct reason *reason)
{
	const struct abi_config *config = target->filter.config;
	struct store_info info;
	int error = store_info(store, &info);

	if (error)
		return target_store_failed(error, reason);
	/* A tool that died between the two has left it passing everything. */
	if (!config->magic || !(config->run & ABI_RUN_SET_UP)) {
		target->state = TARGET_SET_UP;
		return set_up(target, store, name, &info, reason);
	}
	if (memcmp(config->store_id, info.id, sizeof(info.id)))
		return target_of_another_store(&target->filter, reason);
	target->state = config->generation == info.generation ? TARGET_UP_TO_DATE : TARGET_REPAIRED;
	target->table.used = target_own(target)->used;
	error = target->state == TARGET_REPAIRED ? repair(target, store, &info, reason) : 0;
	return error ? error : target_configure(target, store, reason);
}

/* ---- how it runs ---- */

static void set_run(struct abi_config *config, __u32 bit, bool is_set)
{
	if (is_set)
		__atomic_fetch_or(&config->run, bit, __ATOMIC_RELEASE);
	else
		__atomic_fetch_and(&config->run, ~bit, __ATOMIC_RELEASE);
}

static void set_unconfirmed(struct abi_config *config, __u64 pending_id, __u32 tick)
{
	config->pending_id = pending_id;
	__atomic_store_n(&config->confirm_by, tick, __ATOMIC_RELEASE);
	set_run(config, ABI_RUN_UNCONFIRMED, true);
}

int target_set_unconfirmed(struct target *target, __u64 pending_id, __s64 left_ms, struct reason *reason)
{
	__u32 tick;
	int error = ticks_at(left_ms ? left_ms : -1, &tick, reason);

	if (error)
		return error;
	set_unconfirmed(target->filter.config, pending_id, tick);
	if (target->successor)
		set_unconfirmed(target_successor_config(target), pending_id, tick);
	return 0;
}

void target_confirm(struct target *target)
{
	set_run(target->filter.config, ABI_RUN_UNCONFIRMED, false);
	target->filter.config->pending_id = 0;
}

int target_configure(struct target *target, struct store *store, struct reason *reason)
{
	struct abi_config *config = target->filter.config;
	struct store_settings settings;
	struct store_pending pending;
	int error = store_settings(store, &settings);

	if (!error)
		error = store_pending(store, &pending);
	if (error)
		return target_store_failed(error, reason);
	memcpy(config->policy, settings.policy, sizeof(config->policy));
	set_run(config, ABI_RUN_MONITOR, settings.is_monitor_only);
	set_run(config, ABI_RUN_HEIR, false); /* of a tool that died as one */
	if (pending.id)
		return target_set_unconfirmed(target, pending.id, pending.left_ms, reason);
	/* Of a change that was confirmed, undone or never stored by a tool that died then. */
	if (config->pending_id)
		target_confirm(target);
	return 0;
}

/* ---- opening ---- */

void target_lay_out(struct abi_config *config, unsigned int tables, __u64 slots)
{
	for (unsigned int i = 1; i < tables; i++) {
		config->table[i].first_bucket = i * slots / BUCKET_SLOTS;
		config->table[i].first_slot = i * slots;
		config->table[i].first_hint = i * ABI_HINTS;
	}
}

unsigned int target_tables(const struct kernel_filter *filter)
{
	return filter->config->table[ABI_TABLES - 1].first_slot ? ABI_TABLES : 1;
}

__u64 target_room(const struct kernel_filter *filter)
{
	return target_tables(filter) == 1 ? all_slots(filter) : filter->config->table[1].first_slot;
}

const __u8 *target_hints_of(const struct kernel_filter *filter)
{
	return (const __u8 *)filter->map[KERNEL_HINTS].memory + abi_active(filter->config)->first_hint;
}

struct bucket_geometry target_geometry(const struct kernel_filter *filter)
{
	if (abi_active(filter->config)->geometry.buckets)
		return abi_active(filter->config)->geometry;
	return table_geometry(all_slots(filter) / ABI_TABLES);
}

bool target_is_met(const struct target *target)
{
	return !target->is_beside && target->filter.attachments_count;
}

/* Makes the records and counters of slots usable. */
static int map_slots(const struct kernel_filter *filter, const struct abi_table *own, __u64 slot, __u64 slots)
{
	const __u64 first = own->first_slot + slot;
	int error = 0;

	if (filter->options.is_exact)
		error = kernel_map_part(&filter->map[KERNEL_RECORDS], first * sizeof(__u64), slots * sizeof(__u64));
	if (filter->options.has_counts && !error)
		error = kernel_map_part(&filter->map[KERNEL_COUNTS], first * sizeof(struct abi_counter),
					slots * sizeof(struct abi_counter));
	return error;
}

/* For the table of a target: see struct table. */
static int reach(const struct table *table, __u64 slot, __u64 slots)
{
	const struct target *target = (const void *)((const char *)table - offsetof(struct target, table));

	return map_slots(&target->filter, target_own(target), slot, slots) ? -ENOMEM : 0;
}

static int open_table(const struct kernel_filter *filter, struct abi_table *own, struct bucket_geometry geometry,
		      struct table *table)
{
	const struct abi_options *options = &filter->options;
	const struct kernel_map *buckets = &filter->map[KERNEL_BUCKETS], *records = &filter->map[KERNEL_RECORDS],
				*counts = &filter->map[KERNEL_COUNTS];
	const __u64 before =
		table_bucket_bytes(options->format, (struct bucket_geometry){ .buckets = own->first_bucket });
	const __u64 bucket_bytes = table_bucket_bytes(options->format, geometry), slots = table_slots_of(geometry);
	const struct table_memory memory = {
		.bucket = (char *)buckets->memory + before,
		.record = options->is_exact ? (__u64 *)records->memory + own->first_slot : NULL,
		.counter = options->has_counts ? (struct abi_counter *)counts->memory + own->first_slot : NULL,
		.sequence = &own->sequence,
	};
	int error;

	*table = (struct table){};
	if (options->format >= BUCKET_FORMATS || own->first_hint > ABI_HINTS ||
	    before + bucket_bytes > buckets->bytes || (memory.record && own->first_slot + slots > records->entries) ||
	    (memory.counter && own->first_slot + slots > counts->entries))
		return -EINVAL;
	error = kernel_map_part(buckets, before, bucket_bytes);
	return error ? error : table_open(table, options->format, geometry, &memory);
}

int target_open_table(const struct kernel_filter *filter, struct table *table)
{
	struct abi_config *config = filter->config;
	struct abi_table *own = &config->table[config->active % ABI_TABLES];
	int error = open_table(filter, own, target_geometry(filter), table);

	if (!error)
		error = map_slots(filter, own, 0, table_slots(table));
	if (error)
		table_close(table);
	return error;
}

int target_open_own(struct target *target, struct bucket_geometry geometry)
{
	const int error = open_table(&target->filter, target_own(target), geometry, &target->table);

	target->table.reach = reach;
	return error;
}

int target_reopen(struct target *target, struct reason *reason)
{
	int error;

	table_close(&target->table);
	target->which = target->filter.config->active % ABI_TABLES;
	error = target_open_own(target, target_geometry(&target->filter));
	if (!error) {
		target->table.used = target_own(target)->used;
		target_begin(target);
		return 0;
	}
	/* Commands take -EINVAL for bad input, which this is not. */
	error = reason_set(reason, error == -EINVAL ? -EPROTO : error, "cannot use a table of %u map elements: %s",
			   target->filter.map[KERNEL_BUCKETS].entries, strerror(-error));
	target_close(target);
	return error;
}

int target_open(struct target *target, struct kernel_filter *filter, struct reason *reason)
{
	*target = (struct target){ .filter = *filter };
	*filter = (struct kernel_filter){};
	return target_reopen(target, reason);
}

void target_close(struct target *target)
{
	target_drop_successor(target);
	table_close(&target->table);
	if (!target->is_beside)
		kernel_close(&target->filter);
}
